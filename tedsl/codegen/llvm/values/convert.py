"""Emits casts among all dtypes: integers wrap, floats to integers saturate, narrower floats are rounded once."""

from __future__ import annotations

from math import inf

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.values import as_value, leaves_its_dtype
from tedsl.codegen.llvm.types import float_splat, int_splat, memory_type, register_type, suffix, vector_of
from tedsl.codegen.llvm.values import halves
from tedsl.errors import LoweringError
from tedsl.ir.dtype import INT64, DType
from tedsl.ir.expr import Broadcast, Call, Cast, Expr, FloatImm, Max, Min


def emit_cast(out: Emitter, e: Cast) -> str:
    if (e.dtype.is_float or e.dtype.bits == 64) and leaves_its_dtype(out, e.value):
        wide = INT64.with_lanes(e.dtype.lanes)
        return convert(out, as_value(out, out.index(e.value), wide), wide, e.dtype)
    if e.dtype.lanes > 1 and e.dtype.is_integer and e.value.dtype.is_float and _fits(e.value, e.dtype):
        return _fitting_to_int(out, out.value(e.value), e.value.dtype, e.dtype)
    return convert(out, out.value(e.value), e.value.dtype, e.dtype)


def _fits(e: Expr, target: DType) -> bool:
    """Whether a float is NaN, or within the limits of an integer, as by `min` and `max` with constants."""
    least, greatest = _limits(e)
    assert target.min_value is not None and target.max_value is not None
    return target.min_value <= least and greatest <= target.max_value


def _limits(e: Expr) -> tuple[float, float]:
    """The least and the greatest number that a float can be, if it is not NaN."""
    e = e.value if isinstance(e, Broadcast) else e
    if isinstance(e, FloatImm):
        return (e.value, e.value) if e.value == e.value else (-inf, inf)
    if not isinstance(e, (Max, Min)) or not (_is_number(e.a) or _is_number(e.b)):
        return -inf, inf
    (low, high), (least, greatest) = _limits(e.a), _limits(e.b)
    choose = max if isinstance(e, Max) else min
    return choose(low, least), choose(high, greatest)


def _is_number(e: Expr) -> bool:
    return isinstance(e.value if isinstance(e, Broadcast) else e, FloatImm)


def _fitting_to_int(out: Emitter, value: str, source: DType, target: DType) -> str:
    """Emits a vector of floats that are NaN or fit the integers; NaN becomes 0."""
    t, argument = register_type(target), register_type(source)
    number = out.assign(f"fcmp ord {argument} {value}, {value}")
    whole = out.assign(f"{'fptosi' if target.is_int else 'fptoui'} {argument} {value} to {t}")
    zero = int_splat(target.bits, 0, target.lanes)
    return out.assign(f"select {vector_of('i1', target.lanes)} {number}, {t} {whole}, {t} {zero}")


def convert(out: Emitter, value: str, source: DType, target: DType) -> str:
    """Emits `value` of dtype `source` as dtype `target`."""
    if source is target:
        return value
    if target.is_handle or source.is_handle:
        raise LoweringError(f"a value of {source} cannot be cast to {target}",
                            hint="handles are pointers: cast numbers only")
    if target.is_bool:
        return _to_bool(out, value, source)
    if source.is_bool:
        return _from_bool(out, value, target)
    if source.is_float:
        return _narrow_or_widen(out, value, source, target) if target.is_float else _float_to_int(out, value, source, target)
    return _int_to_float(out, value, source, target) if target.is_float else _int_to_int(out, value, source, target)


def _to_bool(out: Emitter, value: str, source: DType) -> str:
    t = register_type(source)
    if source.is_float:
        return out.assign(f"fcmp une {t} {value}, {float_splat(source, 0.0)}")
    return out.assign(f"icmp ne {t} {value}, {int_splat(source.bits, 0, source.lanes)}")


def _from_bool(out: Emitter, value: str, target: DType) -> str:
    t, mask = register_type(target), vector_of("i1", target.lanes)
    if target.is_float:
        return out.assign(f"select {mask} {value}, {t} {float_splat(target, 1.0)}, {t} {float_splat(target, 0.0)}")
    return out.assign(f"zext {mask} {value} to {t}")


def _int_to_int(out: Emitter, value: str, source: DType, target: DType) -> str:
    if source.bits == target.bits:
        return value
    name = "trunc" if target.bits < source.bits else "sext" if source.is_int else "zext"
    return out.assign(f"{name} {register_type(source)} {value} to {register_type(target)}")


