"""The arguments of `tir.call_packed` that are arrays."""

from __future__ import annotations

from tedsl.ir.buffer import Buffer
from tedsl.ir.build import as_int, mul
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.ops import ACCESS_PTR, MAKE_ARRAY
from tedsl.record import record


@record
class ArrayArgument:
    """A region of the memory `data`, from element `offset` on. strides: in elements; empty: compact row-major.
    read_only: the called function may not write to it.
    """

    data: Var
    dtype: DType
    offset: Expr
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    read_only: bool


def array_argument(arg: Expr) -> ArrayArgument | None:
    """Returns the array that `arg` passes: a buffer, or the elements behind a pointer in a row; None for anything else."""
    match arg:
        case Call(op=op, args=(Var() as data, Call(args=shape), strides, _, marker, offset)) if op is MAKE_ARRAY:
            steps = strides.args if isinstance(strides, Call) else ()
            return ArrayArgument(data, marker.dtype, offset, shape, steps, getattr(marker, "value", 0) == 1)
        case Call(op=op, args=(marker, Var() as data, offset, extent, mask)) if op is ACCESS_PTR:
            lanes = marker.dtype.lanes
            return ArrayArgument(data, marker.dtype.element, mul(offset, lanes), (mul(extent, lanes),), (),
                                 not (as_int(mask) or 0) & Buffer.WRITE)
    return None
