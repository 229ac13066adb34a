"""Emits float operations of more than one instruction: NaN-propagating minimum and maximum, rounding to integers, fma."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.math.fma import FMA_F64, SYMBOL
from tedsl.codegen.llvm.types import float_splat, register_type, suffix, vector_of
from tedsl.codegen.llvm.values import halves
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Broadcast, Call, Cast, Expr, FloatImm, Max, Min


def rounded(out: Emitter, d: DType, value: str) -> str:
    """Emits the result of an operation of dtype `d` computed in the register type: 16-bit floats are rounded after each."""
    return halves.round_to(out, d, value) if d.bits == 16 else value


def never_nan(e: Expr) -> bool:
    """Tells whether `e` provably is not NaN: a constant, or an integer that was converted."""
    while isinstance(e, Broadcast):
        e = e.value
    if isinstance(e, FloatImm):
        return e.value == e.value
    return isinstance(e, Cast) and not e.value.dtype.is_float


def emit_minmax(out: Emitter, e: Min | Max) -> str:
    """Emits min or max: NaN if either operand is NaN, the second of two equal ones. One comparison suffices where an operand
    cannot be NaN.
    """
    t, mask = register_type(e.dtype), vector_of("i1", e.dtype.lanes)
    a, b = out.value(e.a), out.value(e.b)
    letter = "lt" if isinstance(e, Min) else "gt"
    if never_nan(e.b):  # unordered: a is NaN, and the result
        return out.assign(f"select {mask} {out.assign(f'fcmp u{letter} {t} {a}, {b}')}, {t} {a}, {t} {b}")
    better = None if never_nan(e.a) else _of_registers(out, e, a, b)
    if better is None:
        better = out.assign(f"select {mask} {out.assign(f'fcmp o{letter} {t} {a}, {b}')}, {t} {a}, {t} {b}")
    if never_nan(e.a):
        return better
    return out.assign(f"select {mask} {out.assign(f'fcmp uno {t} {a}, {a}')}, {t} {a}, {t} {better}")


def _of_registers(out: Emitter, e: Min | Max, a: str, b: str) -> str | None:
    """Emits x86's minimum or maximum instruction, register by register; None for vectors that do not fill registers.

    LLVM also selects the instruction for a comparison and a select, but merges those with the following select of NaN into two
    comparisons.
    """
    bits, lanes = e.dtype.bits, e.dtype.lanes
    width = min(bits * lanes, out.target.vector_bits)
    extension = {128: "sse2" if bits == 64 else "sse", 256: "avx", 512: "avx512"}.get(width)
    count = bits * lanes // width
    if out.target.architecture != "x86-64" or bits < 32 or extension is None or bits * lanes % width or count & (count - 1):
        return None
    t, each = register_type(e.dtype.with_lanes(width // bits)), width // bits
    full = f"llvm.x86.{extension}.{'min' if isinstance(e, Min) else 'max'}.{'pd' if bits == 64 else 'ps'}"
    full += f".{width}" if width > 128 else ""
    exceptions = ("", "") if width < 512 else (", i32", ", i32 4")  # 4: none but those that are on
    symbol = out.module.declare(full, f"declare {t} @{full}({t}, {t}{exceptions[0]})")
    parts = []
    for first in range(0, lanes, each):
        x, y = (_lanes(out, register_type(e.dtype), v, "poison", first, each) if count > 1 else v for v in (a, b))
        parts.append(out.assign(f"call {t} {symbol}({t} {x}, {t} {y}{exceptions[1]})"))
    while len(parts) > 1:
        joined = register_type(e.dtype.with_lanes(each))
        each *= 2
        parts = [_lanes(out, joined, x, y, 0, each) for x, y in zip(parts[::2], parts[1::2])]
    return parts[0]


def _lanes(out: Emitter, t: str, a: str, b: str, first: int, count: int) -> str:
    """Emits `count` lanes from `first` on of the concatenated vectors a and b of type `t`."""
    chosen = ", ".join(f"i32 {k}" for k in range(first, first + count))
    return out.assign(f"shufflevector {t} {a}, {t} {b}, <{count} x i32> <{chosen}>")


def intrinsic(out: Emitter, name: str, d: DType, *args: str) -> str:
    """Emits a call of the LLVM intrinsic `name` whose arguments and result are registers of dtype `d`."""
    t, known = register_type(d), out.module.cache
    call = known.get((name, d))
    if call is None:
        full = f"llvm.{name}.{suffix(d)}"
        symbol = out.module.declare(full, f"declare {t} @{full}({', '.join([t] * len(args))})")
        call = known[name, d] = f"call {t} {symbol}("
    return out.assign(f"{call}{', '.join([f'{t} {a}' for a in args])})")


def has_rounding(out: Emitter) -> bool:
    """Tells whether floor, ceil, trunc and nearbyint are instructions of the target; else LLVM would call libm."""
    return out.target.architecture in ("aarch64", "nvptx64") or "sse4.1" in out.target.features


def emit_rounding(out: Emitter, e: Call) -> str:
    """Emits floor, ceil, trunc, nearbyint or round."""
    name, d, x = e.op.short, e.dtype, out.value(e.args[0])
    if d.is_integer:
        return x
    if name == "round":
        return _round_half_away(out, d, x)
    return intrinsic(out, name, d, x) if has_rounding(out) else _emulated(out, name, d, x)


def _round_half_away(out: Emitter, d: DType, x: str) -> str:
    """Emits x rounded, halves away from 0: trunc(x), one further where the exact rest is at least a half.
    The sign of zero is kept.
    """
    t, mask = register_type(d), vector_of("i1", d.lanes)
    whole = intrinsic(out, "trunc", d, x) if has_rounding(out) else _emulated(out, "trunc", d, x)
    rest = intrinsic(out, "fabs", d, out.assign(f"fsub {t} {x}, {whole}"))
    far = out.assign(f"fcmp oge {t} {rest}, {float_splat(d, 0.5)}")
    step = out.assign(f"select {mask} {far}, {t} {float_splat(d, 1.0)}, {t} {float_splat(d, 0.0)}")
    moved = out.assign(f"fadd {t} {whole}, {intrinsic(out, 'copysign', d, step, x)}")
    return intrinsic(out, "copysign", d, moved, x)


def _emulated(out: Emitter, name: str, d: DType, x: str) -> str:
    """Emits a rounding without the instruction: adding and subtracting 2**23 (2**52 for doubles) rounds to nearest; the result
    is then corrected by 1 in the required direction.
    """
    t, mask = register_type(d), vector_of("i1", d.lanes)
    limit = float_splat(d, 2.0**52 if d.bits == 64 else 2.0**23)
    size = intrinsic(out, "fabs", d, x)
    near = out.assign(f"fsub {t} {out.assign(f'fadd {t} {size}, {limit}')}, {limit}")
    start = near if name in ("trunc", "nearbyint") else intrinsic(out, "copysign", d, near, x)
    if name == "nearbyint":
        moved = start
    else:
        compared, sign = ("olt", 1.0) if name == "ceil" else ("ogt", -1.0)
        against = size if name == "trunc" else x
        far = out.assign(f"fcmp {compared} {t} {start}, {against}")
        step = out.assign(f"select {mask} {far}, {t} {float_splat(d, sign)}, {t} {float_splat(d, 0.0)}")
        moved = out.assign(f"fadd {t} {start}, {step}")
    fractional = out.assign(f"fcmp olt {t} {size}, {limit}")
    return out.assign(f"select {mask} {fractional}, {t} {intrinsic(out, 'copysign', d, moved, x)}, {t} {x}")


def emit_fma(out: Emitter, e: Call) -> str:
    """Emits a * b + c, rounded once."""
    d = e.dtype
    a, b, c = [out.value(x) for x in e.args]
    t = register_type(d)
    if not d.is_float:
        return out.assign(f"add {t} {out.assign(f'mul {t} {a}, {b}')}, {c}")
    if out.target.has_fma:
        return rounded(out, d, intrinsic(out, "fma", d, a, b, c))
    if d.bits == 64:
        return _fma_of_doubles(out, d, a, b, c)
    return rounded(out, d, _fma_in_double(out, d, a, b, c))


def _fma_of_doubles(out: Emitter, d: DType, *args: str) -> str:
    """Emits the fma of doubles in integers, lane by lane."""
    out.module.definitions.setdefault(SYMBOL, FMA_F64)
    t, call = register_type(d), f"call double @{SYMBOL}("
    if d.lanes == 1:
        return out.assign(call + ", ".join(f"double {v}" for v in args) + ")")
    vector = "poison"
    for k in range(d.lanes):
        lane = [out.assign(f"extractelement {t} {v}, i64 {k}") for v in args]
        lane_value = out.assign(call + ", ".join(f"double {v}" for v in lane) + ")")
        vector = out.assign(f"insertelement {t} {vector}, double {lane_value}, i64 {k}")
    return vector


def _fma_in_double(out: Emitter, d: DType, a: str, b: str, c: str) -> str:
    """Emits the fma of floats in double: the product is exact, the sum rounded to odd, so that only the rounding to float
    counts.
    """
    f, t, i, mask = register_type(d), vector_of("double", d.lanes), vector_of("i64", d.lanes), vector_of("i1", d.lanes)
    x, y, z = (out.assign(f"fpext {f} {v} to {t}") for v in (a, b, c))
    product = out.assign(f"fmul {t} {x}, {y}")
    total = out.assign(f"fadd {t} {product}, {z}")
    back = out.assign(f"fsub {t} {total}, {product}")  # Knuth's two-sum: total + error is exact
    left = out.assign(f"fsub {t} {product}, {out.assign(f'fsub {t} {total}, {back}')}")
    error = out.assign(f"fadd {t} {left}, {out.assign(f'fsub {t} {z}, {back}')}")
    zero, one = ("0", "1") if d.lanes == 1 else ("zeroinitializer", "splat (i64 1)")
    nothing = "0x0000000000000000" if d.lanes == 1 else "zeroinitializer"
    bits = out.assign(f"bitcast {t} {total} to {i}")
    even = out.assign(f"icmp eq {i} {out.assign(f'and {i} {bits}, {one}')}, {zero}")
    inexact = out.assign(f"fcmp one {t} {error}, {nothing}")
    adjust = out.assign(f"and {mask} {even}, {inexact}")
    # Towards the error: away from zero where the error has the sign of the total.
    error_bits = out.assign(f"bitcast {t} {error} to {i}")
    against = out.assign(f"icmp slt {i} {out.assign(f'xor {i} {error_bits}, {bits}')}, {zero}")
    minus = "-1" if d.lanes == 1 else "splat (i64 -1)"
    step = out.assign(f"select {mask} {against}, {i} {minus}, {i} {one}")
    moved = out.assign(f"add {i} {bits}, {out.assign(f'select {mask} {adjust}, {i} {step}, {i} {zero}')}")
    return out.assign(f"fptrunc {t} {out.assign(f'bitcast {i} {moved} to {t}')} to {f}")
