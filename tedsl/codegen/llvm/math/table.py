"""The mathematical functions that are available, and their definitions as LLVM text.

`math_function(name, dtype, target)` gives an internal, always-inlined function on that scalar or vector dtype. The errors
in `MAX_ULP` are held by tests/codegen/test_math.py; docs/math.md is `documentation()`.
"""

from __future__ import annotations

from tedsl.codegen.formulas.language import Value
from tedsl.codegen.formulas.table import BINARY, LIBM, MAX_ULP, SINGLE, TRIGONOMETRIC, formula
from tedsl.codegen.llvm.math import remainder, trigonometric
from tedsl.codegen.llvm.math.avx512 import AVX512Body
from tedsl.codegen.llvm.math.function_body import LLVMBody
from tedsl.errors import InternalError
from tedsl.ir.dtype import DType
from tedsl.record import record


@record
class MathFunction:
    """An LLVM function: its symbol, its definition, the shared pieces (`name -> text`) that the module needs once."""

    symbol: str
    text: str
    needs: tuple[tuple[str, str], ...] = ()
    external: tuple[str, ...] = ()  # symbols of the C library


def math_function(name: str, dtype: DType, *, fma: bool, avx512: bool = False) -> MathFunction:
    """Returns the function `name` on float32 or float64, scalar or vector. fma, avx512: whether the target has the
    instructions.
    """
    if dtype.code != "float" or dtype.bits not in (32, 64):
        raise InternalError(f"math functions work on float32 and float64, not {dtype}: convert before")
    bits, lanes = dtype.bits, dtype.lanes
    symbol = f"tedsl.{name}.{LLVMBody(lanes, fma).suffix('f', bits)}"
    if (name, bits) in LIBM:
        return _remainder(name, lanes, bits, fma, symbol)
    if name in TRIGONOMETRIC:
        return MathFunction(symbol, trigonometric.body(name, lanes, bits, fma, symbol),
                            ((trigonometric.LARGE, trigonometric.large_reduction()),))
    out = (AVX512Body if avx512 and lanes > 1 else LLVMBody)(lanes, fma, looks_up=avx512)
    arguments = [Value(out, f"%{letter}", "f", bits) for letter in ("x", "y")[:2 if name in BINARY else 1]]
    result = formula(name, bits, out, arguments)
    t = out.type_of("f", bits)
    parameters = ", ".join(f"{t} {a.name}" for a in arguments)
    lines = "\n".join(out.lines)
    return MathFunction(symbol, f"define internal {t} @{symbol}({parameters}) alwaysinline nounwind {{\n{lines}\n"
                                f"  ret {t} {result.name}\n}}\n", tuple(out.needs.items()))


def _remainder(name: str, lanes: int, bits: int, fma: bool, symbol: str) -> MathFunction:
    if bits == 64 and not fma:
        return _libm(name, lanes, bits, symbol)
    slow = _libm(name, lanes, bits, f"{symbol}.slow", "noinline")
    return MathFunction(symbol, slow.text + remainder.body(lanes, bits, fma, symbol, slow.symbol), slow.needs, slow.external)


def _libm(name: str, lanes: int, bits: int, symbol: str, attributes: str = "") -> MathFunction:
    function = LIBM[name, bits]
    t = "float" if bits == 32 else "double"
    vector = t if lanes == 1 else f"<{lanes} x {t}>"
    if lanes == 1:
        lines, result = [f"  %r = call {t} @{function}({t} %x, {t} %y)"], "%r"
    else:
        lines, result = [], "poison"
        for k in range(lanes):
            lines += [f"  %x{k} = extractelement {vector} %x, i32 {k}", f"  %y{k} = extractelement {vector} %y, i32 {k}",
                      f"  %a{k} = call {t} @{function}({t} %x{k}, {t} %y{k})",
                      f"  %c{k} = insertelement {vector} {result}, {t} %a{k}, i32 {k}"]
            result = f"%c{k}"
    body = "\n".join(lines)
    header = f"define internal {vector} @{symbol}({vector} %x, {vector} %y) nounwind {attributes}"
    return MathFunction(symbol, f"{header} {{\n{body}\n  ret {vector} {result}\n}}\n",
                        ((function, f"declare {t} @{function}({t}, {t})"),), (function,))


def documentation() -> str:
    """Returns the table of functions as Markdown: the error bound of each in ulp, and those that call the C library lane by
    lane.
    """
    lines = ["# Mathematical functions", "",
             "Largest error in ulp of each function on every path (vector, scalar, with and without fused multiply-add),",
             "held by `tests/codegen/test_math.py`, and on other processors by `tests/cross/test_math.py`. Infinities, NaN,",
             "denormals and the sign of zero follow C; 32-bit ARM flushes denormals of float32 to zero in vectors.",
             "tanh and erf of float32, log, log2, log10, log1p and inverse hyperbolic functions of float64 have other formulas",
             "with AVX-512: a build for `-mcpu=x86-64-v3` has the last bits of other processors and of devices.",
             "float16 and bfloat16 are computed in float32. `libm` marks calls of the scalar C library, where a quotient is "
             "2**29 (2**50) or more;", "sqrt, floor, ceil, trunc, round, nearbyint, fabs and copysign are exact.", "",
             "| function | float32 | float64 | computed |", "|---|---|---|---|"]
    for name in sorted(MAX_ULP):
        single, double = MAX_ULP[name]
        ways = ["libm" if (name, bits) in LIBM else "in vectors" for bits in (32, 64)]
        if ways == ["in vectors", "in vectors"] and name not in SINGLE and name not in TRIGONOMETRIC and name != "rsqrt":
            ways[0] = "in vectors of float64"
        how = ways[0] if ways[0] == ways[1] else f"float32 {ways[0]}, float64 {ways[1]}"
        lines.append(f"| {name} | {single} | {double} | {how} |")
    return "\n".join(lines) + "\n"
