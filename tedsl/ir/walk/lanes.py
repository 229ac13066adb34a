"""Single lanes of vector expressions as scalars: what is proved of a symbolic lane holds for the vector."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.ir import build
from tedsl.ir.expr import Add, BinaryOp, Broadcast, Call, Cast, Expr, IntImm, Load, Not, Ramp, Select, Shuffle, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import FOREIGN
from tedsl.ir.walk.visitor import post_order


def one_lane(expr: Expr, lane: Var) -> Expr | None:
    """The scalar value of `expr` in lane number `lane`; None if it is not computed lane by lane."""
    done: dict[Node, Expr | None] = {}
    for node in post_order(expr):
        if isinstance(node, Expr):
            done[node] = node if node.dtype.lanes == 1 else _lane(node, lane, done)
    return done[expr]


def _lane(node: Expr, lane: Var, done: dict[Node, Expr | None]) -> Expr | None:
    match node:
        case Ramp(base=base, stride=stride):
            return build.add(base, build.mul(stride, build.cast(stride.dtype, lane)))
        case Broadcast(value=value):
            return value
    parts = [done.get(child) for child in node.child_nodes()]
    scalars = [part for part in parts if part is not None]
    if len(scalars) < len(parts):
        return None
    match node:
        case BinaryOp():
            return build.binary(type(node), scalars[0], scalars[1])
        case Not():
            return build.logical_not(scalars[0])
        case Select():
            return build.select(scalars[0], scalars[1], scalars[2])
        case Cast(dtype=of):
            return build.cast(of.element, scalars[0])
        case Load(buffer_var=data) if node.predicate is None:
            return Load(node.dtype.element, data, scalars[0])
        case Call(op=op) if op.is_pure and op not in FOREIGN:
            return Call(node.dtype.element, op, tuple(scalars))
        case _:
            return None


def lane_of(vector: Expr, k: int) -> Expr:
    """Lane number `k` of `vector`, as an executable expression; a scalar is the same in all lanes."""
    if vector.dtype.lanes == 1:
        return vector
    match vector:
        case Broadcast(value=value):
            return value
        case Ramp(base=base, stride=stride):
            return build.add(base, build.mul(stride, k))
        case Add(a=a, b=b):
            return build.add(lane_of(a, k), lane_of(b, k))
        case _:
            return Shuffle((vector,), (IntImm(build.const(0).dtype, k),))


def lanes_of(indices: Sequence[Expr]) -> list[tuple[Expr, ...]]:
    """The indices of each element that an access touches, one tuple per lane; a scalar index is the same in all lanes."""
    lanes = max((index.dtype.lanes for index in indices), default=1)
    return [tuple(lane_of(index, k) for index in indices) for k in range(lanes)]
