"""Emits calls of C functions by their symbols, `tir.call_extern`; the linker resolves them in the libraries of the process.

Their names carry a prefix in the object, so that a function of the program is never confused with one of tedsl or LLVM.
"""

from __future__ import annotations

import re

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.outside.callbacks import constant_text
from tedsl.codegen.llvm.types import register_type
from tedsl.errors import LoweringError
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.expr import Call, Expr, StringImm
from tedsl.runtime.symbols import EXTERN, extern_address

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$@]*")


def emit_c_function(out: Emitter, e: Call, name: str) -> str:
    """Emits the call, one per lane for vectors."""
    if not _NAME.fullmatch(name):
        raise LoweringError(f"{name!r} is not the name of a C function")
    if out.target.runs_here and not extern_address(name):
        raise LoweringError(f"there is no C function {name!r} in this process that machine code could call",
                            hint="load its library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    wide = [a.dtype for a in e.args[1:] if a.dtype.lanes not in (1, e.dtype.lanes)]
    if wide:
        raise LoweringError(f"the C function {name} takes one value at a time: its arguments have {wide[0].lanes} lanes, the "
                            f"call has {e.dtype.lanes}",
                            hint="give the call as many lanes as its arguments have; it is made lane by lane")
    result = " ".join(reversed(c_type(e.dtype, name)))
    types = [" ".join(c_type(a.dtype, name)) for a in e.args[1:]]
    values = [c_argument(out, a) for a in e.args[1:]]
    symbol = out.module.declare(EXTERN + name, f"declare {result} @{EXTERN}{name}({', '.join(types)})")
    lanes = e.dtype.lanes
    if lanes == 1:
        return _call(out, symbol, e, result, types, values)
    vector, of = "poison", register_type(e.dtype)
    for k in range(lanes):
        scalars = [v if a.dtype.lanes == 1 else out.assign(f"extractelement {register_type(a.dtype)} {v}, i64 {k}")
                   for a, v in zip(e.args[1:], values)]
        lane_value = _call(out, symbol, e, result, types, scalars)
        vector = out.assign(f"insertelement {of} {vector}, {register_type(e.dtype.element)} {lane_value}, i64 {k}")
    return vector


def _call(out: Emitter, symbol: str, e: Call, result: str, types: list[str], values: list[str]) -> str:
    arguments = ", ".join(f"{t} {v}" for t, v in zip(types, values))
    out.called()
    if e.dtype is VOID:
        out.line(f"call void {symbol}({arguments})")
        return "null"
    return out.assign(f"call {result} {symbol}({arguments})")


def c_argument(out: Emitter, arg: Expr) -> str:
    """Returns the value of an argument; a string is passed as a pointer to its bytes."""
    return constant_text(out, arg.value) if isinstance(arg, StringImm) else out.value(arg)


def c_type(d: DType, name: str) -> tuple[str, ...]:
    """Returns the C type in which a value of dtype `d` is passed, and the attribute by which the caller extends narrow
    integers.
    """
    if d.is_float and d.bits == 16:
        raise LoweringError(f"the C function {name} cannot take or return {d}", hint="cast to float32 or float64")
    t = register_type(d.element)
    return (t, "signext" if d.is_int else "zeroext") if d.is_bool or (d.is_integer and d.bits < 32) else (t,)
