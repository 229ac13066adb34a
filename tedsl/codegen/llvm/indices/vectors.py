"""Vectors of indices in registers of 32 or 64 bits, and the steps that they share with scalar indices."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, AnyIndex, Index, Lanes, Ramp
from tedsl.codegen.llvm.types import steps, vector_of
from tedsl.ir.dtype import DType, wrap_integer


def splat_register(out: Emitter, value: str, element: str, lanes: int, level: int) -> str:
    """Emits a vector with the scalar register or constant `value` in every lane."""
    if value[0] != "%":
        return "zeroinitializer" if value == "0" else f"splat ({element} {value})"
    t = f"<{lanes} x {element}>"
    first = out.pure(f"insertelement {t} poison, {element} {value}, i64 0", level)
    return out.pure(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer", level)


def narrow(out: Emitter, index: Index, d: DType) -> str:
    """Emits the value of a scalar index as data of dtype `d`."""
    if not index.terms:
        return str(wrap_integer(index.const, d))
    if d.bits == 64:
        return out.register(index)[0]
    bits, ((text, level),) = out.sized_register(index)
    return text if d.bits == bits else out.pure(f"trunc i{bits} {text} to i{d.bits}", level)


def ramp_lanes(out: Emitter, ramp: Ramp, bits: int) -> str:
    """Emits a ramp as a vector of integers of `bits` bits, wrapped to that width."""
    text, level = out.register(ramp.base)
    element, t = f"i{bits}", vector_of(f"i{bits}", ramp.lanes)
    if text[0] == "%" and bits < 64:
        text = out.pure(f"trunc i64 {text} to {element}", level)
    elif bits < 64:
        half = 1 << (bits - 1)
        text = str(((int(text) + half) & (2 * half - 1)) - half)
    base = splat_register(out, text, element, ramp.lanes, level)
    if not ramp.stride:
        return base
    if base == "zeroinitializer":
        return steps(bits, ramp.stride, ramp.lanes)
    return out.pure(f"add {t} {base}, {steps(bits, ramp.stride, ramp.lanes)}", level)


def as_lanes(out: Emitter, value: AnyIndex, bits: int) -> str:
    """Emits a vector index as a vector of integers of `bits` bits, which it is known to fit."""
    if isinstance(value, Ramp):
        return ramp_lanes(out, value, bits)
    assert isinstance(value, Lanes)
    text, t = value.name, vector_of(f"i{bits}", value.lanes)
    if value.bits != bits:
        name = "sext" if value.bits < bits else "trunc"
        text = out.assign(f"{name} {vector_of(f'i{value.bits}', value.lanes)} {text} to {t}")
    if not value.base.terms and not value.base.const:
        return text
    return out.assign(f"add {t} {text}, {ramp_lanes(out, Ramp(value.base, 0, value.lanes), bits)}")


def common_bits(a: AnyIndex, b: AnyIndex, bounds: tuple[int, int]) -> int:
    return 32 if all(low >= -2**31 and high < 2**31 for low, high in (a.bounds(), b.bounds(), bounds)) else 64


def lanes_op(out: Emitter, name: str, a: AnyIndex, b: AnyIndex, bounds: tuple[int, int]) -> Lanes:
    bits = common_bits(a, b, bounds)
    lanes = a.lanes if not isinstance(a, Index) else 1
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    return Lanes(out.assign(f"{name} {vector_of(f'i{bits}', lanes)} {x}, {y}"), bits, lanes,
                 max(bounds[0], INT64_MIN), min(bounds[1], INT64_MAX))
