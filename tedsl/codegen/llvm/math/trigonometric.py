"""sin, cos, tan in LLVM IR. Arguments are reduced exactly, however large.

Small ones as `formulas/trigonometric.py` says. Large ones, of which float32's are doubles too, by Payne and Hanek (1983): the
product of the mantissa with a window of 192 bits of 2/pi, lane by lane in integers, in a branch that ordinary arguments
never take.
"""

from __future__ import annotations

from tedsl.codegen.formulas.language import Value
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
from tedsl.codegen.llvm.math.function_body import LLVMBody

LARGE = "tedsl.rem_pio2_large"


def large_reduction() -> str:
    """Returns the scalar function that reduces |x| >= LIMIT to {n mod 4, high, low}; NaN for inf and NaN.

    x = m * 2**e with a 53-bit integer m. Bits of 2/pi of weight above 2**(2 - e) give multiples of 4 and are dropped: the
    window of 192 bits from position e - 1 on, times m modulo 2**192, is x * 2/pi modulo 4 with 190 bits after the point.
    """
    words = ", ".join(f"i64 {w - (1 << 64) if w >> 63 else w}" for w in TWO_OVER_PI_WORDS)
    size = len(TWO_OVER_PI_WORDS)
    return f"""
@{LARGE}.bits = private unnamed_addr constant [{size} x i64] [{words}]
define private i64 @{LARGE}.word(i64 %at) alwaysinline nounwind {{
  %index = lshr i64 %at, 6
  %shift = and i64 %at, 63
  %p = getelementptr i64, ptr @{LARGE}.bits, i64 %index
  %a = load i64, ptr %p
  %next = getelementptr i64, ptr %p, i64 1
  %b = load i64, ptr %next
  %a.wide = zext i64 %a to i128
  %b.wide = zext i64 %b to i128
  %a.high = shl i128 %a.wide, 64
  %both = or i128 %a.high, %b.wide
  %s = zext i64 %shift to i128
  %moved = shl i128 %both, %s
  %top = lshr i128 %moved, 64
  %word = trunc i128 %top to i64
  ret i64 %word
}}
define private {{ i64, double, double }} @{LARGE}(double %x) noinline nounwind {{
  %bits = bitcast double %x to i64
  %biased.sign = lshr i64 %bits, 52
  %biased = and i64 %biased.sign, 2047
  %special = icmp eq i64 %biased, 2047
  %e.raw = sub i64 %biased, 1075
  %e = select i1 %special, i64 0, i64 %e.raw
  %fraction = and i64 %bits, {(1 << 52) - 1}
  %m = or i64 %fraction, {1 << 52}
  %at0 = add i64 %e, 62
  %at1 = add i64 %e, 126
  %at2 = add i64 %e, 190
  %w0 = call i64 @{LARGE}.word(i64 %at0)
  %w1 = call i64 @{LARGE}.word(i64 %at1)
  %w2 = call i64 @{LARGE}.word(i64 %at2)
  %m.wide = zext i64 %m to i128
  %w1.wide = zext i64 %w1 to i128
  %w2.wide = zext i64 %w2 to i128
  %p2 = mul i128 %m.wide, %w2.wide
  %p2.low = trunc i128 %p2 to i64
  %p2.high = lshr i128 %p2, 64
  %p1 = mul i128 %m.wide, %w1.wide
  %p2.top = trunc i128 %p2.high to i64
  %p1.low = trunc i128 %p1 to i64
  %p1.high = lshr i128 %p1, 64
  %p1.top = trunc i128 %p1.high to i64
  %middle.low = add i64 %p1.low, %p2.top
  %wrapped = icmp ult i64 %middle.low, %p2.top
  %bit = zext i1 %wrapped to i64
  %carry = add i64 %p1.top, %bit
  %p0 = mul i64 %m, %w0
  %top = add i64 %p0, %carry
  %quadrant.floor = lshr i64 %top, 62
  %f0.a = shl i64 %top, 2
  %f0.b = lshr i64 %middle.low, 62
  %f0 = or i64 %f0.a, %f0.b
  %f1.a = shl i64 %middle.low, 2
  %f1.b = lshr i64 %p2.low, 62
  %f1 = or i64 %f1.a, %f1.b
  %f2 = shl i64 %p2.low, 2
  %up = lshr i64 %f0, 63
  %quadrant.near = add i64 %quadrant.floor, %up
  %flip = ashr i64 %f0, 63
  %g0 = xor i64 %f0, %flip
  %g1 = xor i64 %f1, %flip
  %g2 = xor i64 %f2, %flip
  %zeros = call i64 @llvm.ctlz.i64(i64 %g0, i1 false)
  %h0 = call i64 @llvm.fshl.i64(i64 %g0, i64 %g1, i64 %zeros)
  %h1 = call i64 @llvm.fshl.i64(i64 %g1, i64 %g2, i64 %zeros)
  %none = icmp eq i64 %zeros, 64
  %n0 = select i1 %none, i64 %g1, i64 %h0
  %n1 = select i1 %none, i64 %g2, i64 %h1
  %a = lshr i64 %n0, 32
  %b = and i64 %n0, 4294967295
  %c = lshr i64 %n1, 32
  %a.f = uitofp i64 %a to double
  %b.f = uitofp i64 %b to double
  %c.f = uitofp i64 %c to double
  %a.s = fmul double %a.f, 0x3DF0000000000000
  %b.s = fmul double %b.f, 0x3BF0000000000000
  %c.s = fmul double %c.f, 0x39F0000000000000
  %bc = fadd double %b.s, %c.s
  %hi = fadd double %a.s, %bc
  %hi.part = fsub double %hi, %a.s
  %lo = fsub double %bc, %hi.part
  %scale.e = sub i64 1023, %zeros
  %scale.bits = shl i64 %scale.e, 52
  %scale = bitcast i64 %scale.bits to double
  %sign.bits = xor i64 %bits, %flip
  %negative = icmp slt i64 %sign.bits, 0
  %one = select i1 %negative, double -1.0, double 1.0
  %factor = fmul double %scale, %one
  %hi.s = fmul double %hi, %factor
  %lo.s = fmul double %lo, %factor
  %below = icmp slt i64 %bits, 0
  %quadrant.minus = sub i64 0, %quadrant.near
  %quadrant = select i1 %below, i64 %quadrant.minus, i64 %quadrant.near
  %split.bits = bitcast double %hi.s to i64
  %split.cut = and i64 %split.bits, -134217728
  %x1 = bitcast i64 %split.cut to double
  %x2 = fsub double %hi.s, %x1
  %product = fmul double %hi.s, 0x3FF921FB54442D18
  %t0 = fmul double %x1, 0x3FF921FB50000000
  %t1 = fsub double %t0, %product
  %t2 = fmul double %x1, 0x3E5110B460000000
  %t3 = fadd double %t1, %t2
  %t4 = fmul double %x2, 0x3FF921FB50000000
  %t5 = fadd double %t3, %t4
  %t6 = fmul double %x2, 0x3E5110B460000000
  %t7 = fadd double %t5, %t6
  %t8 = fmul double %lo.s, 0x3FF921FB54442D18
  %t9 = fmul double %hi.s, 0x3C91A62633145C07
  %t10 = fadd double %t8, %t9
  %rest = fadd double %t7, %t10
  %y = fadd double %product, %rest
  %y.part = fsub double %y, %product
  %y.low = fsub double %rest, %y.part
  %y.nan = fsub double %x, %x
  %r.high = select i1 %special, double %y.nan, double %y
  %r0 = insertvalue {{ i64, double, double }} poison, i64 %quadrant, 0
  %r1 = insertvalue {{ i64, double, double }} %r0, double %r.high, 1
  %r2 = insertvalue {{ i64, double, double }} %r1, double %y.low, 2
  ret {{ i64, double, double }} %r2
}}"""


