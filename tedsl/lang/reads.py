"""The loads of a formula, each with the conditions under which it is evaluated."""

from __future__ import annotations

from collections.abc import Collection

from tedsl.ir.expr import (
    Add,
    Cast,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mul,
    ProducerLoad,
    Sub,
    Var,
)
from tedsl.ir.node import Node
from tedsl.ir.walk.accesses import MOST_PLACES, reads
from tedsl.ir.walk.around import Facts
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp, extent_of


def loads_of(bodies: tuple[Expr, ...], *more: Node) -> tuple[ProducerLoad, ...]:
    """Every load in `bodies`, each once, in order."""
    loads: dict[ProducerLoad, None] = {}
    for root in (*bodies, *more):
        for node in of_kinds(root, ProducerLoad):
            if type(node) is ProducerLoad:
                loads.setdefault(node)
    return tuple(loads)


def has_load(expr: Expr) -> bool:
    """Whether the value depends on the elements of a tensor."""
    return contains(expr, ProducerLoad)


def is_ragged(op: ComputeOp) -> bool:
    """Whether the range of a reduction is read from a tensor or depends on another axis."""
    axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    ends = [end for axis in op.reduce_axis if axis.dom is not None for end in (axis.dom.min, extent_of(axis))]
    return any(type(node) is ProducerLoad or node in axes for end in ends for node in post_order(end))


def takes_its_ends(index: Expr, axes: Collection[Var]) -> bool:
    """Whether `index` attains its minimum and maximum at corners of the domain, so that interval bounds are exact.

    True if every axis occurs once, in operations that are monotonic in each operand.
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
    """The loads of tensors in `body`, each with the facts that hold where it is evaluated. A load comes before those in its
    index.
    """
    loads = reads((body,), wanted=_is_tensor_load, outside_in=True, most_places=MOST_PLACES)
    return [(load.node, load.facts) for load in loads]


def _is_tensor_load(node: Node) -> bool:
    return type(node) is ProducerLoad
