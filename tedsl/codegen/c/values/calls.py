"""Emits calls of the operators of the language: bits, classification, mathematical functions."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import BITS, EQUALITY, ORDER, SUM, UNARY, Piece, call, cast, compared, infix, prefix
from tedsl.codegen.c.text.types import float_text, integer_text, value_type
from tedsl.codegen.c.values.convert import convert
from tedsl.codegen.c.values.expr import FALSE, TRUE, arithmetic, emit_choice, rounded
from tedsl.codegen.c.values.foreign import refuse_llvm
from tedsl.codegen.c.values.lanes import array_of, lane_loop
from tedsl.codegen.c.values.math import emit_math
from tedsl.codegen.c.values.memory import emit_access_ptr, emit_address_of
from tedsl.codegen.c.values.own import emit_by_name, emit_packed
from tedsl.codegen.c.values.reinterpret import emit_reinterpret
from tedsl.errors import InternalError, LoweringError
from tedsl.ir.calls.lanes import in_halves
from tedsl.ir.calls.lines import in_bits
from tedsl.ir.dtype import FLOAT64, dtype
from tedsl.ir.expr import Add, Call, Mul
from tedsl.ir.ops import (
    BITWISE_AND,
    BITWISE_OR,
    BITWISE_XOR,
    COMBINE_LANES,
    ISFINITE,
    ISINF,
    ISNAN,
    MATH_BINARY,
    MATH_UNARY,
    POPCOUNT,
    SHIFT_LEFT,
)

_INT32 = dtype("int32")


def emit_call(out: Emitter, e: Call) -> Emission:
    emit = CALLS.get(e.op.short)
    if emit is not None:
        return (yield from emit(out, e))
    if e.op.short in MATH_UNARY or e.op.short in MATH_BINARY:
        return (yield from emit_math(out, e))
    raise LoweringError(f"{e.op.name} cannot be written in C",
                        hint="write the operation with operators that can, or call a C function: tir.call_extern")


def libm(out: Emitter, name: str, bits: int) -> str:
    """Returns the name of a function of math.h for floats of that width."""
    out.module.math()
    return name if bits == 64 else name + "f"


def emit_exact(out: Emitter, e: Call) -> Emission:
    """Emits a function of math.h whose result is exact on every machine."""
    d, args = e.dtype, []
    for arg in e.args:
        args.append((yield arg, False))
    if d.is_integer:
        return args[0]  # rounding of an integer
    return rounded(out, d, call(libm(out, e.op.short, d.bits), *args))


def emit_fabs(out: Emitter, e: Call) -> Emission:
    d, x = e.dtype, (yield e.args[0], False)
    if d.is_float:
        return call(libm(out, "fabs", d.bits), x)
    return x if d.is_uint or d.is_bool else call(out.module.helper("abs", d.element), x)


def emit_fma(out: Emitter, e: Call) -> Emission:
    """Emits a * b + c, rounded once."""
    d, (a, b, c) = e.dtype, ((yield e.args[0], False), (yield e.args[1], False), (yield e.args[2], False))
    if not d.is_float:
        return arithmetic(out, Add, d, arithmetic(out, Mul, d, a, b), c)
    return rounded(out, d, call(libm(out, "fma", d.bits), a, b, c))


def emit_ldexp(out: Emitter, e: Call) -> Emission:
    """Emits x * 2**n, rounded once."""
    d, x, n = e.dtype, (yield e.args[0], False), (yield e.args[1], False)
    of = e.args[1].dtype.element
    if of.bits == 64 or (of.is_uint and of.bits == 32):
        limits = (Piece("-4000", UNARY), Piece("4000")) if of.is_int else (Piece("0"), Piece("4000"))
        n = call(out.module.helper("imax", of), call(out.module.helper("imin", of), n, limits[1]), limits[0])
    n = cast("int", n)
    if d.bits > 16:
        return call(libm(out, "ldexp", d.bits), x, n)
    return convert(out, call(libm(out, "ldexp", 64), cast("double", x), n), FLOAT64, d.element)


def emit_nextafter(out: Emitter, e: Call) -> Emission:
    d, x, y = e.dtype, (yield e.args[0], False), (yield e.args[1], False)
    return call(out.module.helper("nextafter", d.element) if d.bits == 16 else libm(out, "nextafter", d.bits), x, y)


def emit_classify(out: Emitter, e: Call) -> Emission:
    """Emits isnan, isinf or isfinite."""
    d = e.args[0].dtype
    if not d.is_float:
        return TRUE if e.op is ISFINITE else FALSE
    x = yield e.args[0], False
    size = call(libm(out, "fabs", d.bits), x)
    if e.op is ISNAN:
        return compared("!=", EQUALITY, size, size)
    infinity = Piece(float_text(float("inf"), d))
    return compared("==", EQUALITY, size, infinity) if e.op is ISINF else compared("<", ORDER, size, infinity)


# --- bits -------------------------------------------------------------------------------------------------------------

_BITWISE = {BITWISE_AND: "&", BITWISE_OR: "|", BITWISE_XOR: "^"}


def emit_bits(out: Emitter, e: Call) -> Emission:
    d, a, b = e.dtype, (yield e.args[0], False), (yield e.args[1], False)
    if d.is_bool:
        return compared("!=", EQUALITY, infix(_BITWISE[e.op], BITS, a, b, within=UNARY), Piece("0"))
    return infix(_BITWISE[e.op], BITS, a, b, within=UNARY)


def emit_bitwise_not(out: Emitter, e: Call) -> Emission:
    d, a = e.dtype.element, (yield e.args[0], False)
    if d.is_bool:
        return prefix("!", a)
    every_bit = Piece(integer_text(-1 if d.is_int else (1 << d.bits) - 1, d))
    if d.is_uint and d.bits < 32:  # gcc takes x ^ 65535 for ~x, and warns where that is compared as an int
        return infix("-", SUM, every_bit, a)
    return infix("^", BITS, a, every_bit, within=UNARY)  # not ~, of which compilers warn where the operand was bool


def emit_shift(out: Emitter, e: Call) -> Emission:
    a, b = (yield e.args[0], False), (yield e.args[1], False)
    return call(out.module.helper("shl" if e.op is SHIFT_LEFT else "shr", e.dtype.element), a, b)


def emit_count(out: Emitter, e: Call) -> Emission:
    """Emits popcount or clz; clz of 0 is the width in bits."""
    d, x = e.args[0].dtype.element, (yield e.args[0], False)
    if e.op is POPCOUNT:
        return convert(out, call(out.module.helper("popcount", d), x), d, e.dtype.element)
    return convert(out, call(out.module.helper("clz", d), x), _INT32, e.dtype.element)


def emit_lane_mask(out: Emitter, e: Call) -> Emission:
    """Emits the lanes of a vector of bool as bits."""
    lane, out.lane = out.lane, None
    held = yield from array_of(out, e.args[0])
    mask = out.names.fresh("mask")
    out.line(f"uint64_t {mask} = 0;")
    with lane_loop(out, e.args[0].dtype.lanes) as at:
        out.line(f"{mask} |= (uint64_t){held.text}[{at.text}] << {at.text};")
    out.lane = lane
    return Piece(mask)


def emit_compress(out: Emitter, e: Call) -> Emission:
    """Emits a lane of the lanes of a vector where a condition holds, packed."""
    lane, out.lane = out.lane, None
    if lane is None:
        raise InternalError("packed lanes outside of a vector")
    values, held = (yield from array_of(out, e.args[0])), (yield from array_of(out, e.args[1]))
    packed, count = out.names.fresh("packed"), out.names.fresh("count")
    out.line(f"{value_type(e.dtype)} {packed}[{e.dtype.lanes}] = {{0}};")
    out.line(f"int32_t {count} = 0;")
    with lane_loop(out, e.dtype.lanes) as at, out.block(f"if ({held.text}[{at.text}])"):
        out.line(f"{packed}[{count}++] = {values.text}[{at.text}];")
    out.lane = lane
    return Piece(f"{packed}[{lane.text.text}]", depth=1)


def emit_combined(out: Emitter, e: Call) -> Emission:
    """Emits the lanes of a vector combined to one element."""
    lane, out.lane = out.lane, None
    combined = yield in_halves(e), False
    out.lane = lane
    return combined


# --- the rest ---------------------------------------------------------------------------------------------------------

def emit_likely(out: Emitter, e: Call) -> Emission:
    return (yield e.args[0], False)


def emit_elements_past_line(out: Emitter, e: Call) -> Emission:
    """Emits how far behind a line of memory an array begins, of the bits of its address."""
    return (yield in_bits(e), False)


def emit_if_then_else(out: Emitter, e: Call) -> Emission:
    return (yield from emit_choice(out, e, *e.args))


def emit_nothing(out: Emitter, e: Call) -> Emission:
    """Emits nothing, for barriers and hints that a single thread of the processor does not need."""
    return Piece("0")
    yield


CALLS: dict[str, Callable[[Emitter, Call], Emission]] = {
    **dict.fromkeys(("floor", "ceil", "trunc", "nearbyint", "round", "sqrt", "copysign"), emit_exact),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), emit_classify),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), emit_bits),
    "bitwise_not": emit_bitwise_not, "shift_left": emit_shift, "shift_right": emit_shift, "popcount": emit_count,
    "clz": emit_count, "fabs": emit_fabs, "ldexp": emit_ldexp, "nextafter": emit_nextafter, "fma": emit_fma,
    "likely": emit_likely, "if_then_else": emit_if_then_else, "lane_mask": emit_lane_mask,
    "compress_lanes": emit_compress, **dict.fromkeys((op.short for op in COMBINE_LANES), emit_combined),
    "reinterpret": emit_reinterpret,
    "address_of": emit_address_of, "tvm_access_ptr": emit_access_ptr,
    "elements_past_line": emit_elements_past_line,
    "call_llvm_pure_intrin": refuse_llvm, "call_llvm_intrin": refuse_llvm, "call_packed": emit_packed,
    "call_pure_extern": emit_by_name, "call_extern": emit_by_name,
    "tvm_storage_sync": emit_nothing, "prefetch": emit_nothing,
}
