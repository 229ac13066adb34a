"""Our own mathematical functions in C: the formulas of `codegen/formulas`, one constant to a line.

Operation for operation they are what the LLVM backend writes, so that both give the same bits; its formulas for AVX-512 alone
(`intervals.py`) are not here.
"""

from __future__ import annotations

from functools import cache

from tedsl.codegen.c.text.function import without_unused
from tedsl.codegen.c.text.types import float_text, integer_text
from tedsl.codegen.formulas.language import FunctionBody, Table, Value
from tedsl.codegen.formulas.table import BINARY, LIBM, TRIGONOMETRIC, formula
from tedsl.codegen.formulas.trigonometric import (
    LIMIT,
    NEAR,
    TWO_OVER_PI_WORDS,
    Reduced,
    finish,
    in_singles,
    reduce,
    reduce_fused,
    reduce_single,
)
from tedsl.ir.dtype import dtype

_OPERATORS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "and": "&", "or": "|", "xor": "^"}
_OF_BOOLS = {"and": "&&", "or": "||", "xor": "!="}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}
_WRAPPING = {"add": "add", "sub": "sub", "shl": "shl", "ashr": "shr", "sdiv": "truncdiv"}


class CBody(FunctionBody):
    """Collects the lines of one function body in C. A Value is the name of a constant, or a literal."""

    def type_of(self, kind: str, bits: int) -> str:
        return {"f": {32: "float", 64: "double"}.get(bits, ""), "i": f"int{bits}_t", "b": "bool"}[kind]

    def operation(self, name: str, kind: str, bits: int, *operands: Value) -> Value:
        text = self._text(name, kind, bits, [v.name for v in operands], operands[0])
        held = f"v{len(self.lines)}"
        self.lines.append(f"const {self.type_of(kind, bits)} {held} = {text};")
        return Value(self, held, kind, bits)

    def _text(self, name: str, kind: str, bits: int, of: list[str], first: Value) -> str:
        """Returns the expression of an operation. of: its operands; first: the first of them."""
        operation, _, condition = name.partition(" ")
        if condition:
            if condition == "uno":
                return " || ".join(f"{v} != {v}" for v in dict.fromkeys(of))
            return f"{of[0]} {_COMPARED[condition[-2:]]} {of[1]}"
        if name in _OPERATORS:
            return f"{of[0]} {_OF_BOOLS[name] if kind == 'b' else _OPERATORS[name]} {of[1]}"
        if name in _WRAPPING:
            return f"tedsl_{_WRAPPING[name]}_i{bits}({of[0]}, {of[1]})"
        if name == "bitcast":
            return f"tedsl_bits_{kind}{bits}_from_{first.kind}{first.bits}({of[0]})"
        if name in ("fpext", "fptrunc", "sext", "trunc", "sitofp", "fptosi"):
            return f"({self.type_of(kind, bits)}){of[0]}"
        if name.startswith("llvm."):
            return f"{name.removeprefix('llvm.')}{'' if bits == 64 else 'f'}({', '.join(of)})"
        return {"select": "{0} ? {1} : {2}", "not": "!{0}", "fneg": "-({0})"}[name].format(*of, "", "")

    def lookup(self, table: Table, index: Value) -> Value:
        of, name = self.type_of("f", table.bits), table.name.rpartition(".")[2] + "_table"
        values = ", ".join(float_text(value, dtype(f"float{table.bits}")) for value in table.values)
        line = f"static const {of} {name}[{len(table.values)}] = {{{values}}};"
        if line not in self.lines:
            self.lines.append(line)
        held = f"v{len(self.lines)}"
        self.lines.append(f"const {of} {held} = {name}[{index.name} & {len(table.values) - 1}];")
        return Value(self, held, "f", table.bits)

    def real(self, value: float, bits: int) -> Value:
        text = float_text(value, dtype(f"float{bits}"))
        return Value(self, f"({text})" if text[0] in "-(" else text, "f", bits)

    def integer(self, value: int, bits: int) -> Value:
        value &= (1 << bits) - 1
        text = integer_text(value - (1 << bits) if value >> (bits - 1) else value, dtype(f"int{bits}"))
        return Value(self, f"({text})" if text[0] == "-" else text, "i", bits)


