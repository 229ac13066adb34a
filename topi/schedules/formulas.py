"""Properties of formulas that schedules use: loads and their indices, the cost of an element, and which axes are contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tedsl import te, tir

# Functions that cost more than reading an element again.
_CHEAP_CALLS = frozenset(tir.Op.get(f"tir.{name}") for name in ("if_then_else", "likely", "fabs", "floor", "ceil", "trunc",
                                                                 "reinterpret"))
CALL_COST = 20
_LEAVES = (tir.Var, tir.IntImm, tir.FloatImm, tir.ProducerLoad, tir.StringImm)


@dataclass
class Formula:
    """What a set of expressions loads, the cost of its arithmetic, and the variables used other than as plain indices."""

    loads: list[Any] = field(default_factory=list)
    cost: int = 0
    entangled: set[Any] = field(default_factory=set)

    def reads_of(self, op: te.Operation) -> list[Any]:
        """The loads of outputs of `op`."""
        return [load for load in self.loads if load.producer.op is op]


def formula_of(bodies: Iterable[Any]) -> Formula:
    """Collect the loads, the cost and the entangled variables of expressions; a shared node counts once."""
    formula = Formula()
    seen: set[Any] = set()
    stack = list(bodies)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, tir.ProducerLoad):
            formula.loads.append(node)
            for index in node.indices:
                if not isinstance(index, (tir.Var, tir.IntImm)):
                    nodes = nodes_of(index)
                    formula.entangled.update(n for n in nodes if isinstance(n, tir.Var))
                    stack += [n for n in nodes if isinstance(n, tir.ProducerLoad)]
            continue
        if isinstance(node, tir.Var):
            formula.entangled.add(node)
        elif isinstance(node, tir.Call):
            formula.cost += 1 if node.op in _CHEAP_CALLS else CALL_COST
        elif isinstance(node, tir.Reduce):
            stack += [*node.source, node.condition, *node.init]
            continue
        elif not isinstance(node, _LEAVES):
            formula.cost += 1
        stack += node.child_nodes()
    return formula


def nodes_of(expr: Any) -> list[Any]:
    """All nodes of an expression."""
    nodes: list[Any] = []
    tir.stmt_functor.post_order_visit(expr, nodes.append)
    return nodes


def variables_in(expr: Any) -> set[Any]:
    """The variables that an expression uses."""
    return {node for node in nodes_of(expr) if isinstance(node, tir.Var)}


def constant(extent: Any) -> int | None:
    """The value of a constant extent, else None."""
    value = getattr(extent, "value", extent)
    return value if isinstance(value, int) else None


def extent_of(axis: Any) -> int | None:
    """The constant number of iterations of an axis; None if it is symbolic, and for loops made by directives."""
    return None if axis.dom is None else constant(axis.dom.extent)


def product(extents: Iterable[int | None]) -> int | None:
    """The product, None if a factor is unknown."""
    total = 1
    for extent in extents:
        if extent is None:
            return None
        total *= extent
    return total


def runs(axes: Sequence[Any], formula: Formula) -> list[list[Any]]:
    """Group neighbouring `axes` that are contiguous in every tensor read: each group can be fused into one loop.

    Only constant extents are joined: the strides of symbolic shapes are not known.
    """
    joined: list[list[Any]] = []
    for axis in axes:
        if joined and _follows(joined[-1][-1], axis, formula):
            joined[-1].append(axis)
        else:
            joined.append([axis])
    return joined


def _follows(outer: Any, inner: Any, formula: Formula) -> bool:
    if extent_of(inner) is None or extent_of(outer) is None or {outer.var, inner.var} & formula.entangled:
        return False
    for load in formula.loads:
        places = [[at for at, index in enumerate(load.indices) if index is axis.var] for axis in (outer, inner)]
        if not places[0] and not places[1]:
            continue
        if len(places[0]) != 1 or places[1] != [places[0][0] + 1]:
            return False
        if constant(load.producer.shape[places[1][0]]) != extent_of(inner):
            return False
    return True
