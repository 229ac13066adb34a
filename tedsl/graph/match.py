"""Patterns over nodes: what a value may be made of; where a graph has such values, and graphs with these replaced.

    x, w, b = anything("x"), a_constant("w"), a_constant("b")
    conv = op("nn.conv2d", x, w, strides=1)
    pattern = op("nn.relu", optional(conv, lambda conv: op("nn.bias_add", conv, b)))
    for found in match(g, pattern):
        found["x"], found[conv], found.nodes
    g = replace(g, pattern, lambda found: ops.mine.conv_relu(found["x"], found["w"]))

A pattern that stands at several places, or patterns of one name, stand for one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.graph.graph import Graph
from tedsl.graph.operators import operator_named
from tedsl.graph.rewrite import Replacement, rewrite
from tedsl.graph.value import Node, Value, constant
from tedsl.record import record

Bound = Mapping[Any, Value]  # what patterns, and names, stand for so far
_COMMUTE = frozenset(("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "equal", "not_equal"))


class Pattern:
    """What a value may be. `a | b`: one of two, the first that fits; `where`: a condition on the value."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __or__(self, other: Pattern) -> Pattern:
        return Either((self, _checked(other)))

    def where(self, accepts: Callable[[Value], bool]) -> Pattern:
        """The same for values that `accepts` accepts."""
        return Where(self, accepts)

    def ways(self, value: Value, bound: Bound) -> Iterator[Bound]:
        """The ways in which the value fits: what patterns stand for in each."""
        known = [bound[key] for key in self._keys if key in bound]
        if all(one is value for one in known):
            for inner in self.fits(value, bound):
                yield {**inner, **dict.fromkeys(self._keys, value)}

    def fits(self, value: Value, bound: Bound) -> Iterator[Bound]:
        """The ways in which the value fits, without the pattern itself."""
        yield bound

    @property
    def _keys(self) -> list[Any]:
        return [self, self.name] if self.name else [self]


class Either(Pattern):
    def __init__(self, choices: tuple[Pattern, ...]) -> None:
        super().__init__()
        self.choices = choices

    def fits(self, value: Value, bound: Bound) -> Iterator[Bound]:
        for choice in self.choices:
            yield from choice.ways(value, bound)


class Where(Pattern):
    def __init__(self, pattern: Pattern, accepts: Callable[[Value], bool]) -> None:
        super().__init__()
        self.pattern, self.accepts = pattern, accepts

    def fits(self, value: Value, bound: Bound) -> Iterator[Bound]:
        if self.accepts(value):
            yield from self.pattern.ways(value, bound)


class Operation(Pattern):
    """The first result of a node."""

    def __init__(self, operators: tuple[str, ...], operands: tuple[Any, ...], attributes: Mapping[str, Any], name: str) -> None:
        super().__init__(name)
        self.operators, self.attributes = operators, attributes
        self.open = bool(operands) and operands[-1] is ...
        self.operands = tuple([_checked(one) for one in (operands[:-1] if self.open else operands)])

    def fits(self, value: Value, bound: Bound) -> Iterator[Bound]:
        node = value.node
        if node is None or value.index or node.operator not in self.operators or \
                not all(_is(_attribute(node, name), wanted) for name, wanted in self.attributes.items()):
            return
        operands = _operands(node)
        if self._counts(len(operands)):
            yield from _all(self.operands, operands, bound)
            if node.operator in _COMMUTE and len(self.operands) == 2:
                yield from _all(self.operands, operands[::-1], bound)

    def _counts(self, count: int) -> bool:
        return count >= len(self.operands) if self.open else count == len(self.operands)


class Constant(Pattern):
    def __init__(self, number: Any, name: str) -> None:
        super().__init__(name)
        self.number = number

    def fits(self, value: Value, bound: Bound) -> Iterator[Bound]:
        if value.is_constant and (self.number is None or bool(numpy.all(value.data == self.number))):
            yield bound


def _operands(node: Node) -> tuple[Value, ...]:
    """The values that a node reads; a number in place of one of two operands is a constant."""
    pair = [node.arguments[name] for name in ("lhs", "rhs") if name in node.arguments]
    if len(pair) < 2 or all(isinstance(given, Value) for given in pair):
        return node.inputs
    return tuple([given if isinstance(given, Value) else constant(given, str(node.outputs[0].dtype)) for given in pair])