@cache
def own_function(name: str, bits: int, fma: bool) -> str:
    """Returns the definition of tedsl_NAME_f32 or _f64, without what stands before it. fma: whether the target has that."""
    if name in TRIGONOMETRIC:
        return _trigonometric(name, bits, fma)
    type_, letters = "float" if bits == 32 else "double", ("x", "y")[:2 if name in BINARY else 1]
    header = f"{type_} tedsl_{name}_f{bits}({', '.join(f'{type_} {letter}' for letter in letters)})"
    if (name, bits) in LIBM:
        return _function(header, [f"return {LIBM[name, bits]}({', '.join(letters)});"])
    out = CBody(1, fma)
    result = formula(name, bits, out, [Value(out, letter, "f", bits) for letter in letters])
    return _function(header, without_unused([*out.lines, f"return {result.name};"]))


def _function(header: str, lines: list[str]) -> str:
    return "\n".join([header, "{", *("    " + line for line in lines), "}"]) + "\n"


def _trigonometric(name: str, bits: int, fma: bool) -> str:
    """Returns sin, cos or tan: the argument reduced, then the formulas of the rest; ±0 stays where the result is 0."""
    type_, reduced, whole = (("float", "tedsl_reduced_single", 32) if bits == 32 else ("double", "tedsl_reduced_angle", 64))
    out = CBody(1, fma)
    result = finish(out, name, Value(out, "n", "i", whole), Value(out, "high", "f", bits), Value(out, "low", "f", bits))
    value = result.name if name == "cos" else f"x == 0 ? x : {result.name}"
    return _function(f"{type_} tedsl_{name}_f{bits}({type_} x)", [
        f"{type_} high, low;", f"const int{whole}_t n = {reduced}(x, &high, &low);",
        *without_unused([*out.lines, f"return {value};"])])


@cache
def _reduced_angle(fma: bool) -> str:
    out = CBody(1, fma)
    parts = reduce(out, Value(out, "x", "f", 64))
    lines = [f"if (!(fabs(x) < {LIMIT!r})) {{", "    return tedsl_reduced_large_angle(x, high_of, low_of);", "}",
             *_results(out, parts)]
    return "/* x = n * pi/2 + high + low; returns n, of which the last two bits count. */\n" + _function(
        "int64_t tedsl_reduced_angle(double x, double *high_of, double *low_of)", lines)


@cache
def _reduced_single(fma: bool) -> str:
    near, wide, far = CBody(1, fma), CBody(1, fma), CBody(1, fma)
    parts = reduce_single(wide, Value(wide, "x", "f", 64))
    large = in_singles(Value(far, "n", "i", 64), Value(far, "large", "f", 64))
    lines = ["const double x = (double)angle;", f"if (!(fabs(x) < {LIMIT!r})) {{", "    double large, rest;",
             "    const int64_t n = tedsl_reduced_large_angle(x, &large, &rest);",
             *("    " + line for line in _results(far, large)), "}", *_results(wide, parts)]
    if fma:
        angle = reduce_fused(near, Value(near, "angle", "f", 32))
        lines = [f"if (fabsf(angle) < {NEAR!r}f) {{", *("    " + line for line in _results(near, angle)), "}", *lines]
    return "/* angle = n * pi/2 + high + low; returns n, of which the last two bits count. */\n" + _function(
        "int32_t tedsl_reduced_single(float angle, float *high_of, float *low_of)", lines)


def _results(out: CBody, parts: Reduced) -> list[str]:
    n, high, low = parts
    return [*out.lines, f"*high_of = {high.name};", f"*low_of = {low.name};", f"return {n.name};"]


