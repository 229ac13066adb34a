"""Emits mathematical functions: of math.h, or our own, which are formulas of `codegen/formulas`."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.prelude.formulas import own_function, own_part
from tedsl.codegen.c.text.module_text import ModuleText
from tedsl.codegen.c.text.piece import PRODUCT, Piece, call, infix
from tedsl.codegen.c.values.expr import rounded
from tedsl.codegen.formulas.table import TRIGONOMETRIC, has_function
from tedsl.errors import LoweringError
from tedsl.ir.expr import Call

_NOT_IN_C = ("exp10", "sigmoid")  # which are ours in any case


def emit_math(out: Emitter, e: Call) -> Emission:
    """Emits a call of a mathematical function; 16-bit floats are computed in float32."""
    name, d, args = e.op.short, e.dtype, []
    if not d.is_float:
        raise LoweringError(f"{name} of {d}: it takes floats", hint="cast the argument: x.astype('float32')")
    if not has_function(name):
        raise LoweringError(f"{name} is not available in C yet", hint="call a C function: tir.call_pure_extern")
    for arg in e.args:
        args.append((yield arg, False))
    out.module.math()
    bits, end = (64, "") if d.bits == 64 else (32, "f")
    if name == "rsqrt":
        one = Piece("1.0" if d.bits == 64 else "1.0f")
        return rounded(out, d, infix("/", PRODUCT, one, call("sqrt" + end, *args)))
    if out.module.dialect.math == "own" or name in _NOT_IN_C:
        return rounded(out, d, call(_own(out.module, name, bits), *args))
    return rounded(out, d, call(name + end, *args))


def _own(module: ModuleText, name: str, bits: int) -> str:
    """Returns the name of our own function, which the module defines."""
    symbol, fma = f"tedsl_{name}_f{bits}", module.dialect.fma
    if symbol not in module.helpers:
        if name in TRIGONOMETRIC:
            for part in ("tedsl_reduced_large_angle", "tedsl_reduced_single" if bits == 32 else "tedsl_reduced_angle"):
                if part not in module.helpers:
                    module.add(part, own_part(part, fma))
        module.add(symbol, own_function(name, bits, fma))
    return symbol
