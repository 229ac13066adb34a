"""fmod in LLVM IR: exact, in vectors of float64 where the quotient is moderate, else by the C library lane by lane."""

from __future__ import annotations

from tedsl.codegen.formulas.language import INFINITY, Value
from tedsl.codegen.llvm.math.function_body import LLVMBody

# Quotients below these bounds are known to the nearest integer or nearly so, and their products with a divisor are exact: of 29
# and 24 bits in float64, of any size within a fused multiply-add.
LIMITS = {32: 2.0**29, 64: 2.0**50}


def body(lanes: int, bits: int, fma: bool, symbol: str, slow: str) -> str:
    """Returns the definition of fmod on `lanes` floats of `bits`; those of 64 need fma. slow: a function for all arguments.

    r = |x| - n |y| for the integer n nearest to |x| / |y|, and |y| more where that is negative: floats, with no rounding. Where
    the result is NaN, so is r: lanes that a mask leaves 0 / 0 do not make a vector slow.
    """
    out = LLVMBody(lanes, fma)
    x, y = (Value(out, f"%{letter}", "f", bits) for letter in "xy")
    a, b = ((v.widen() if bits == 32 else v).abs() for v in (x, y))
    quotient = a / b
    beyond = ((quotient < LIMITS[bits]) & (b < INFINITY)).invert() & (b > 0.0) & (a < INFINITY)
    n, _ = quotient.nearest()
    r = out.fma(-n, b, a)
    r = (r < 0.0).choose(r + b, r)
    result = (r.narrow() if bits == 32 else r).signed_as(x)
    any_beyond = out.any_lane(beyond)
    t = out.type_of("f", bits)
    lines = "\n".join(out.lines)
    return (f"define internal {t} @{symbol}({t} %x, {t} %y) alwaysinline nounwind {{\n{lines}\n"
            f"  br i1 {any_beyond}, label %slow, label %done\n"
            f"slow:\n  %s = call {t} @{slow}({t} %x, {t} %y)\n  br label %done\n"
            f"done:\n  %r = phi {t} [ {result.name}, %0 ], [ %s, %slow ]\n  ret {t} %r\n}}\n")
