"""The loads of a formula, each with the conditions under which it happens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tedsl.ir import build
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    CompareOp,
    Expr,
    FloorDiv,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Reduce,
    Select,
    Sub,
    Var,
)
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp, extent_of

Eager = Select | And | Or


@dataclass(frozen=True, eq=False)
class Facts:
    """Conditions that hold at a place: the last one and those before it.

    chosen_by: what evaluates the place although the condition does not hold, unless it becomes an if_then_else.
    """

    condition: Expr
    before: Facts | None
    chosen_by: tuple[Eager, ...] = ()
    count: int = field(init=False)  # of the conditions

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", 1 + _count(self.before))

    def __iter__(self) -> Iterator[Expr]:
        return (at.condition for at in self.chain())

    def chain(self) -> Iterator[Facts]:
        """These and all before, the last first."""
        at: Facts | None = self
        while at is not None:
            yield at
            at = at.before

    def choices(self) -> Iterator[Eager]:
        """What must become an if_then_else so that the place is evaluated only where the conditions hold."""
        return (choice for at in self.chain() for choice in at.chosen_by)


def loads_of(bodies: tuple[Expr, ...], *more: Node) -> tuple[ProducerLoad, ...]:
    """Every load below the bodies, each once, in order."""
    found: dict[ProducerLoad, None] = {}
    for root in (*bodies, *more):
        for node in post_order(root):
            if type(node) is ProducerLoad:
                found.setdefault(node)
    return tuple(found)


def has_load(expr: Expr) -> bool:
    """Whether the value depends on the elements of a tensor."""
    return any(type(node) is ProducerLoad for node in post_order(expr))


def is_ragged(op: ComputeOp) -> bool:
    """Whether the range of a reduction is read from a tensor or depends on another axis."""
    axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    ends = [end for axis in op.reduce_axis if axis.dom is not None for end in (axis.dom.min, extent_of(axis))]
    return any(type(node) is ProducerLoad or node in axes for end in ends for node in post_order(end))


def takes_its_ends(index: Expr, axes: Collection[Var]) -> bool:
    """Whether `index` takes its least and its greatest value at corners of the domain, so that bounds of it are exact.

    It does if every axis occurs once, in operations that rise or fall with their operands.
    """
    seen: set[Node] = set()
    stack: list[Node] = [index]
    while stack:
        node = stack.pop()
        if isinstance(node, Var) and node in axes:
            if node in seen:
                return False
            seen.add(node)
        elif isinstance(node, (Add, Sub, Min, Max, Cast)):
            if node in seen:
                return False
            seen.add(node)  # a shared part: its axes occur twice
            stack.extend(node.child_nodes())
        elif isinstance(node, (Mul, FloorDiv)):
            parts = [part for part in (node.a, node.b) if any(v in axes for v in variables(part))]
            if len(parts) > 1 or (isinstance(node, FloorDiv) and node.b in parts):
                return False
            stack.extend(parts)
        elif any(v in axes for v in variables(node)):
            return False
    return True


def guarded_loads(body: Expr) -> list[tuple[ProducerLoad, Facts | None]]:
    """The loads of tensors below `body`, as by `guarded`."""
    return [(node, facts) for node, facts in guarded(body, _is_tensor_load) if type(node) is ProducerLoad]


def _is_tensor_load(node: Node) -> bool:
    return type(node) is ProducerLoad


def guarded(body: Expr, wanted: Callable[[Node], bool]) -> list[tuple[Node, Facts | None]]:
    """The nodes below `body` that are wanted (loads), with the conditions of the `if_then_else`, `Select`, `where`, `all`
    and `any` around each, in the order of evaluation.

    A later condition of te.all is asked where those before it hold. A load that is shared by several places comes once for
    each set of conditions, but not for one that only adds to another; where the places are many, once for all of them under
    the disjunction of their conditions. So the work is linear in the number of nodes, however many paths lead to them.
    """
    order = list(post_order(body))
    reading: set[Node] = set()  # the nodes that depend on what is wanted
    for node in order:
        if wanted(node) or any(child in reading for child in node.child_nodes()):
            reading.add(node)
    evaluated = {node: _evaluated(node, reading) for node in order if node in reading}
    places: dict[Node, list[Facts | None]] = {body: [None]}
    for node in reversed(order):  # parents before children
        for facts in places.get(node, ()):
            for child, condition, holds, by in evaluated.get(node, ()):
                inside = facts if condition is None else assume(condition, holds, facts, by)
                places[child] = _with_place(places.get(child, []), inside)
    return [(node, facts) for node in _in_order(body, evaluated) if wanted(node) for facts in places[node]]


Evaluated = tuple[Node, "Expr | None", bool, tuple[Eager, ...]]  # a child, and the condition that holds or fails around it
MAX_PLACES = 16  # sets of conditions that are told apart at one node


def _evaluated(node: Node, reading: Collection[Node]) -> list[Evaluated]:
    """The children of `node` that depend on loads, with the condition under which each is evaluated."""
    found: list[Evaluated] = []
    match node:
        case And(a=a, b=b) | Or(a=a, b=b) if b in reading:
            found = [(a, None, True, ()), (b, a, isinstance(node, And), (node,))]
        case Select(condition=c, true_value=t, false_value=f):
            found = [(c, None, True, ()), (t, c, True, (node,)), (f, c, False, (node,))]
        case Call(op=op, args=(c, t, f)) if op is IF_THEN_ELSE:
            found = [(c, None, True, ()), (t, c, True, ()), (f, c, False, ())]
        case Reduce(source=source, condition=c, init=init):
            found = [(c, None, True, ()), *((s, c, True, ()) for s in source), *((i, None, True, ()) for i in init)]
        case Let(var=v, value=value, body=inner):
            found = [(value, None, True, ()), (inner, EQ(v, value), True, ())]
        case _:
            found = [(child, None, True, ()) for child in node.child_nodes()]
    return [part for part in found if part[0] in reading]


def _in_order(body: Node, evaluated: Mapping[Node, Sequence[Evaluated]]) -> Iterator[Node]:
    """The nodes that are evaluated, parents first, each where it is met first."""
    seen: set[Node] = set()
    stack = [body] if body in evaluated else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend([part[0] for part in reversed(evaluated[node])])


def _with_place(known: list[Facts | None], facts: Facts | None) -> list[Facts | None]:
    """The places of a node with one more, less those whose conditions only add to those of another."""
    if any(_includes(facts, other) for other in known):
        return known
    places = [*(other for other in known if not _includes(other, facts)), facts]
    return places if len(places) <= MAX_PLACES else [_either(places)]


def _count(facts: Facts | None) -> int:
    return 0 if facts is None else facts.count


def _first(facts: Facts | None, count: int) -> Facts | None:
    """The first `count` of the conditions."""
    while facts is not None and facts.count > count:
        facts = facts.before
    return facts


def _includes(facts: Facts | None, other: Facts | None) -> bool:
    """Whether `facts` begin with all of `other`."""
    return _first(facts, _count(other)) is other


def _either(places: Sequence[Facts | None]) -> Facts:
    """What all places have in common, and that the rest of one of them holds."""
    common = places[0]
    for other in places[1:]:
        common = _first(common, _count(other))
        other = _first(other, _count(common))
        while common is not other:
            assert common is not None and other is not None
            common, other = common.before, other.before
    shared = _count(common)
    rests = [[fact for fact in place.chain() if fact.count > shared] for place in places if place is not None]
    conditions = [functools.reduce(build.logical_and, [fact.condition for fact in reversed(rest)]) for rest in rests]
    choices = dict.fromkeys(choice for rest in rests for fact in rest for choice in fact.chosen_by)
    return Facts(functools.reduce(build.logical_or, conditions), common, tuple(choices))


def assume(condition: Expr, truth: bool, facts: Facts | None, by: tuple[Eager, ...] = ()) -> Facts | None:
    """`facts` and that `condition` is `truth`, taken apart into comparisons."""
    pending = [(condition, truth)]
    while pending:
        c, holds = pending.pop()
        match c:
            case And(a=a, b=b) if holds:
                pending += [(b, True), (a, True)]
            case Or(a=a, b=b) if not holds:
                pending += [(b, False), (a, False)]
            case Not(a=a):
                pending.append((a, not holds))
            case Call(op=op, args=(a,)) if op is LIKELY:
                pending.append((a, holds))
            case _ if build.is_true(c) and holds:
                pass
            case CompareOp() if not holds and not c.a.dtype.is_float:  # NaN: the opposite of < is not >=
                facts = Facts(build.binary(_OPPOSITE[type(c)], c.a, c.b), facts, by)
            case _:
                facts = Facts(c if holds else build.logical_not(c), facts, by)
    return facts


_OPPOSITE: dict[type[CompareOp], type[CompareOp]] = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}
