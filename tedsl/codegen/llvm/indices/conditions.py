"""Comparisons of indices."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import AnyIndex, Index, Ramp
from tedsl.codegen.llvm.indices.vectors import as_lanes, common_bits, splat_register
from tedsl.codegen.llvm.types import int_splat, steps, vector_of


def emit_condition(out: Emitter, name: str, a: AnyIndex, b: AnyIndex) -> str:
    """Emits the comparison `name` of two indices: an i1, or a vector of them."""
    if isinstance(a, Index) and isinstance(b, Index):
        return scalar_condition(out, name, a, b)[0]
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        stride = a.stride - b.stride
        if not stride:
            return splat_condition(out, scalar_condition(out, name, a.base, b.base)[0], a.lanes)
        return _ramp_condition(out, name, stride, ix.add(b.base, a.base, -1), a.lanes)
    bits = common_bits(a, b, (0, 0))
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    lanes = a.lanes if not isinstance(a, Index) else 1
    return out.assign(f"icmp {name} {vector_of(f'i{bits}', lanes)} {x}, {y}")


def scalar_condition(out: Emitter, name: str, a: Index, b: Index) -> tuple[str, int]:
    """Emits the comparison `name` of two scalars, and returns the number of the region that defines it, too."""
    low, high = ix.add(a, b, -1).bounds()
    decided = decide(name, low, high)
    if decided is not None:
        return ("true" if decided else "false"), 0
    bits, ((x, lx), (y, ly)) = out.sized_register(a, b)
    return out.pure(f"icmp {name} i{bits} {x}, {y}", max(lx, ly)), max(lx, ly)


def decide(name: str, low: int, high: int) -> bool | None:
    """Decides the comparison `name` of a number in [low, high] with 0; None if the interval does not decide it."""
    if name in ("eq", "ne"):
        if low > 0 or high < 0:
            return name == "ne"
        return name == "eq" if low == high == 0 else None
    yes, no = {"slt": (high < 0, low >= 0), "sle": (high <= 0, low > 0), "sgt": (low > 0, high <= 0),
               "sge": (low >= 0, high < 0)}[name]
    return True if yes else False if no else None


def splat_condition(out: Emitter, condition: str, lanes: int) -> str:
    """Returns a vector with the i1 `condition` in every lane."""
    if condition in ("true", "false"):
        return int_splat(1, int(condition == "true"), lanes)
    return splat_register(out, condition, "i1", lanes, out.level)


def _ramp_condition(out: Emitter, name: str, stride: int, limit: Index, lanes: int) -> str:
    """Emits `stride * lane <name> limit` per lane. The limit is clamped to just beyond the lanes, so that it fits 32 bits."""
    span = stride * (lanes - 1)
    below, above = min(0, span) - 1, max(0, span) + 1
    low, high = limit.bounds()
    decided = decide(name, min(0, span) - high, max(0, span) - low)
    if decided is not None:
        return int_splat(1, int(decided), lanes)
    text, level = out.register(limit)
    if low < below:
        text = _bound(out, "smax", text, below, level)
    if high > above:
        text = _bound(out, "smin", text, above, level)
    bits = 8 if lanes > 16 and below >= -128 and above < 128 else 32 if below >= -2**31 and above < 2**31 else 64
    element = f"i{bits}"
    if bits < 64:
        text = out.pure(f"trunc i64 {text} to {element}", level) if text[0] == "%" else text
    vector = splat_register(out, text, element, lanes, level)
    return out.pure(f"icmp {name} <{lanes} x {element}> {steps(bits, stride, lanes)}, {vector}", level)


def _bound(out: Emitter, name: str, text: str, limit: int, level: int) -> str:
    symbol = out.module.declare(f"llvm.{name}.i64", f"declare i64 @llvm.{name}.i64(i64, i64)")
    return out.pure(f"call i64 {symbol}(i64 {text}, i64 {limit})", level)