def _narrow_or_widen(out: Emitter, value: str, source: DType, target: DType) -> str:
    if target.bits == 64:
        return out.assign(f"fpext {register_type(source)} {value} to {register_type(target)}")
    if source.bits == 64:
        if target.bits == 16:
            return halves.narrow_double(out, target, value)
        return out.assign(f"fptrunc {register_type(source)} {value} to {register_type(target)}")
    return value if target.bits == 32 else halves.round_to(out, target, value)


def _float_to_int(out: Emitter, value: str, source: DType, target: DType) -> str:
    """Emits a float as an integer: truncated towards 0, saturated at the ends of the range; NaN becomes 0."""
    kind = "fptosi" if target.is_int else "fptoui"
    result, argument = register_type(target), register_type(source)
    if target.lanes > 1:
        return _lanes_to_int(out, value, source, target)
    name = f"llvm.{kind}.sat.{suffix(target)}.{suffix(source)}"
    symbol = out.module.declare(name, f"declare {result} @{name}({argument})")
    return out.assign(f"call {result} {symbol}({argument} {value})")


def _lanes_to_int(out: Emitter, value: str, source: DType, target: DType) -> str:
    """Emits vectors of floats as integers like `_float_to_int`, but without the saturating intrinsic, which LLVM compiles to
    branches per lane on x86.
    """
    kind = "fptosi" if target.is_int else "fptoui"
    argument, mask = register_type(source), vector_of("i1", target.lanes)
    least, greatest = target.min_value, target.max_value
    assert least is not None and greatest is not None
    low, high = (float_splat(source, float(end)) for end in (least, greatest + 1))  # powers of 2: exact
    above = out.assign(f"fcmp oge {argument} {value}, {high}")
    reached, short = out.assign(f"fcmp oge {argument} {value}, {low}"), out.assign(f"fcmp olt {argument} {value}, {high}")
    inside = out.assign(f"and {mask} {reached}, {short}")
    held = out.assign(f"select {mask} {inside}, {argument} {value}, {argument} {float_splat(source, 0.0)}")
    whole = out.assign(f"{kind} {argument} {held} to {register_type(target)}")
    bounded = _where(out, above, greatest, whole, target)
    if not target.is_int:
        return bounded
    return _where(out, out.assign(f"fcmp olt {argument} {value}, {low}"), least, bounded, target)


def _where(out: Emitter, mask: str, constant: int, value: str, target: DType) -> str:
    """Emits a vector with `constant` in the lanes of the mask and `value` elsewhere."""
    t, end = register_type(target), int_splat(target.bits, constant, target.lanes)
    return out.assign(f"select {vector_of('i1', target.lanes)} {mask}, {t} {end}, {t} {value}")


def _int_to_float(out: Emitter, value: str, source: DType, target: DType) -> str:
    name = "sitofp" if source.is_int else "uitofp"
    if target.bits > 16 or source.bits <= 16:  # a float holds 16 bits exactly
        converted = out.assign(f"{name} {register_type(source)} {value} to {register_type(target)}")
        return converted if target.bits > 16 else halves.round_to(out, target, converted)
    if source.bits == 64:
        value = halves.sticky_i64(out, value, source.lanes, source.is_int)
    double = vector_of("double", source.lanes)
    return halves.narrow_double(out, target, out.assign(f"{name} {register_type(source)} {value} to {double}"))


def to_memory(out: Emitter, value: str, d: DType) -> str:
    """Emits `value` as it is stored: bool as a byte, 16-bit floats as their bits."""
    if d.is_bool:
        return out.assign(f"zext {register_type(d)} {value} to {memory_type(d)}")
    return halves.pack(out, d, value) if d.is_float and d.bits == 16 else value


def from_memory(out: Emitter, value: str, d: DType) -> str:
    """Emits a stored value as a register: any byte but 0 is true, 16-bit floats become floats."""
    if d.is_bool:
        return out.assign(f"icmp ne {memory_type(d)} {value}, {int_splat(8, 0, d.lanes)}")
    return halves.unpack(out, d, value) if d.is_float and d.bits == 16 else value


def emit_reinterpret(out: Emitter, e: Call) -> str:
    """Emits the bits of the argument as another dtype of equal width."""
    source, target = e.args[0].dtype, e.dtype
    value = out.value(e.args[0])
    if source.bits * source.lanes != target.bits * target.lanes or source.is_bool or target.is_bool:
        raise LoweringError(f"reinterpret of {source} as {target}: both need the same number of bits, and bool has no bits")
    if source.is_handle and target.is_integer and target.lanes == 1:
        return out.assign(f"ptrtoint ptr {value} to {memory_type(target)}")
    stored = to_memory(out, value, source)
    if memory_type(source) != memory_type(target):
        stored = out.assign(f"bitcast {memory_type(source)} {stored} to {memory_type(target)}")
    return from_memory(out, stored, target)
