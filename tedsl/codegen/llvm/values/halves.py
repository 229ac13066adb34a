"""float16 and bfloat16 without library calls: helper functions in integer arithmetic, or the instruction where there is one.

A value in a register is a float that the narrow type represents; `round` rounds to such values (to nearest even, NaN stays NaN,
denormals are exact), `pack` and `unpack` convert to and from memory.
"""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.types import int_splat, vector_of
from tedsl.ir.dtype import DType


def has_half(out: Emitter) -> bool:
    """Tells whether the target converts between float16 and float32 by one instruction."""
    return out.target.architecture in ("aarch64", "nvptx64") or "f16c" in out.target.features


def has_bfloat(out: Emitter) -> bool:
    """Tells whether the target rounds float32 to bfloat16 by one instruction, as LLVM's own conversion."""
    cpu = out.target.cpu
    return out.target.architecture == "nvptx64" and cpu.startswith("sm_") and int(cpu.removeprefix("sm_")) >= 80


def round_to(out: Emitter, d: DType, value: str) -> str:
    """Emits `value`, floats of the lanes of `d`, rounded to values of the 16-bit float `d`."""
    f = vector_of("float", d.lanes)
    if d.code == "float" and has_half(out):
        h = vector_of("half", d.lanes)
        return out.assign(f"fpext {h} {out.assign(f'fptrunc {f} {_fenced(out, value, d.lanes)} to {h}')} to {f}")
    if d.code == "bfloat" and has_bfloat(out):
        b = vector_of("bfloat", d.lanes)
        return out.assign(f"fpext {b} {out.assign(f'fptrunc {f} {value} to {b}')} to {f}")
    kind = "bf16" if d.code == "bfloat" else "f16"
    return _call(out, f"round.{kind}", d.lanes, f, f, _ROUND[kind], value)


def _fenced(out: Emitter, value: str, lanes: int) -> str:
    """Emits the float `value` behind a fence that keeps LLVM from merging two successive roundings.

    On x86-64 LLVM moves two successive roundings into a copysign of doubles, and then rounds the operand that gives the sign, a
    double, to half by a library call. The fence costs no instruction; for vectors LLVM does not do this, and none is emitted.
    """
    if lanes > 1 or out.target.architecture != "x86-64":
        return value
    fence = out.module.declare("llvm.arithmetic.fence.f32", "declare float @llvm.arithmetic.fence.f32(float)")
    return out.assign(f"call float {fence}(float {value})")


def pack(out: Emitter, d: DType, value: str) -> str:
    """Emits the bits, as i16, of `value`, which `d` represents."""
    f, h, i16, i32 = (vector_of(t, d.lanes) for t in ("float", "half", "i16", "i32"))
    if d.code == "bfloat" and has_bfloat(out):
        b = vector_of("bfloat", d.lanes)
        return out.assign(f"bitcast {b} {out.assign(f'fptrunc {f} {value} to {b}')} to {i16}")
    if d.code == "bfloat":
        bits = out.assign(f"bitcast {f} {value} to {i32}")
        return out.assign(f"trunc {i32} {out.assign(f'lshr {i32} {bits}, {int_splat(32, 16, d.lanes)}')} to {i16}")
    if has_half(out):
        return out.assign(f"bitcast {h} {out.assign(f'fptrunc {f} {value} to {h}')} to {i16}")
    return _call(out, "pack.f16", d.lanes, i16, f, _PACK, value)


def unpack(out: Emitter, d: DType, bits: str) -> str:
    """Emits the value, as float, of `bits`, an i16."""
    f, h, i16, i32 = (vector_of(t, d.lanes) for t in ("float", "half", "i16", "i32"))
    if d.code == "bfloat":
        wide = out.assign(f"zext {i16} {bits} to {i32}")
        return out.assign(f"bitcast {i32} {out.assign(f'shl {i32} {wide}, {int_splat(32, 16, d.lanes)}')} to {f}")
    if has_half(out):
        return out.assign(f"fpext {h} {out.assign(f'bitcast {i16} {bits} to {h}')} to {f}")
    return _call(out, "unpack.f16", d.lanes, f, i16, _UNPACK, bits)


def narrow_double(out: Emitter, d: DType, value: str) -> str:
    """Emits a double rounded once to the 16-bit float `d`: first to odd, to a float whose last bit says whether it is inexact.
    """
    f, f64 = vector_of("float", d.lanes), vector_of("double", d.lanes)
    return round_to(out, d, _call(out, "odd", d.lanes, f, f64, _ODD, value))


def sticky_i64(out: Emitter, value: str, lanes: int, signed: bool) -> str:
    """Emits an i64 whose conversion to double is exact: beyond 2**53 lost bits are kept as one sticky bit."""
    t = vector_of("i64", lanes)
    name = "sticky.s" if signed else "sticky.u"
    return _call(out, name, lanes, t, t, _STICKY_SIGNED if signed else _STICKY_UNSIGNED, value)


def _call(out: Emitter, name: str, lanes: int, result: str, argument: str, body: str, value: str) -> str:
    """Emits a call of the helper `name` for that many lanes, defined in the module on first use."""
    symbol = f"tedsl.{name}.{lanes}"
    if symbol not in out.module.definitions:
        out.module.definitions[symbol] = (f"define internal {result} @{symbol}({argument} %x) alwaysinline nounwind {{\n"
                                          f"{_expand(body, lanes)}}}")
    return out.assign(f"call {result} @{symbol}({argument} {value})")


