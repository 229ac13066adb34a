"""Why a model is refused: everything that is missing at once, each with its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.errors import GraphError
from tedsl.graph.value import Value
from tedsl.record import record


class Unsupported(GraphError):
    """An operator function cannot express a node: the reason, and the inputs of the model that would have to be constants."""

    def __init__(self, reason: str, needed: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.reason, self.needed = reason, frozenset(needed)


@record
class Problem:
    """A node that has no translation. needed: inputs of the model that would have to be constants for it."""

    node: str
    operator: str
    reason: str
    needed: frozenset[str]


class ModelRefused(GraphError):
    """A model that cannot be imported. problems: every node without translation."""

    def __init__(self, model: str, problems: Sequence[Problem]) -> None:
        needed = sorted({name for problem in problems for name in problem.needed})
        hint = "docs/onnx.md lists the operators that are translated"
        if needed:
            hint = f"values that shapes depend on: from_onnx(model, constants={{{needed[0]!r}: array}})"
        super().__init__(f"the model {model} has nodes without translation:\n" + "\n".join(_lines(problems)), hint=hint)
        self.problems, self.needed = tuple(problems), frozenset(needed)


def _lines(problems: Sequence[Problem]) -> list[str]:
    nodes: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        nodes.setdefault((problem.operator, problem.reason), []).append(problem.node)
    return [f"  {operator} ({', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}): {reason}"
            for (operator, reason), names in nodes.items()]


def inputs_behind(value: Value) -> frozenset[str]:
    """The names of the inputs that a value is computed from."""
    found, seen, stack = set(), {value}, [value]
    while stack:
        one = stack.pop()
        if one.is_input:
            found.add(one.name)
        fresh = [below for below in (one.node.inputs if one.node else ()) if below not in seen]
        seen.update(fresh)
        stack += fresh
    return frozenset(found)
