"""Replace marked loops that copy an array by a call of the machine's, which the program writes.

Of loops `B[i] = A[i + 2]` with the pragma "copy" stays what the intrinsic writes for the n elements of A from 2 on and B.
The loops may pad: their value is then `select(condition, A[...], pad)`, with bounds of the loops as the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bound import detect_clip_bound
from tedsl.arith.linear import detect_linear_equation
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.expr import Call, Cast, Expr, Load, Select
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import AttrStmt, For, Stmt, Store
from tedsl.ir.walk.rewriter import Rewriter

Intrinsic = Callable[[Buffer, Buffer, tuple[Expr, ...], tuple[Expr, ...], Any], Stmt]


def inject_copies(func: PrimFunc, pragma: str, intrinsic: Intrinsic) -> PrimFunc:
    """Returns `func` with what `intrinsic` returns in the place of each copy with the pragma. It takes the source and the
    target, as buffers with strides, and where the loops pad the elements to write before and after the source in each dimension
    and their value; () and None where they do not.

    Raises LoweringError for marked loops that do more than copy.
    """
    return func.with_body(_Copies(f"pragma_{pragma}", intrinsic)(func.body))


class _Copies(Rewriter):
    def __init__(self, key: str, intrinsic: Intrinsic) -> None:
        super().__init__()
        self.key, self.intrinsic = key, intrinsic

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, AttrStmt) or node.attr_key != self.key:
            return node
        found = _copy_of(node.body)
        if found is None:
            raise LoweringError(f"{self.key}: the loops are no copy of an array",
                                hint="a copy stores an element that it loads; its indices are sums of multiples of its loops")
        return self.intrinsic(*found)


def _copy_of(stmt: Stmt) -> tuple[Any, ...] | None:
    """The arguments of the intrinsic for the loops, None where they are no copy."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, Store) or any(build.as_int(loop.min) != 0 for loop in loops):
        return None
    condition, value, pad = _parts_of(stmt.value)
    if not isinstance(value, Load):
        return None
    names = [loop.loop_var for loop in loops]
    to, source = detect_linear_equation(stmt.index, names), detect_linear_equation(value.index, names)
    if not to or not source:
        return None
    target = _buffer(stmt, [loop.extent for loop in loops], to)
    if condition is None:
        return _buffer(value, [loop.extent for loop in loops], source), target, (), (), None
    ends = detect_clip_bound(condition, names)
    return _padded(value, loops, source, ends, target, pad) if ends else None


def _parts_of(value: Expr) -> tuple[Expr | None, Expr, Expr | None]:
    """The condition under which something is copied, what is copied then, and what is written else."""
    condition: Expr | None = None
    pad: Expr | None = None
    if isinstance(value, Select):
        condition, pad, value = value.condition, value.false_value, value.true_value
    elif isinstance(value, Call) and value.op is IF_THEN_ELSE:
        condition, value, pad = value.args
    return condition, value.value if isinstance(value, Cast) else value, pad


def _padded(load: Load, loops: Sequence[For], source: list[Expr], ends: Sequence[Expr | None], target: Buffer,
            pad: Expr | None) -> tuple[Any, ...]:
    """The arguments for a copy that pads: only what is inside of `ends` is in the source."""
    simplify = Analyzer().simplify
    before: list[Expr] = []
    after: list[Expr] = []
    shape: list[Expr] = []
    offset = source[-1]
    for dim, loop in enumerate(loops):
        low, high = ends[2 * dim], ends[2 * dim + 1]
        zero = build.const(0, loop.extent.dtype)
        before.append(zero if low is None else simplify(build.maximum(low, zero)))
        after.append(zero if high is None else simplify(build.maximum(loop.extent - high - 1, zero)))
        offset = simplify(offset + before[-1] * source[dim])
        shape.append(simplify(loop.extent - before[-1] - after[-1]))
    return _buffer(load, shape, [*source[:-1], offset]), target, tuple(before), tuple(after), pad


def _buffer(access: Any, shape: Sequence[Expr], places: Sequence[Expr]) -> Buffer:
    """The elements that an access reaches: `places` are the strides and the offset."""
    of = access.value.dtype if isinstance(access, Store) else access.dtype
    strides = list(places[:-1]) or [build.const(1)]
    return decl_buffer(list(shape) or [1], of, access.buffer_var.name, data=access.buffer_var, strides=strides,
                       elem_offset=places[-1])
