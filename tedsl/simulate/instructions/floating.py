"""Arithmetic on f32 and f64: what the instructions add, sub, mul, fma, div, min, max and their like compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import SPECIAL, Array, Operation, kind_of, modifiers, unknown
from tedsl.simulate.instructions.rounding import (
    MODES,
    NEAREST,
    flushed,
    fused32,
    fused64,
    narrowed,
    odd_sum,
    sum_and_error,
)
from tedsl.simulate.ptx.syntax import Instruction

_BITS = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64, np.dtype(np.float16): np.uint16}


def minimum(a: Array, b: Array) -> Array:
    """Returns the smaller; of NaN and a number the number; of zeros the negative one."""
    return _chosen(np.fmin(a, b), a, b, np.bitwise_or)


def maximum(a: Array, b: Array) -> Array:
    """Returns the larger; of NaN and a number the number; of zeros the positive one."""
    return _chosen(np.fmax(a, b), a, b, np.bitwise_and)


def _chosen(result: Array, a: Array, b: Array, zeros: Callable[..., Array]) -> Array:
    zero = result == 0
    if not zero.any():
        return result
    a, b = np.broadcast_arrays(a, b)
    bits = _BITS[result.dtype]
    both = zero & (a == b)
    return np.where(both, zeros(np.ascontiguousarray(a).view(bits), np.ascontiguousarray(b).view(bits))
                                .view(result.dtype), result)


def with_nan(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns `function`, which gives NaN where an operand is NaN."""
    return lambda *values: np.where(np.logical_or.reduce([np.isnan(one) for one in values]), values[0].dtype.type(np.nan),
                                    function(*values))


def _sum(a: Array, b: Array) -> Array:
    return a + b


def _directed(name: str, form: str, mode: str) -> Callable[..., Array]:
    """The function of `name` in a rounding mode that is not to the nearest; exact in doubles, or rounded to odd."""
    if form == "f64":
        return _directed64(mode)
    wide: dict[str, Callable[..., Array]] = {
        "add": odd_sum, "sub": lambda a, b: odd_sum(a, -b), "mul": np.multiply,
        "fma": lambda a, b, c: odd_sum(a * b, c)}
    return lambda *values: narrowed(wide[name](*[one.astype(np.float64) for one in values]), form, mode)


def _directed64(mode: str) -> Callable[..., Array]:
    """Sums of doubles; others are not known in directed modes."""
    def added(a: Array, b: Array) -> Array:
        total, error = sum_and_error(a, b)
        toward_zero = np.where(total > 0, error < 0, error > 0)
        wrong = toward_zero if mode == "rz" else error < 0 if mode == "rm" else error > 0
        bound = 0.0 if mode == "rz" else -np.inf if mode == "rm" else np.inf
        return np.where(wrong & np.isfinite(total), np.nextafter(total, bound), total)

    return added


_NEAREST: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
    "rcp": lambda a: np.divide(a.dtype.type(1), a)}
_PLAIN: dict[str, tuple[int, Callable[..., Array]]] = {
    "min": (2, minimum), "max": (2, maximum), "abs": (1, np.abs), "neg": (1, np.negative),
    "copysign": (2, lambda a, b: np.copysign(b, a))}


def arithmetic(instruction: Instruction) -> Operation:
    """The operation of add, sub, mul, fma, mad, div, sqrt and rcp on f32 and f64; `.approx` and `.full` are exact too."""
    form, name = instruction.type, {"mad": "fma"}.get(instruction.name, instruction.name)
    found = modifiers(instruction, MODES | {"ftz", "sat", "approx", "full"})
    mode = next(iter(found & MODES), NEAREST)
    count = {"fma": 3, "sqrt": 1, "rcp": 1}.get(name, 2)
    if mode != NEAREST:
        if name in ("div", "sqrt", "rcp") or (form == "f64" and name != "add"):
            raise unknown(instruction, "it rounds in a direction")
        function = _directed(name, form, mode)
    elif name == "fma":
        function = fused32 if form == "f32" else fused64
    else:
        function = _NEAREST[name]
    kind = SPECIAL if name in ("div", "sqrt", "rcp") else kind_of(form)
    return Operation(form, (form,) * count, _adjusted(function, found), kind)


def choice(instruction: Instruction) -> Operation:
    """The operation of min, max, abs, neg and copysign on f32 and f64; min and max may take three operands."""
    found = modifiers(instruction, {"ftz", "NaN"})
    count, function = _PLAIN[instruction.name]
    if len(instruction.operands) == 4 and count == 2:
        two, count = function, 3
        function = lambda a, b, c: two(two(a, b), c)
    if "NaN" in found:
        function = with_nan(function)
    return Operation(instruction.type, (instruction.type,) * count, _adjusted(function, found), kind_of(instruction.type))


def _adjusted(function: Callable[..., Array], found: set[str]) -> Callable[..., Array]:
    """The function with operands and results flushed to zero, and results between 0 and 1, as the modifiers say."""
    if "ftz" in found:
        inner = function
        function = lambda *values: flushed(inner(*[flushed(one) for one in values]))
    if "sat" in found:
        unclamped = function
        function = lambda *values: saturated(unclamped(*values))
    return function


def saturated(values: Array) -> Array:
    """Returns values between 0 and 1; NaN gives 0."""
    kind = values.dtype.type
    return cast(Array, np.where(values > 0, np.minimum(values, kind(1)), kind(0)))
