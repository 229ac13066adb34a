"""The short notation of `repr`: what users see of an expression in a console."""

from __future__ import annotations

from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Broadcast, BufferLoad, Call, Cast, Div, FloatImm, IntImm, Let, Load, SizeVar, Var
from tedsl.ir.text import EXPRESSIONS, TEXT, Handler, Part, Printer, infix, listed, mask_parts, number_text


def _int_imm(e: IntImm, p: Printer) -> list[Part]:
    return [str(e.value) if e.dtype is INT32 else f"({e.dtype}){e.value}"]


def _float_imm(e: FloatImm, p: Printer) -> list[Part]:
    number = number_text(e.value)
    if e.dtype.bits == 64:
        return [number]
    return [f"{number}f" if e.dtype.bits == 32 else f"{'half' if e.dtype.code == 'float' else 'bfloat16'}({number})"]


def _load(e: Load, p: Printer) -> list[Part]:
    return [f"{e.buffer_var.name}[", e.index, "]", *mask_parts(e.predicate)]


REPR: dict[type, Handler] = {
    **TEXT, **EXPRESSIONS,
    Var: lambda e, p: [e.name], SizeVar: lambda e, p: [e.name],
    IntImm: _int_imm, FloatImm: _float_imm, Div: infix("/"), Load: _load,
    Cast: lambda e, p: [f"{e.dtype}(", e.value, ")"],
    Let: lambda e, p: [f"(let {e.var.name} = ", e.value, " in ", e.body, ")"],
    Broadcast: lambda e, p: [f"x{e.lanes}(", e.value, ")"],
    Call: lambda e, p: [f"{e.op.name}(", *listed(e.args, ""), ")"],
    BufferLoad: lambda e, p: [e.buffer.name, *listed(e.indices)],
}
