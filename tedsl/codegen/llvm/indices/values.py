"""Tells which expressions are index arithmetic, and converts indices to data of their dtype."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.forms import AnyIndex, Index, Ramp
from tedsl.codegen.llvm.indices.vectors import as_lanes, narrow, ramp_lanes
from tedsl.ir import expr as ir
from tedsl.ir.dtype import DType
from tedsl.ir.walk.index_arithmetic import is_index_arithmetic


def is_index(out: Emitter, e: ir.Expr) -> bool:
    """Tells whether `e` consists of constants, loop variables and sizes alone, in int32 or int64, so that no step can wrap."""
    known = out.purity.get(e)
    return known if known is not None else is_index_arithmetic(e, out.scope.index.__contains__, out.purity)


def leaves_its_dtype(out: Emitter, *operands: ir.Expr) -> bool:
    """Tells whether one of the `operands`, all index arithmetic of 32 bits, may have a value that does not fit 32 bits."""
    return all(e.dtype.is_int and e.dtype.bits == 32 and is_index(out, e) for e in operands) and not all(
        low >= -2**31 and high < 2**31 for low, high in (out.index(e).bounds() for e in operands))


def as_value(out: Emitter, index: AnyIndex, d: DType) -> str:
    """Emits an index as data of dtype `d`: a value that does not fit wraps here, not at an intermediate step."""
    if isinstance(index, Index):
        return narrow(out, index, d)
    return ramp_lanes(out, index, d.bits) if isinstance(index, Ramp) else as_lanes(out, index, d.bits)