def body(name: str, lanes: int, bits: int, fma: bool, symbol: str) -> str:
    """Returns the definition of sin, cos or tan on `lanes` floats of `bits`.

    It goes on to a function that is not inlined where a lane is too large for it. The result of a lane does not depend on the
    others: each function chooses for each lane the reduction that is used for that argument alone.
    """
    slow = _slow_path(name, lanes, bits, fma, symbol)
    if bits == 64 or not fma:
        return slow + _path(name, lanes, bits, fma, symbol, "alwaysinline", LIMIT, f"{symbol}.slow")
    return (slow + _path(name, lanes, bits, fma, f"{symbol}.far", "noinline", LIMIT, f"{symbol}.slow") +
            _path(name, lanes, bits, fma, symbol, "alwaysinline", NEAR, f"{symbol}.far"))


def _path(name: str, lanes: int, bits: int, fma: bool, symbol: str, attribute: str, limit: float, beyond: str) -> str:
    """Returns the function `symbol` for arguments below `limit`; it calls the function `beyond` if there are others."""
    out = LLVMBody(lanes, fma)
    x = Value(out, "%x", "f", bits)
    result = _finished(out, name, x, *_reduced(out, x, near_only=limit == NEAR))
    any_beyond = out.any_lane(x.abs() >= limit)  # NaN stays NaN on the way of small ones
    t, lines = out.type_of("f", bits), "\n".join(out.lines)
    return (f"define internal {t} @{symbol}({t} %x) {attribute} nounwind {{\n{lines}\n"
            f"  br i1 {any_beyond}, label %beyond, label %done\n"
            f"beyond:\n  %s = call {t} @{beyond}({t} %x)\n  br label %done\n"
            f"done:\n  %r = phi {t} [ {result.name}, %0 ], [ %s, %beyond ]\n  ret {t} %r\n}}\n")


