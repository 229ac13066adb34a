"""Emits calls: intrinsics of the language, mathematical functions, LLVM intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.codegen.formulas.exponential import EXP_BOUND
from tedsl.codegen.formulas.table import has_function
from tedsl.codegen.llvm.branch import emit_if_then_else
from tedsl.codegen.llvm.calls.packed import emit_own_packed
from tedsl.codegen.llvm.calls.raw import emit_raw
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.expr import constant_of
from tedsl.codegen.llvm.indices.forms import scale
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.math import math_function
from tedsl.codegen.llvm.outside.callbacks import emit_packed
from tedsl.codegen.llvm.outside.extern import emit_c_function
from tedsl.codegen.llvm.outside.imported_call import emit_imported
from tedsl.codegen.llvm.outside.intrinsics import emit_llvm_intrinsic
from tedsl.codegen.llvm.types import float_splat, int_splat, int_suffix, memory_type, register_type, vector_of
from tedsl.codegen.llvm.values.convert import convert, emit_reinterpret, from_memory, to_memory
from tedsl.codegen.llvm.values.dots import emit_dot
from tedsl.codegen.llvm.values.floats import emit_fma, emit_rounding, intrinsic, rounded
from tedsl.codegen.llvm.values.integer import Integers
from tedsl.codegen.llvm.values.prefetch import emit_prefetch
from tedsl.codegen.llvm.values.tile_products import emit_tile_product, emit_tiles_allowed
from tedsl.errors import LoweringError
from tedsl.ir.calls.lanes import in_halves
from tedsl.ir.calls.lines import in_bits
from tedsl.ir.calls.signatures import misfit
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Broadcast, Call, Expr, FloatImm, Load, Min, StringImm, Var
from tedsl.ir.functions import C_MATH
from tedsl.ir.ops import (
    BITWISE_AND,
    BITWISE_OR,
    BITWISE_XOR,
    COMBINE_LANES,
    EXP_BOUNDED,
    ISFINITE,
    ISINF,
    ISNAN,
    MATH_BINARY,
    MATH_UNARY,
    POPCOUNT,
    SHIFT_LEFT,
    Op,
)

_FLOAT32 = dtype("float32")


def emit_call(out: Emitter, e: Call) -> str:
    write = CALLS.get(e.op.short)
    if write is not None:
        return write(out, e)
    if e.op.short in MATH_UNARY or e.op.short in MATH_BINARY or e.op is EXP_BOUNDED:
        return emit_math(out, e)
    raise LoweringError(f"{e.op.name} cannot be compiled to machine code",
                        hint="write the operation with operators that can, or call a C function: tir.call_extern")


# --- mathematical functions --------------------------------------------------------------------------------------------

def emit_math(out: Emitter, e: Call) -> str:
    """Emits a call of a function of the package `math`, defined once per module and inlined; 16-bit floats are computed in
    float32.
    """
    name, d = e.op.short, e.dtype
    if not d.is_float:
        raise LoweringError(f"{name} of {d}: it takes floats", hint="cast the argument: x.astype('float32')")
    if not has_function(name):
        raise LoweringError(f"{name} is not available in machine code yet")
    name, args = _bounded(name, e.args)
    of = d if d.bits > 16 else _FLOAT32.with_lanes(d.lanes)
    function = math_function(name, of, fma=out.target.has_fma, avx512="avx512f" in out.target.features)
    if function.symbol not in out.module.definitions:
        out.module.definitions[function.symbol] = function.text
        for needed, text in function.needs:
            out.module.definitions.setdefault(needed, text)
    t = register_type(of)
    values = ", ".join(f"{t} {out.value(a)}" for a in args)
    return rounded(out, d, out.assign(f"call {t} @{function.symbol}({values})"))


def _bounded(name: str, args: Sequence[Expr]) -> tuple[str, Sequence[Expr]]:
    """The function to call, and its arguments: exp of what is less than a small constant has a formula of its own."""
    if name == "exp" and isinstance(args[0], Min):
        bound = args[0].b.value if isinstance(args[0].b, Broadcast) else args[0].b
        if isinstance(bound, FloatImm) and bound.value <= EXP_BOUND:
            return "exp_bounded", args
    return name, args


def emit_sqrt(out: Emitter, e: Call) -> str:
    return rounded(out, e.dtype, intrinsic(out, "sqrt", _as_register(e.dtype), out.value(e.args[0])))


def emit_fabs(out: Emitter, e: Call) -> str:
    d, x = e.dtype, out.value(e.args[0])
    if d.is_float:
        return intrinsic(out, "fabs", _as_register(d), x)
    if d.is_uint or d.is_bool:
        return x
    t, name = register_type(d), f"llvm.abs.{int_suffix(d.bits, d.lanes)}"
    symbol = out.module.declare(name, f"declare {t} @{name}({t}, i1)")
    return out.assign(f"call {t} {symbol}({t} {x}, i1 false)")


def emit_copysign(out: Emitter, e: Call) -> str:
    return intrinsic(out, "copysign", _as_register(e.dtype), out.value(e.args[0]), out.value(e.args[1]))


def _as_register(d: DType) -> DType:
    return d if d.bits > 16 else _FLOAT32.with_lanes(d.lanes)


def emit_ldexp(out: Emitter, e: Call) -> str:
    """Emits x * 2**n, rounded once: in double, whose exponent range covers that of float; doubles in three steps."""
    d = e.dtype
    double, ints = dtype("float64").with_lanes(d.lanes), dtype("int64").with_lanes(d.lanes)
    x = convert(out, out.value(e.args[0]), d, double)
    n = convert(out, out.value(e.args[1]), e.args[1].dtype, ints)
    if d.bits < 64:
        return convert(out, _times_power(out, x, _clamp(out, n, ints, -1000, 1000), double, ints), double, d)
    n = _clamp(out, n, ints, -2200, 2200)
    for _ in range(2):  # leave 53 bits of room at the bottom, so that only the last product can be inexact
        part = _clamp(out, n, ints, -1022 + 53, 1023)
        x = _times_power(out, x, part, double, ints)
        n = out.assign(f"sub {register_type(ints)} {n}, {part}")
    return _times_power(out, x, n, double, ints)


def _clamp(out: Emitter, n: str, d: DType, low: int, high: int) -> str:
    t, mask = register_type(d), vector_of("i1", d.lanes)
    for name, limit in (("slt", low), ("sgt", high)):
        bound = int_splat(64, limit, d.lanes)
        n = out.assign(f"select {mask} {out.assign(f'icmp {name} {t} {n}, {bound}')}, {t} {bound}, {t} {n}")
    return n


def _times_power(out: Emitter, x: str, n: str, d: DType, ints: DType) -> str:
    t, i = register_type(d), register_type(ints)
    biased = out.assign(f"add {i} {n}, {int_splat(64, 1023, d.lanes)}")
    bits = out.assign(f"shl {i} {biased}, {int_splat(64, 52, d.lanes)}")
    return out.assign(f"fmul {t} {x}, {out.assign(f'bitcast {i} {bits} to {t}')}")


def emit_nextafter(out: Emitter, e: Call) -> str:
    """Emits nextafter by adding 1 to or subtracting 1 from the bits of the float, which are ordered as integers."""
    d = e.dtype
    x, y = (out.value(a) for a in e.args)
    t, i, mask = register_type(d), vector_of(f"i{d.bits}", d.lanes), vector_of("i1", d.lanes)

    def const(value: int) -> str:
        return int_splat(d.bits, value, d.lanes)

    up = out.assign(f"fcmp ogt {t} {y}, {x}")
    bits = to_memory(out, x, d) if d.bits == 16 else out.assign(f"bitcast {t} {x} to {i}")
    positive = out.assign(f"icmp sge {i} {bits}, {const(0)}")
    away = out.assign(f"icmp eq {mask} {up}, {positive}")
    moved = out.assign(f"add {i} {bits}, {out.assign(f'select {mask} {away}, {i} {const(1)}, {i} {const(-1)}')}")
    least = out.assign(f"select {mask} {up}, {i} {const(1)}, {i} {const(1 - 2**(d.bits - 1))}")
    zero = out.assign(f"fcmp oeq {t} {x}, {float_splat(d, 0.0)}")
    chosen = out.assign(f"select {mask} {zero}, {i} {least}, {i} {moved}")
    stepped = from_memory(out, chosen, d) if d.bits == 16 else out.assign(f"bitcast {i} {chosen} to {t}")
    same = out.assign(f"fcmp oeq {t} {x}, {y}")
    result = out.assign(f"select {mask} {same}, {t} {y}, {t} {stepped}")
    nan = out.assign(f"fcmp uno {t} {x}, {y}")
    return out.assign(f"select {mask} {nan}, {t} {out.assign(f'fadd {t} {x}, {y}')}, {t} {result}")


def emit_classify(out: Emitter, e: Call) -> str:
    """Emits isnan, isinf or isfinite."""
    d, x = e.args[0].dtype, out.value(e.args[0])
    if not d.is_float:
        return int_splat(1, int(e.op is ISFINITE), d.lanes)
    t = register_type(d)
    if e.op is ISNAN:
        return out.assign(f"fcmp uno {t} {x}, {x}")
    size = intrinsic(out, "fabs", _as_register(d), x)
    return out.assign(f"fcmp {'oeq' if e.op is ISINF else 'olt'} {t} {size}, {float_splat(d, float('inf'))}")


# --- bits ---------------------------------------------------------------------------------------------------------------------

def emit_bits(out: Emitter, e: Call) -> str:
    name = {BITWISE_AND: "and", BITWISE_OR: "or", BITWISE_XOR: "xor"}[e.op]
    return out.assign(f"{name} {register_type(e.dtype)} {out.value(e.args[0])}, {out.value(e.args[1])}")


def emit_bitwise_not(out: Emitter, e: Call) -> str:
    return out.assign(f"xor {register_type(e.dtype)} {out.value(e.args[0])}, {int_splat(e.dtype.bits, -1, e.dtype.lanes)}")


def emit_shift(out: Emitter, e: Call) -> str:
    d = e.dtype
    shift = Integers.shift_left if e.op is SHIFT_LEFT else Integers.shift_right
    a, b = out.value(e.args[0]), out.value(e.args[1])
    return shift(Integers(out.assign, d.bits, d.lanes, d.is_int), a, b, constant_of(e.args[1]))


def emit_count(out: Emitter, e: Call) -> str:
    """Emits popcount or clz; clz of 0 is the width in bits."""
    d, x = e.args[0].dtype, out.value(e.args[0])
    t, of = register_type(d), int_suffix(d.bits, d.lanes)
    if e.op is POPCOUNT:
        symbol = out.module.declare(f"llvm.ctpop.{of}", f"declare {t} @llvm.ctpop.{of}({t})")
        counted = out.assign(f"call {t} {symbol}({t} {x})")
    else:
        symbol = out.module.declare(f"llvm.ctlz.{of}", f"declare {t} @llvm.ctlz.{of}({t}, i1)")
        counted = out.assign(f"call {t} {symbol}({t} {x}, i1 false)")
    unsigned = dtype(f"uint{d.bits}").with_lanes(d.lanes) if not d.is_bool else d
    return convert(out, counted, unsigned, e.dtype)


_SUFFIXES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def emit_lane_mask(out: Emitter, e: Call) -> str:
    """Emits the lanes of a vector of bool as bits."""
    lanes, x = e.args[0].dtype.lanes, out.value(e.args[0])
    bits = out.assign(f"bitcast <{lanes} x i1> {x} to i{lanes}")
    return bits if lanes == 64 else out.assign(f"zext i{lanes} {bits} to i64")


def emit_compress(out: Emitter, e: Call) -> str:
    """Emits the lanes of a vector where a condition holds, packed: by the instruction for it, else by a store for each lane."""
    lanes, t, element = e.dtype.lanes, register_type(e.dtype), register_type(e.dtype.element)
    x, condition = out.value(e.args[0]), out.value(e.args[1])
    if out.target.compresses(e.dtype):
        name = f"llvm.experimental.vector.compress.v{lanes}{_SUFFIXES.get(element, element)}"
        symbol = out.module.declare(name, f"declare {t} @{name}({t}, <{lanes} x i1>, {t})")
        return out.assign(f"call {t} {symbol}({t} {x}, <{lanes} x i1> {condition}, {t} zeroinitializer)")
    array, place = f"[{lanes} x {element}]", "0"
    memory = out.alloca(array, 64, "packed")
    out.line(f"store {array} zeroinitializer, ptr {memory}")
    for lane in range(lanes):  # a lane that is left out is written over by the next one
        address = out.assign(f"getelementptr inbounds {element}, ptr {memory}, i32 {place}")
        holds = out.assign(f"extractelement <{lanes} x i1> {condition}, i32 {lane}")
        value = out.assign(f"extractelement {t} {x}, i32 {lane}")
        kept = out.assign(f"select i1 {holds}, {element} {value}, {element} zeroinitializer")
        out.line(f"store {element} {kept}, ptr {address}")
        one = out.assign(f"zext i1 {holds} to i32")
        place = out.assign(f"add i32 {place}, {one}")
    return out.assign(f"load {t}, ptr {memory}, align 1")


def emit_combined(out: Emitter, e: Call) -> str:
    """Emits the lanes of a vector combined to one element."""
    return out.value(in_halves(e))


# --- the rest -----------------------------------------------------------------------------------------------------------------

def emit_likely(out: Emitter, e: Call) -> str:
    return out.value(e.args[0])


def emit_address_of(out: Emitter, e: Call) -> str:
    load = e.args[0]
    if not isinstance(load, Load):
        raise LoweringError("address_of takes an element of a buffer")
    return address(out, buffer_info(out, load.buffer_var), out.scalar_index(load.index), memory_type(load.dtype))


def emit_access_ptr(out: Emitter, e: Call) -> str:
    """Emits the address of an element of a buffer; the offset counts values of the dtype of the first argument."""
    kind, data, offset = e.args[0].dtype, e.args[1], out.scalar_index(e.args[2])
    if not isinstance(data, Var):
        raise LoweringError("tvm_access_ptr takes the pointer of a buffer", hint="write buffer.access_ptr('r')")
    return address(out, buffer_info(out, data), scale(offset, kind.lanes), memory_type(kind.element))


def emit_elements_past_line(out: Emitter, e: Call) -> str:
    """Emits how far behind a line of memory an array begins, of the bits of its address."""
    return out.value(in_bits(e))


def emit_extern(out: Emitter, e: Call) -> str:
    """Emits a function of the module, else a C function: as the operator of the language that has its name, else by its symbol,
    lane by lane.
    """
    name = e.args[0].value if isinstance(e.args[0], StringImm) else str(e.args[0])
    if name in out.module.callees and name != out.function.owner:
        return emit_raw(out, e, out.module.callees[name])
    if name in out.module.imports:
        return emit_imported(out, e, name, out.module.imports[name])
    op = C_MATH.get(name)
    if op is not None and len(e.args) == 1 + (Op.get(f"tir.{op}").arity or 0) and e.args[1].dtype is e.dtype:
        call = Call(e.dtype, Op.get(f"tir.{op}"), e.args[1:])
        problem = misfit(call)
        if problem:
            raise LoweringError(f"the C function {name} is {op} here, and {problem}", hint="cast the arguments with .astype")
        return out.value(call)
    return emit_c_function(out, e, name)


def emit_packed_call(out: Emitter, e: Call) -> str:
    """Emits a function of the module, else a Python function."""
    name = e.args[0].value if isinstance(e.args[0], StringImm) else ""
    if name in out.module.callees and name != out.function.owner:
        return emit_own_packed(out, e, out.module.callees[name])
    return emit_packed(out, e)


def emit_atomic_add(out: Emitter, e: Call) -> str:
    """Emits an addition that other threads see whole or not at all. What is known of memory is forgotten."""
    where, value, t = out.value(e.args[0]), out.value(e.args[1]), memory_type(e.dtype)
    kind = "fadd" if e.dtype.is_float else "add"
    old = out.assign(f"atomicrmw {kind} ptr {where}, {t} {value} monotonic, align {e.dtype.bytes}")
    out.called()
    return old


def emit_nothing(out: Emitter, e: Call) -> str:
    """Emits nothing, for barriers and hints that a single CPU thread does not need."""
    return "0"


_BITS = dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), emit_bits)
CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    **dict.fromkeys(("floor", "ceil", "trunc", "nearbyint", "round"), emit_rounding),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), emit_classify),
    **_BITS, "bitwise_not": emit_bitwise_not, "shift_left": emit_shift, "shift_right": emit_shift,
    "popcount": emit_count, "clz": emit_count, "sqrt": emit_sqrt, "fabs": emit_fabs, "copysign": emit_copysign,
    "dot": emit_dot, "ldexp": emit_ldexp, "nextafter": emit_nextafter, "fma": emit_fma, "likely": emit_likely,
    "if_then_else": emit_if_then_else, "lane_mask": emit_lane_mask, "compress_lanes": emit_compress,
    **dict.fromkeys((op.short for op in COMBINE_LANES), emit_combined),
    "reinterpret": emit_reinterpret,
    "address_of": emit_address_of,
    "tvm_access_ptr": emit_access_ptr, "elements_past_line": emit_elements_past_line,
    "call_llvm_pure_intrin": emit_llvm_intrinsic, "call_llvm_intrin": emit_llvm_intrinsic,
    "call_pure_extern": emit_extern, "call_extern": emit_extern, "call_packed": emit_packed_call,
    "tile_product": emit_tile_product, "tiles_allowed": emit_tiles_allowed,
    "tvm_storage_sync": emit_nothing, "prefetch": emit_prefetch, "atomic_add": emit_atomic_add,
}