def _all(patterns: tuple[Pattern, ...], values: tuple[Value, ...], bound: Bound) -> Iterator[Bound]:
    if not patterns:
        yield bound
        return
    for way in patterns[0].ways(values[0], bound):
        yield from _all(patterns[1:], values[1:], way)


def _attribute(node: Node, name: str) -> Any:
    parameter = operator_named(node.operator).signature.parameters.get(name)
    default = None if parameter is None or parameter.default is parameter.empty else parameter.default
    return node.arguments.get(name, default)


def _is(given: Any, wanted: Any) -> bool:
    if callable(wanted):
        return bool(wanted(given))
    return bool(given == (tuple(wanted) if isinstance(wanted, list) else wanted))


def _checked(pattern: Any) -> Pattern:
    if not isinstance(pattern, Pattern):
        raise ArgumentTypeError(f"a pattern is made by op(...), anything(), a_constant(), not {type_in_words(pattern)}",
                                hint="a_constant(1.0) for a number; ... stands last for operands of any number")
    return pattern


# --- what patterns are made by ----------------------------------------------------------------------------------------

def anything(name: str = "") -> Pattern:
    """Any value."""
    return Pattern(name)


def an_input(name: str = "") -> Pattern:
    """An input of the graph."""
    return Pattern(name).where(lambda value: value.is_input)


def a_constant(number: Any = None, name: str = "") -> Pattern:
    """A constant: any (a str in the first place is its name), or one all of whose elements equal `number`."""
    return Constant(None, number) if isinstance(number, str) else Constant(number, name)


def op(operators: str | tuple[str, ...], *operands: Any, name: str = "", **attributes: Any) -> Pattern:
    """The first result of a node that calls the operator, or one of several, on operands that fit patterns, in order.

    operands: `...` as the last stands for any others; those of add, multiply, ... may stand the other way round. attributes: by
    the names of parameters: what they are equal to, or a function that accepts them; those that are left out are the defaults.
    """
    return Operation((operators,) if isinstance(operators, str) else tuple(operators), operands, attributes, name)


def optional(pattern: Pattern, wrapped: Callable[[Pattern], Pattern]) -> Pattern:
    """What `wrapped` makes of a pattern, or the pattern itself: a node that may be there."""
    return wrapped(_checked(pattern)) | pattern


# --- graphs -----------------------------------------------------------------------------------------------------------

@record(eq=False)
class Match:
    """A value that fits a pattern. match["x"], match[pattern]: what a name or a pattern stands for; `in` tells whether it does.

    nodes: those of the operators of the pattern, producers first.
    """

    value: Value
    bound: Bound

    def __getitem__(self, key: str | Pattern) -> Value:
        return self.bound[key]

    def __contains__(self, key: object) -> bool:
        return key in self.bound

    @property
    def nodes(self) -> tuple[Node, ...]:
        found = {value.node: None for key, value in self.bound.items() if isinstance(key, Operation) and value.node is not None}
        return tuple(found)


def match_value(value: Value, pattern: Pattern) -> Match | None:
    """How a value fits a pattern; None if it does not."""
    return next((Match(value, bound) for bound in _checked(pattern).ways(value, {})), None)


def match(graph: Graph, pattern: Pattern) -> list[Match]:
    """The values of a graph that fit, producers first."""
    found = [match_value(value, pattern) for node in graph.nodes for value in node.outputs]
    return [one for one in found if one is not None]


def replace(graph: Graph, pattern: Pattern, change: Callable[[Match], Replacement], alone: bool = False) -> Graph:
    """The graph with each value that fits replaced by what `change` returns, None to keep it; producers first.

    alone: only where nothing else reads the values between. For a node of several results the first fits, and `change` returns
    all. The same object if nothing changes.
    """
    originals: dict[Node, Node] = {}
    order = iter(graph.nodes)

    def changed(node: Node) -> Replacement:
        originals[node] = next(order)
        found = match_value(node.outputs[0], pattern)
        if found is None or (alone and not all(_read_once(originals.get(inner), graph) for inner in found.nodes
                                               if inner is not node)):
            return None
        return change(found)

    return rewrite(graph, changed)


def _read_once(node: Node | None, graph: Graph) -> bool:
    return node is None or (len(graph.users(node.outputs[0])) == 1 and node.outputs[0] not in graph.outputs)