def _reduced(out: LLVMBody, x: Value, *, near_only: bool = False) -> Reduced:
    """Reduces |x| < LIMIT; near_only: |x| < NEAR alone, with fewer operations."""
    if x.bits == 64:
        return reduce(out, x)
    if not out.has_fma:
        return reduce_single(out, x.widen())
    near = reduce_fused(out, x)
    if near_only:
        return near
    return _chosen(x.abs() < NEAR, near, reduce_single(out, x.widen()))


def _chosen(condition: Value, first: Reduced, second: Reduced) -> Reduced:
    quadrant, high, low = (condition.choose(a, b) for a, b in zip(first, second))
    return quadrant, high, low


def _finished(out: LLVMBody, name: str, x: Value, quadrant: Value, high: Value, low: Value) -> Value:
    """The result, whose sign is that of `x` where it is 0: -0.0 - n * c loses it."""
    result = finish(out, name, quadrant, high, low)
    return result if name == "cos" else x.equals(0.0).choose(x, result)


def _slow_path(name: str, lanes: int, bits: int, fma: bool, symbol: str) -> str:
    """Computes each lane on its own: small arguments as `_reduced` does, large ones by `large_reduction`."""
    out = LLVMBody(1, fma)
    t = "float" if bits == 32 else "double"
    vector = t if lanes == 1 else f"<{lanes} x {t}>"
    lane_function = f"{symbol}.one"
    x = Value(out, "%x", "f", bits)
    small = x.abs() < LIMIT
    wide = x.widen() if bits == 32 else x
    far = small.choose(2.0**30, wide)  # the reduction is for large arguments only
    parts = out.emit(f"call {{ i64, double, double }} @{LARGE}(double {far.name})", "f", 64).name
    quadrant, high, low = (
        out.emit(f"extractvalue {{ i64, double, double }} {parts}, {k}", kind, 64) for k, kind in enumerate("iff"))
    large = in_singles(quadrant, high) if bits == 32 else (quadrant, high, low)
    result = _finished(out, name, x, *_chosen(small, _reduced(out, small.choose(x, 0.0)), large))
    scalar = (f"define internal {t} @{lane_function}({t} %x) noinline nounwind {{\n" + "\n".join(out.lines) +
              f"\n  ret {t} {result.name}\n}}\n")
    calls, previous = ([], "poison") if lanes > 1 else ([f"  %r = call {t} @{lane_function}({t} %x)"], "%r")
    for k in range(lanes if lanes > 1 else 0):
        calls += [f"  %a{k} = extractelement {vector} %x, i32 {k}", f"  %b{k} = call {t} @{lane_function}({t} %a{k})",
                  f"  %c{k} = insertelement {vector} {previous}, {t} %b{k}, i32 {k}"]
        previous = f"%c{k}"
    return (scalar + f"define internal {vector} @{symbol}.slow({vector} %x) noinline nounwind {{\n" + "\n".join(calls) +
            f"\n  ret {vector} {previous}\n}}\n")
