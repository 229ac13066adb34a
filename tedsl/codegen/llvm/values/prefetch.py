"""Emits prefetches of lines of memory."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.errors import LoweringError
from tedsl.ir.build import as_int
from tedsl.ir.expr import Call, Expr, IntImm, Load, Max, Min
from tedsl.ir.ops import ADDRESS_OF


def emit_prefetch(out: Emitter, e: Call) -> str:
    """Emits a prefetch of an address. Further constant arguments: 1 for a write; the locality, 0 to 3; 1 for data."""
    numbers = ", ".join(f"i32 {as_int(arg)}" for arg in e.args[1:4])
    if len(e.args) != 4 or "None" in numbers:
        raise LoweringError("tir.prefetch takes an address and three constants", hint="prefetch(address, 0, 3, 1)")
    symbol = out.module.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    out.line(f"call void {symbol}(ptr {out.value(_unclamped(e.args[0]))}, {numbers})")
    return "0"


def _unclamped(address: Expr) -> Expr:
    """The address of an element whose index is kept within constant bounds, without these: a prefetch beyond the memory does
    nothing.
    """
    while isinstance(address, Call) and address.op is ADDRESS_OF and isinstance(load := address.args[0], Load) and \
            isinstance(load.index, (Min, Max)) and isinstance(load.index.b, IntImm):
        address = Call(address.dtype, address.op, (Load(load.dtype, load.buffer_var, load.index.a),))
    return address