def own_part(name: str, fma: bool) -> str:
    """Returns the definition of a function that own functions call."""
    parts = {"tedsl_reduced_angle": _reduced_angle, "tedsl_reduced_single": _reduced_single}
    return parts[name](fma) if name in parts else _LARGE_ANGLE


# The product of the mantissa with the 192 bits of 2/pi that matter, modulo 4 with 190 bits after the point.
_LARGE_ANGLE = f"""
int64_t tedsl_reduced_large_angle(double x, double *high_of, double *low_of)
{{
    /* The first bits of 2/pi, after one zero word. */
    static const uint64_t words[{len(TWO_OVER_PI_WORDS)}] = {{
        {(","+chr(10)+"        ").join(", ".join(f"UINT64_C(0x{word:016X})" for word in TWO_OVER_PI_WORDS[k:k + 4])
                                       for k in range(0, len(TWO_OVER_PI_WORDS), 4))}
    }};
    const uint64_t bits = (uint64_t)tedsl_bits_i64_from_f64(x);
    const uint64_t biased = (bits >> 52) & 2047u;
    const uint64_t e = biased == 2047u ? 0 : biased - 1075u;
    const uint64_t m = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(0x10000000000000);
    uint64_t w[3], f[3], high, low, flip, n;
    int32_t zeros, k;
    double large, small, scale, part, y;
    for (k = 0; k < 3; ++k) {{
        const uint64_t at = e + 62u + 64u * (uint64_t)k;
        const uint64_t shift = at % 64u;
        const uint64_t *const word = words + at / 64u;
        w[k] = shift == 0 ? word[0] : (word[0] << shift) | (word[1] >> (64u - shift));
    }}
    tedsl_wide_product(m, w[2], &high, &f[2]);
    tedsl_wide_product(m, w[1], &f[0], &low);
    f[1] = low + high;
    f[0] += m * w[0] + (f[1] < low ? 1u : 0u);
    n = f[0] >> 62;
    f[0] = (f[0] << 2) | (f[1] >> 62);
    f[1] = (f[1] << 2) | (f[2] >> 62);
    f[2] <<= 2;
    n += f[0] >> 63;
    flip = (f[0] >> 63) != 0 ? ~UINT64_C(0) : 0;
    for (k = 0; k < 3; ++k) {{
        f[k] ^= flip;
    }}
    zeros = tedsl_clz_u64(f[0]);
    if (zeros == 64) {{
        f[0] = f[1];
        f[1] = f[2];
    }} else if (zeros > 0) {{
        f[0] = (f[0] << zeros) | (f[1] >> (64 - zeros));
        f[1] = (f[1] << zeros) | (f[2] >> (64 - zeros));
    }}
    part = (double)(f[0] >> 32) * 2.3283064365386963e-10;
    small = (double)(f[0] & 0xFFFFFFFFu) * 5.421010862427522e-20 + (double)(f[1] >> 32) * 1.262177448353619e-29;
    large = part + small;
    small = small - (large - part);
    scale = tedsl_bits_f64_from_i64((int64_t)((1023u - (uint64_t)zeros) << 52)) * (((bits ^ flip) >> 63) != 0 ? -1.0 : 1.0);
    large = large * scale;
    small = small * scale;
    n = (bits >> 63) != 0 ? 0 - n : n;
    {{
        /* times pi/2 in two parts: the products with the high half of `large` are exact */
        const double first = tedsl_bits_f64_from_i64((int64_t)((uint64_t)tedsl_bits_i64_from_f64(large) &
                                                               UINT64_C(0xFFFFFFFFF8000000)));
        const double second = large - first;
        const double product = large * 1.5707963267948966;
        const double error = ((first * 1.5707963109016418 - product) + first * 1.5893254712295857e-08
                              + second * 1.5707963109016418) + second * 1.5893254712295857e-08;
        const double rest = error + (small * 1.5707963267948966 + large * 6.123233995736766e-17);
        y = product + rest;
        *low_of = rest - (y - product);
    }}
    *high_of = biased == 2047u ? x - x : y;
    return (int64_t)n;
}}
"""
