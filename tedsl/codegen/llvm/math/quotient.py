"""Quotients of vectors of integers of 64 bits in LLVM IR: as float64 where these hold all operands, else lane by lane."""

from __future__ import annotations

from tedsl.codegen.llvm.types import vector_of

# Below this bound operands are exact in float64, and a quotient that is no integer is further from one than the rounding. A
# float64 between 2**52 and 2**53 has its integer in its lower bits: so added to 3 * 2**51, numbers below the bound change form.
_BOUND = 1 << 51
_SHIFT = 3.0 * 2**51
_SHIFT_BITS = 0x4338000000000000


def body(lanes: int, signed: bool, converts: bool, symbol: str) -> str:
    """Returns the definition of x / y on `lanes` integers of 64 bits, rounded towards zero; y is neither 0 nor, signed, -1.

    converts: whether the processor converts vectors of them to float64 and back.
    """
    t, mask, floats = vector_of("i64", lanes), vector_of("i1", lanes), vector_of("double", lanes)
    lines = []
    for v in "xy":
        if signed:
            lines.append(f"%{v}.up = add {t} %{v}, splat (i64 {_BOUND})")
        lines.append(f"%{v}.fits = icmp ult {t} %{v}{'.up' if signed else ''}, splat (i64 {2 * _BOUND if signed else _BOUND})")
    lines += [f"%fits = and {mask} %x.fits, %y.fits", f"%packed = bitcast {mask} %fits to i{lanes}",
              f"%all = icmp eq i{lanes} %packed, -1", "br i1 %all, label %fast, label %slow"]
    fast = []
    for v in "xy":
        if converts:
            fast.append(f"%{v}.float = sitofp {t} %{v} to {floats}")
        else:
            fast += [f"%{v}.moved = add {t} %{v}, splat (i64 {_SHIFT_BITS})", f"%{v}.bits = bitcast {t} %{v}.moved to {floats}",
                     f"%{v}.float = fsub {floats} %{v}.bits, splat (double {_SHIFT})"]
    fast.append(f"%quotient = fdiv {floats} %x.float, %y.float")
    if converts:
        fast.append(f"%whole = fptosi {floats} %quotient to {t}")
    else:
        fast += [f"%cut = call {floats} @llvm.trunc.v{lanes}f64({floats} %quotient)",
                 f"%cut.moved = fadd {floats} %cut, splat (double {_SHIFT})", f"%cut.bits = bitcast {floats} %cut.moved to {t}",
                 f"%whole = sub {t} %cut.bits, splat (i64 {_SHIFT_BITS})"]
    entry, quick = ("\n".join(f"  {line}" for line in part) for part in (lines, fast))
    return (f"define internal {t} @{symbol}({t} %x, {t} %y) alwaysinline nounwind {{\n{entry}\n"
            f"fast:\n{quick}\n  br label %done\n"
            f"slow:\n  %each = {'sdiv' if signed else 'udiv'} {t} %x, %y\n  br label %done\n"
            f"done:\n  %r = phi {t} [ %whole, %fast ], [ %each, %slow ]\n  ret {t} %r\n}}\n")
