"""fmod for devices, which have no instruction for it: exact, by long division of the significands.

x = a * 2**e and y = b * 2**f with integers a and b; where |x| >= |y| the rest is (a * 2**(e - f) mod b) * 2**f. The power goes
into the rest a few bits at a time, as many as an integer of 64 bits has room for above b.
"""

from __future__ import annotations

from string import Template

from tedsl.codegen.formulas.language import MANTISSA
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.types import register_type
from tedsl.codegen.llvm.values.floats import rounded
from tedsl.ir.expr import Call


def emit_fmod(out: Emitter, e: Call) -> str:
    """Emits fmod, lane by lane; 16-bit floats are computed in float32."""
    bits, lanes = max(e.dtype.bits, 32), e.dtype.lanes
    symbol, element, t = f"tedsl.device.fmod.f{bits}", "float" if bits == 32 else "double", register_type(e.dtype)
    out.module.definitions.setdefault(symbol, _definition(symbol, bits, element))
    out.module.declare("llvm.ctlz.i64", "declare i64 @llvm.ctlz.i64(i64, i1)")
    x, y = (out.value(arg) for arg in e.args)
    if lanes == 1:
        return rounded(out, e.dtype, out.assign(f"call {element} @{symbol}({element} {x}, {element} {y})"))
    result = "poison"
    for k in range(lanes):
        a, b = (out.assign(f"extractelement {t} {value}, i32 {k}") for value in (x, y))
        one = out.assign(f"call {element} @{symbol}({element} {a}, {element} {b})")
        result = out.assign(f"insertelement {t} {result}, {element} {one}, i32 {k}")
    return rounded(out, e.dtype, result)


def _definition(symbol: str, bits: int, element: str) -> str:
    size = MANTISSA[bits]
    sign, hidden = 1 << (bits - 1), 1 << size
    named = {"NAME": symbol, "F": element, "I": f"i{bits}", "NOSIGN": sign - 1, "INF": (sign - 1) >> size << size,
             "HIDDEN": hidden, "FRACTION": hidden - 1, "SIZE": size, "ROOM": 63 - size, "NAN": "0x7FF8000000000000",
             "WIDEN": "zext i32" if bits == 32 else "add i64", "END": " to i64" if bits == 32 else ", 0",
             "NARROW": "trunc i64" if bits == 32 else "add i64", "END_OF_NARROW": " to i32" if bits == 32 else ", 0"}
    return _BODY.substitute(named)


_BODY = Template("""define internal ${F} @${NAME}(${F} %x, ${F} %y) alwaysinline nounwind {
entry:
  %xbits = bitcast ${F} %x to ${I}
  %ybits = bitcast ${F} %y to ${I}
  %xa = and ${I} %xbits, ${NOSIGN}
  %ya = and ${I} %ybits, ${NOSIGN}
  %sign = xor ${I} %xbits, %xa
  %zero = icmp eq ${I} %ya, 0
  %far = icmp uge ${I} %xa, ${INF}
  %none = icmp ugt ${I} %ya, ${INF}
  %some = or i1 %zero, %far
  %nan = or i1 %some, %none
  %less = icmp ult ${I} %xa, %ya
  %known = or i1 %nan, %less
  %early = select i1 %nan, ${F} ${NAN}, ${F} %x
  br i1 %known, label %done, label %start
start:
  %xe = lshr ${I} %xa, ${SIZE}
  %ye = lshr ${I} %ya, ${SIZE}
  %xf = and ${I} %xa, ${FRACTION}
  %yf = and ${I} %ya, ${FRACTION}
  %xh = or ${I} %xf, ${HIDDEN}
  %yh = or ${I} %yf, ${HIDDEN}
  %xtiny = icmp eq ${I} %xe, 0
  %ytiny = icmp eq ${I} %ye, 0
  %xm = select i1 %xtiny, ${I} %xa, ${I} %xh
  %ym = select i1 %ytiny, ${I} %ya, ${I} %yh
  %xn = select i1 %xtiny, ${I} 1, ${I} %xe
  %yn = select i1 %ytiny, ${I} 1, ${I} %ye
  %difference = sub ${I} %xn, %yn
  %a = ${WIDEN} %xm${END}
  %b = ${WIDEN} %ym${END}
  %first = urem i64 %a, %b
  %n = ${WIDEN} %difference${END}
  br label %test
test:
  %left = phi i64 [ %n, %start ], [ %after, %step ]
  %rest = phi i64 [ %first, %start ], [ %next, %step ]
  %ended = icmp eq i64 %left, 0
  br i1 %ended, label %made, label %step
step:
  %many = icmp ugt i64 %left, ${ROOM}
  %by = select i1 %many, i64 ${ROOM}, i64 %left
  %moved = shl i64 %rest, %by
  %next = urem i64 %moved, %b
  %after = sub i64 %left, %by
  br label %test
made:
  %leading = call i64 @llvm.ctlz.i64(i64 %rest, i1 false)
  %up = sub i64 %leading, ${ROOM}
  %y64 = ${WIDEN} %yn${END}
  %most = sub i64 %y64, 1
  %high = icmp ugt i64 %up, %most
  %places = select i1 %high, i64 %most, i64 %up
  %exponent = sub i64 %most, %places
  %whole = shl i64 %rest, %places
  %scale = shl i64 %exponent, ${SIZE}
  %sum = add i64 %whole, %scale
  %empty = icmp eq i64 %rest, 0
  %magnitude = select i1 %empty, i64 0, i64 %sum
  %narrow = ${NARROW} %magnitude${END_OF_NARROW}
  %signed = or ${I} %narrow, %sign
  %r = bitcast ${I} %signed to ${F}
  br label %done
done:
  %result = phi ${F} [ %early, %entry ], [ %r, %made ]
  ret ${F} %result
}
""")