def _expand(body: str, lanes: int) -> str:
    """Expands the template for that many lanes: F, D, H, I, L, B are types of float, double, i16, i32, i64, i1; #n is a
    constant.
    """
    named = {letter: vector_of(element, lanes) for letter, element in _LETTERS.items()}
    lines = []
    for line in body.strip().splitlines():
        words, current = [], ""
        for word in line.split():
            if word in named:
                current = word
                words.append(named[word])
            elif word.startswith("#"):
                comma = word.endswith(",")
                words.append(_constant(word[1:].rstrip(","), current, lanes) + ("," if comma else ""))
            else:
                words.append(word)
        lines.append("  " + " ".join(words))
    return "\n".join(lines) + "\n"


def _constant(text: str, kind: str, lanes: int) -> str:
    if kind != "F":
        text = str(int(text, 0))
    return text if lanes == 1 else f"splat ({_LETTERS[kind]} {text})"


_LETTERS = {"F": "float", "D": "double", "H": "i16", "I": "i32", "L": "i64", "B": "i1"}


# 0.5 has the unit 2**-24 in its last place, which is float16's smallest step: adding it rounds denormals as float16 does.
_ROUND = {"f16": """
%bits = bitcast F %x to I
%abs = and I %bits, #0x7fffffff
%sign = xor I %bits, %abs
%cut = lshr I %abs, #13
%odd = and I %cut, #1
%half = add I %abs, #0xfff
%up = add I %half, %odd
%normal = and I %up, #0x7fffe000
%absf = bitcast I %abs to F
%low = fadd F %absf, #0x3FE0000000000000
%back = fsub F %low, #0x3FE0000000000000
%small = bitcast F %back to I
%tiny = icmp ult I %abs, #0x38800000
%finite = select B %tiny, I %small, I %normal
%over = icmp ugt I %finite, #0x477fffff
%bounded = select B %over, I #0x7f800000, I %finite
%isnan = icmp ugt I %abs, #0x7f800000
%quiet = or I %abs, #0x400000
%kept = and I %quiet, #0x7fffe000
%value = select B %isnan, I %kept, I %bounded
%signed = or I %value, %sign
%r = bitcast I %signed to F
ret F %r
""", "bf16": """
%bits = bitcast F %x to I
%cut = lshr I %bits, #16
%odd = and I %cut, #1
%half = add I %bits, #0x7fff
%up = add I %half, %odd
%isnan = fcmp uno F %x, %x
%quiet = or I %bits, #0x400000
%value = select B %isnan, I %quiet, I %up
%kept = and I %value, #-65536
%r = bitcast I %kept to F
ret F %r
"""}

_PACK = """
%bits = bitcast F %x to I
%abs = and I %bits, #0x7fffffff
%high = lshr I %bits, #16
%sign = and I %high, #0x8000
%cut = lshr I %abs, #13
%normal = sub I %cut, #114688
%absf = bitcast I %abs to F
%low = fadd F %absf, #0x3FE0000000000000
%lowbits = bitcast F %low to I
%small = sub I %lowbits, #0x3f000000
%tiny = icmp ult I %abs, #0x38800000
%finite = select B %tiny, I %small, I %normal
%special = icmp ugt I %abs, #0x7f7fffff
%payload = and I %cut, #0x3ff
%inf = or I %payload, #0x7c00
%value = select B %special, I %inf, I %finite
%signed = or I %value, %sign
%r = trunc I %signed to H
ret H %r
"""

_UNPACK = """
%wide = zext H %x to I
%abs = and I %wide, #0x7fff
%high = and I %wide, #0x8000
%sign = shl I %high, #16
%moved = shl I %abs, #13
%small = bitcast I %moved to F
%scaled = fmul F %small, #0x46F0000000000000
%finite = bitcast F %scaled to I
%special = icmp ugt I %abs, #0x7bff
%inf = or I %moved, #0x7f800000
%value = select B %special, I %inf, I %finite
%signed = or I %value, %sign
%r = bitcast I %signed to F
ret F %r
"""

_ODD = """
%f = fptrunc D %x to F
%e = fpext F %f to D
%ebits = bitcast D %e to L
%xbits = bitcast D %x to L
%eabs = and L %ebits, #0x7fffffffffffffff
%xabs = and L %xbits, #0x7fffffffffffffff
%ae = bitcast L %eabs to D
%ax = bitcast L %xabs to D
%less = fcmp olt D %ae, %ax
%more = fcmp ogt D %ae, %ax
%bits = bitcast F %f to I
%last = and I %bits, #1
%even = icmp eq I %last, #0
%up = and B %less, %even
%down = and B %more, %even
%plus = zext B %up to I
%minus = sext B %down to I
%one = add I %bits, %plus
%two = add I %one, %minus
%r = bitcast I %two to F
ret F %r
"""

_STICKY_SIGNED = """
%low = and L %x, #2047
%some = icmp ne L %low, #0
%bit = zext B %some to L
%put = shl L %bit, #11
%high = and L %x, #-2048
%stuck = or L %high, %put
%moved = add L %x, #9007199254740992
%large = icmp ugt L %moved, #18014398509481984
%r = select B %large, L %stuck, L %x
ret L %r
"""
_STICKY_UNSIGNED = _STICKY_SIGNED.replace("%moved = add L %x, #9007199254740992\n", "") \
    .replace("ugt L %moved, #18014398509481984", "ugt L %x, #9007199254740992")
