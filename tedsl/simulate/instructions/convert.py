"""Conversions between types: cvt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tedsl.simulate.instructions.floating import saturated
from tedsl.simulate.instructions.operation import CONVERT, Array, Operation, array_type, unknown
from tedsl.simulate.instructions.rounding import MODES, NEAREST, bfloat, bfloat_values, flushed, narrowed, odd_floats
from tedsl.simulate.ptx.syntax import BYTES, Instruction

_INTEGRAL: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLOATS = ("f16", "bf16", "f32", "f64")
_KNOWN = MODES | _INTEGRAL.keys() | {"ftz", "sat", "relu"}


def conversion(instruction: Instruction) -> Operation:
    """The operation of cvt."""
    to, of = instruction.parts[-2:]
    found = set(instruction.parts[1:-2])
    if not found <= _KNOWN or to not in BYTES or of not in BYTES:
        raise unknown(instruction)
    if to in ("f16x2", "bf16x2"):
        return _pair(instruction, to, of, found)
    if to == "tf32" or of == "tf32" or "relu" in found:
        raise unknown(instruction)
    modes = found & (MODES | _INTEGRAL.keys())
    mode = next(iter(modes), "")
    if of in _FLOATS:
        function = _from_float(to, of, mode)
    else:
        function = _from_integer(instruction, to, of, mode)
    if "ftz" in found and of == "f32":
        unflushed = function
        function = lambda a: unflushed(flushed(a))
    if "sat" in found and to in _FLOATS:
        unclamped = function
        function = lambda a: saturated(unclamped(a))
    elif "sat" in found:
        function = _clamped(function, to, of)
    if "ftz" in found and to == "f32":
        exact = function
        function = lambda a: flushed(exact(a))
    return Operation(to, (of,), function, CONVERT)


def doubles(values: Array, of: str) -> Array:
    """Returns floating-point numbers of a PTX type as doubles."""
    return (bfloat_values(values) if of == "bf16" else values).astype(np.float64)


def rounded(exact: Array, to: str, mode: str = NEAREST) -> Array:
    """Returns doubles (exact, or rounded to odd) as numbers of a PTX type, rounded once."""
    if to != "bf16":
        return narrowed(exact, to, mode)
    if mode == "rz":
        cut = odd_floats(exact).view(np.uint32) >> np.uint32(16)
        return np.where(np.isnan(exact), np.uint32(0x7FFF), cut).astype(np.uint16)
    return bfloat(odd_floats(exact))


def _from_float(to: str, of: str, mode: str) -> Callable[..., Array]:
    if to in _FLOATS:
        if mode in _INTEGRAL:
            step = _INTEGRAL[mode]
            return lambda a: rounded(step(doubles(a, of)), to)
        if of == "f32" and to == "f64":
            return lambda a: a.astype(np.float64)
        return lambda a: rounded(doubles(a, of), to, mode or NEAREST)
    step, kind = _INTEGRAL.get(mode, np.trunc), array_type(to)
    return lambda a: to_integers(step(doubles(a, of)), kind, nan_is_least=of == "f64" or BYTES[to] == 8)


def to_integers(whole: Array, kind: np.dtype[Any], nan_is_least: bool = False) -> Array:
    """Returns whole numbers as integers, those outside of the type as its nearest; NaN as 0, or as the bits of the least number
    with a sign.
    """
    ends = np.iinfo(kind)
    low, high = whole <= float(ends.min), whole >= float(ends.max)
    nan = np.isnan(whole)
    inside = np.where(low | high | nan, 0.0, whole)
    made = np.where(low, kind.type(ends.min), np.where(high, kind.type(ends.max), inside.astype(kind)))
    of_nan = np.array([1 << (8 * kind.itemsize - 1)], f"u{kind.itemsize}").view(kind)[0] if nan_is_least else kind.type(0)
    return np.where(nan, of_nan, made)


def _from_integer(instruction: Instruction, to: str, of: str, mode: str) -> Callable[..., Array]:
    kind = array_type(to)
    if to not in _FLOATS:
        return lambda a: a.astype(kind)
    if BYTES[of] == 8 and (to != "f32" or mode != NEAREST) and (to != "f64" or mode != NEAREST):
        raise unknown(instruction)
    if BYTES[of] == 8:
        return lambda a: a.astype(kind)
    return lambda a: rounded(a.astype(np.float64), to, mode or NEAREST)


def _clamped(function: Callable[..., Array], to: str, of: str) -> Callable[..., Array]:
    """The conversion to an integer that stops at the ends of its type; from floats it does so in any case."""
    if of in _FLOATS:
        return function
    ends, wide = np.iinfo(array_type(to)), np.iinfo(array_type(of))
    low, high = max(int(ends.min), int(wide.min)), min(int(ends.max), int(wide.max))
    return lambda a: function(np.clip(a, a.dtype.type(low), a.dtype.type(high)))


def _pair(instruction: Instruction, to: str, of: str, found: set[str]) -> Operation:
    """Two floats as two halves: the first operand is the upper one."""
    if of != "f32" or not found <= {"rn", "rz", "relu"}:
        raise unknown(instruction)
    half, mode = to.removesuffix("x2"), next(iter(found & MODES), NEAREST)

    def packed(high: Array, low: Array) -> Array:
        if "relu" in found:
            high, low = (np.where(one > 0, one, np.where(np.isnan(one), one, np.float32(0))) for one in (high, low))
        parts = [rounded(one.astype(np.float64), half, mode).view(np.uint16).astype(np.uint32) for one in (low, high)]
        return cast(Array, parts[0] | (parts[1] << np.uint32(16)))

    return Operation("b32", ("f32", "f32"), packed, CONVERT)
