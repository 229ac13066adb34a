"""Emits mathematical functions: of math.h, or our own."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import PRODUCT, Piece, call, infix
from tedsl.codegen.c.values.expr import rounded
from tedsl.errors import LoweringError
from tedsl.ir.expr import Call

_LIBM = frozenset(("exp", "exp2", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan",
                   "sinh", "cosh", "asinh", "acosh", "atanh", "pow", "fmod", "atan2", "hypot"))


def emit_math(out: Emitter, e: Call) -> Emission:
    """Emits a call of a mathematical function; 16-bit floats are computed in float32."""
    name, d, args = e.op.short, e.dtype, []
    if not d.is_float:
        raise LoweringError(f"{name} of {d}: it takes floats", hint="cast the argument: x.astype('float32')")
    for arg in e.args:
        args.append((yield arg, False))
    end = "" if d.bits == 64 else "f"
    out.module.math()
    if name == "rsqrt":
        one = Piece("1.0" if d.bits == 64 else "1.0f")
        return rounded(out, d, infix("/", PRODUCT, one, call("sqrt" + end, args[0])))
    if name in _LIBM:
        return rounded(out, d, call(name + end, *args))
    raise LoweringError(f"{name} is not available in C yet")
