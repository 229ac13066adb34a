"""Emits `tir.dot`: sums of products of bytes, or of pairs of 16-bit integers, by the instructions of the target.

    x86-64, VNNI:            vpdpbusd multiplies unsigned by signed bytes, vpdpwssd pairs of 16 bits
    x86-64, others:          pmaddwd multiplies pairs of 16 bits; the even and the odd bytes become 16 bits each
    x86-64, AVX-512 BF16:    vdpbf16ps multiplies pairs of bfloat16
    AArch64, dotprod:        sdot and udot multiply bytes of one kind, with i8mm usdot unsigned by signed ones

Where the instruction has other signs than the operands, one of them is moved by 128: (a - 128) b + 128 b. All of them are exact
modulo 2**32: two products of signed 16-bit integers add up to 2**31 at most, which wraps as the sum does. Vectors are cut into
those of the instruction; other targets widen, multiply and add.

Operands are words of 32 bits here. What is done to a word that all lanes share is done before it is repeated: LLVM 22 does not
end when it selects instructions for operations on the bytes of a repeated word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.vectors import splat_register
from tedsl.codegen.llvm.types import int_splat, vector_of
from tedsl.codegen.llvm.values.convert import convert
from tedsl.errors import LoweringError
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Broadcast, Call, Expr, Load
from tedsl.ir.ops import REINTERPRET
from tedsl.target.target import Target

_INT32 = dtype("int32")
_LEAST = 4  # lanes of an instruction
_MOST = -0x7F7F7F80  # 128 in each byte of a word


class Operand(NamedTuple):
    """The words of an operand: one for each of `lanes`, or a single one that all of them share."""

    words: str
    number: int
    lanes: int
    signed: bool

    @property
    def type(self) -> str:
        return vector_of("i32", self.number)

    def repeated(self, out: Emitter, words: str) -> str:
        """Emits a word for each lane."""
        return words if self.number == self.lanes else splat_register(out, words, "i32", self.lanes, out.level)

    def plain(self, out: Emitter) -> str:
        return self.repeated(out, self.words)

    def flipped(self, out: Emitter) -> str:
        """Emits the operand moved by 128, so that its bytes have the other signedness."""
        most = int_splat(32, _MOST, self.number)
        return self.repeated(out, out.assign(f"xor {self.type} {self.words}, {most}"))

    def halves(self, out: Emitter) -> list[str]:
        """Emits the even and the odd bytes, each as 16 bits."""
        count, t = 2 * self.number, vector_of("i16", 2 * self.number)
        eight, x = int_splat(16, 8, count), out.assign(f"bitcast {self.type} {self.words} to {t}")
        if self.signed:
            up = out.assign(f"shl {t} {x}, {eight}")
            parts = [f"ashr {t} {up}, {eight}", f"ashr {t} {x}, {eight}"]
        else:
            parts = [f"and {t} {x}, {int_splat(16, 255, count)}", f"lshr {t} {x}, {eight}"]
        return [self.repeated(out, out.assign(f"bitcast {t} {out.assign(part)} to {self.type}")) for part in parts]


Instruction = Callable[[Emitter, int, str, str, str], str]  # lanes, sum, words of both operands


def emit_dot(out: Emitter, e: Call) -> str:
    """Emits the sums of `tir.dot`."""
    left, right = e.args[1].dtype.element, e.args[2].dtype.element
    total = out.value(e.args[0])
    if e.dtype.is_float:
        return _bfloats(out, e, total)
    if out.target.dot_terms(left, right) == 1:
        return _widened(out, e, total, *(out.value(arg) for arg in e.args[1:]))
    a, b = (_operand(out, arg, e.dtype.lanes) for arg in e.args[1:])
    if out.target.architecture == "aarch64":
        return _neon(out, total, a, b)
    vnni = out.target.has_vnni
    if left.bits == 16:
        return _in_parts(out, _x86("vpdpwssd") if vnni else _pairs, total, a.plain(out), b.plain(out), a.lanes)
    return _vnni(out, total, a, b) if vnni else _even_and_odd(out, total, a, b)


def _operand(out: Emitter, arg: Expr, lanes: int) -> Operand:
    signed = arg.dtype.is_int
    if isinstance(arg, Call) and arg.op is REINTERPRET and isinstance(arg.args[0], Broadcast):
        word = arg.args[0].value
        if word.dtype.bits == 32 and word.dtype.is_integer:
            return Operand(out.value(word), 1, lanes, signed)
    narrow = vector_of(f"i{arg.dtype.bits}", arg.dtype.lanes)
    words = out.assign(f"bitcast {narrow} {out.value(arg)} to {vector_of('i32', lanes)}")
    return Operand(words, lanes, lanes, signed)


def _bfloats(out: Emitter, e: Call, total: str) -> str:
    """Emits vdpbf16ps."""
    if out.target.dot_terms("bfloat16", "bfloat16") == 1:
        raise LoweringError(f"tir.dot of bfloat16: target {out.target} has no such instruction",
                            hint="for example llvm -mcpu=cooperlake, znver4; without it, multiply in float32")
    lanes, a, b = e.dtype.lanes, *(_operand(out, _as_bits(arg), e.dtype.lanes) for arg in e.args[1:])
    words, floats = vector_of("i32", lanes), vector_of("float", lanes)
    start = out.assign(f"bitcast {floats} {total} to {words}")
    sums = _in_parts(out, _pairs_of_bfloats, start, a.plain(out), b.plain(out), lanes)
    return out.assign(f"bitcast {words} {sums} to {floats}")


def _pairs_of_bfloats(out: Emitter, lanes: int, total: str, a: str, b: str) -> str:
    words, floats, pairs = vector_of("i32", lanes), vector_of("float", lanes), vector_of("bfloat", 2 * lanes)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    symbol = out.module.declare(name, f"declare {floats} @{name}({floats}, {pairs}, {pairs})")
    x, y = (out.assign(f"bitcast {words} {v} to {pairs}") for v in (a, b))
    sums = out.assign(f"call {floats} {symbol}({floats} {out.assign(f'bitcast {words} {total} to {floats}')}, "
                      f"{pairs} {x}, {pairs} {y})")
    return out.assign(f"bitcast {floats} {sums} to {words}")


def _as_bits(e: Expr) -> Expr:
    """Returns a vector of bfloat16 as one of uint16: loads of it as such, so that nothing is widened."""
    bits = dtype("uint16").with_lanes(e.dtype.lanes)
    if isinstance(e, Load):
        return Load(bits, e.buffer_var, e.index, e.predicate)
    if isinstance(e, Call) and e.op is REINTERPRET and isinstance(e.args[0], Broadcast):
        word = e.args[0].value
        if isinstance(word, Call) and word.op is REINTERPRET and word.args[0].dtype.code == "bfloat":
            word = Call(word.dtype, REINTERPRET, (_as_bits(word.args[0]),))
        return Call(bits, REINTERPRET, (Broadcast(word, e.args[0].lanes),))
    return Call(bits, REINTERPRET, (e,))


def _in_parts(out: Emitter, emit: Instruction, total: str, a: str, b: str, lanes: int) -> str:
    """Emits an instruction for each of its vectors in vectors of `lanes` words, which are filled up to a power of two."""
    whole = max(_LEAST, 1 << (lanes - 1).bit_length())
    if whole > lanes:
        total, a, b = (_picked(out, x, 32, lanes, range(whole)) for x in (total, a, b))
        return _picked(out, _in_parts(out, emit, total, a, b, whole), 32, whole, range(lanes))
    width = min(lanes, _width(out.target))
    parts = []
    for at in range(0, lanes, width):
        parts.append(emit(out, width, *(_picked(out, x, 32, lanes, range(at, at + width)) for x in (total, a, b))))
    while len(parts) > 1:
        t = vector_of("i32", width)
        width *= 2
        order = ", ".join(f"i32 {k}" for k in range(width))
        parts = [out.assign(f"shufflevector {t} {x}, {t} {y}, <{width} x i32> <{order}>")
                 for x, y in zip(parts[::2], parts[1::2])]
    return parts[0]


def _width(target: Target) -> int:
    """The lanes of the widest instruction."""
    if target.architecture == "aarch64":
        return 4
    return 16 if target.vector_bits == 512 and "avx512bw" in target.features else 8 if "avx2" in target.features else 4


def _called(out: Emitter, name: str, lanes: int, bits: int, *args: str) -> str:
    """Emits a call of an intrinsic whose two last arguments are vectors of integers of `bits` bits, the others of words."""
    words, narrow = vector_of("i32", lanes), vector_of(f"i{bits}", lanes * 32 // bits)
    types = [words] * (len(args) - 2) + [narrow] * 2
    given = [x if t is words else out.assign(f"bitcast {words} {x} to {narrow}") for t, x in zip(types, args)]
    symbol = out.module.declare(name, f"declare {words} @{name}({', '.join(types)})")
    return out.assign(f"call {words} {symbol}({', '.join(f'{t} {x}' for t, x in zip(types, given))})")


# --- x86-64 -------------------------------------------------------------------------------------------------------------------

def _x86(name: str) -> Instruction:
    """The instruction `name` of words, as LLVM 20 has its intrinsic; LLVM 22, where its operands are narrow, reads that too."""
    def emit(out: Emitter, lanes: int, total: str, a: str, b: str) -> str:
        return _called(out, f"llvm.x86.avx512.{name}.{32 * lanes}", lanes, 32, total, a, b)

    return emit


def _vnni(out: Emitter, total: str, a: Operand, b: Operand) -> str:
    """Emits vpdpbusd. Signed times signed is (a + 128) b - 128 b, unsigned times unsigned a (b - 128) + 128 a."""
    lanes, bytes_ = a.lanes, _x86("vpdpbusd")
    if a.signed is not b.signed:
        unsigned, signed = (b, a) if a.signed else (a, b)
        return _in_parts(out, bytes_, total, unsigned.plain(out), signed.plain(out), lanes)
    moved, other = (b, a) if b.number == 1 else (a, b)  # a word for all lanes: the others need one correction for all rows
    rest, most, zero = other.plain(out), int_splat(32, _MOST, lanes), int_splat(32, 0, lanes)
    added = _in_parts(out, bytes_, zero, *((most, rest) if a.signed else (rest, most)), lanes)
    total = out.assign(f"sub {vector_of('i32', lanes)} {total}, {added}")
    flipped = moved.flipped(out)
    return _in_parts(out, bytes_, total, *((flipped, rest) if a.signed else (rest, flipped)), lanes)


def _even_and_odd(out: Emitter, total: str, a: Operand, b: Operand) -> str:
    for x, y in zip(a.halves(out), b.halves(out)):
        total = _in_parts(out, _pairs, total, x, y, a.lanes)
    return total


def _pairs(out: Emitter, lanes: int, total: str, a: str, b: str) -> str:
    name = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}[lanes]
    return out.assign(f"add {vector_of('i32', lanes)} {total}, {_called(out, name, lanes, 16, a, b)}")


# --- AArch64 ------------------------------------------------------------------------------------------------------------------

def _neon(out: Emitter, total: str, a: Operand, b: Operand) -> str:
    if a.signed is b.signed:
        return _in_parts(out, _arm("sdot" if a.signed else "udot"), total, a.plain(out), b.plain(out), a.lanes)
    unsigned, signed = (b, a) if a.signed else (a, b)
    if "i8mm" in out.target.features:
        return _in_parts(out, _arm("usdot"), total, unsigned.plain(out), signed.plain(out), a.lanes)
    t, rest = vector_of("i32", a.lanes), signed.plain(out)
    half = _in_parts(out, _arm("sdot"), int_splat(32, 0, a.lanes), rest, int_splat(32, 0x40404040, a.lanes), a.lanes)
    missing = out.assign(f"shl {t} {half}, {int_splat(32, 1, a.lanes)}")
    total = out.assign(f"add {t} {total}, {missing}")
    return _in_parts(out, _arm("sdot"), total, unsigned.flipped(out), rest, a.lanes)


def _arm(name: str) -> Instruction:
    def emit(out: Emitter, lanes: int, total: str, a: str, b: str) -> str:
        return _called(out, f"llvm.aarch64.neon.{name}.v4i32.v16i8", lanes, 8, total, a, b)

    return emit


# --- any target ---------------------------------------------------------------------------------------------------------------

def _widened(out: Emitter, e: Call, total: str, a: str, b: str) -> str:
    """Emits products of 32 bits, added one after the other."""
    lanes, group = e.dtype.lanes, e.args[1].dtype.lanes // e.dtype.lanes
    t = vector_of("i32", lanes)
    for at in range(group):
        factors = []
        for x, of in ((a, e.args[1].dtype), (b, e.args[2].dtype)):
            picked = _picked(out, x, of.bits, of.lanes, range(at, of.lanes, group))
            factors.append(convert(out, picked, of.with_lanes(lanes), _INT32.with_lanes(lanes)))
        total = out.assign(f"add {t} {total}, {out.assign(f'mul {t} {factors[0]}, {factors[1]}')}")
    return total


def _picked(out: Emitter, x: str, bits: int, lanes: int, places: range) -> str:
    """Emits those lanes of `x`, a vector of `lanes` integers of `bits` bits; anything in lanes behind its last one."""
    if len(places) == lanes:
        return x
    t, order = vector_of(f"i{bits}", lanes), ", ".join(f"i32 {k if k < lanes else 'poison'}" for k in places)
    return out.assign(f"shufflevector {t} {x}, {t} poison, <{len(places)} x i32> <{order}>")
