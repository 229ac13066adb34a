"""Arithmetic on integers. Registers wrap; a division by zero gives all ones, and its remainder the dividend."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import INTEGER, Array, Operation, array_type, modifiers, unknown
from tedsl.simulate.ptx.syntax import BYTES, Instruction

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def product(instruction: Instruction) -> Operation:
    """The operation of mul and mad: the low half of the product, its high half, or (wide) all of it."""
    form, name = instruction.type, instruction.name
    half = modifiers(instruction, {"lo", "hi", "wide"})
    count = 3 if name == "mad" else 2
    if half == {"wide"} and form in _WIDE:
        wide = _WIDE[form]
        kind = array_type(wide)
        multiply: Callable[..., Array] = lambda a, b: np.multiply(a, b, dtype=kind)
        result, types = wide, (form, form, wide)[:count]
    elif half == {"hi"}:
        multiply, result, types = high_half(form), form, (form,) * count
    elif half == {"lo"}:
        multiply, result, types = np.multiply, form, (form,) * count
    else:
        raise unknown(instruction)
    if name == "mad":
        return Operation(result, types, lambda a, b, c: multiply(a, b) + c, INTEGER)
    return Operation(result, types, multiply, INTEGER)


def high_half(form: str) -> Callable[..., Array]:
    """Returns the function that gives the high half of products."""
    if BYTES[form] < 8:
        wide, narrow, shift = np.dtype(f"{form[0].replace('s', 'i')}8"), array_type(form), 8 * BYTES[form]
        return lambda a, b: (np.multiply(a, b, dtype=wide) >> wide.type(shift)).astype(narrow)
    return _high_signed if form == "s64" else _high_unsigned


def _high_unsigned(a: Array, b: Array) -> Array:
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & low, a >> shift, b & low, b >> shift
    middle = a_high * b_low + ((a_low * b_low) >> shift)
    other = a_low * b_high + (middle & low)
    return cast(Array, a_high * b_high + (middle >> shift) + (other >> shift))


def _high_signed(a: Array, b: Array) -> Array:
    unsigned = _high_unsigned(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return cast(Array, unsigned - np.where(a < 0, b, 0) - np.where(b < 0, a, 0))


def quotient(a: Array, b: Array) -> Array:
    """Returns the quotient, towards zero."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        return np.where(zero, ~b.dtype.type(0), a // safe)
    least = np.iinfo(a.dtype).min
    overflow = (a == least) & (safe == -1)
    whole = np.where(overflow, a.dtype.type(1), a) // np.where(overflow, b.dtype.type(1), safe)  # rounds down
    inexact = whole * safe != a
    whole = whole + (inexact & ((a < 0) != (safe < 0)) & ~overflow).astype(a.dtype)
    return cast(Array, np.where(zero, a.dtype.type(-1), np.where(overflow, a.dtype.type(least), whole)))


def remainder(a: Array, b: Array) -> Array:
    """Returns the remainder, of the sign of the dividend."""
    return np.where(b == 0, a, a - quotient(a, b) * b)


def _saturated(function: Callable[..., Array]) -> Callable[..., Array]:
    """Sums and differences of 32 bits that stop at the ends of their range."""
    ends = np.iinfo(np.int32)
    return lambda a, b: np.clip(function(a.astype(np.int64), b.astype(np.int64)), ends.min, ends.max).astype(np.int32)


def _absolute_difference(a: Array, b: Array, c: Array) -> Array:
    return np.where(a < b, b - a, a - b) + c


_SIMPLE: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, np.add), "sub": (2, np.subtract), "div": (2, quotient), "rem": (2, remainder),
    "min": (2, np.minimum), "max": (2, np.maximum), "abs": (1, np.abs), "neg": (1, np.negative),
    "sad": (3, _absolute_difference)}


def arithmetic(instruction: Instruction) -> Operation:
    """The operation of add, sub, div, rem, min, max, abs, neg and sad."""
    count, function = _SIMPLE[instruction.name]
    if modifiers(instruction, {"sat"}):
        if instruction.type != "s32" or instruction.name not in ("add", "sub"):
            raise unknown(instruction)
        function = _saturated(function)
    return Operation(instruction.type, (instruction.type,) * count, function, INTEGER)


def product24(instruction: Instruction) -> Operation:
    """The operation of mul24.lo and mad24.lo."""
    form, mad = instruction.type, instruction.name == "mad24"
    if modifiers(instruction, {"lo"}) != {"lo"}:
        raise unknown(instruction)
    kind = array_type(form).type

    def cut(value: Array) -> Array:
        return cast(Array, (value << kind(8)) >> kind(8))

    if mad:
        return Operation(form, (form,) * 3, lambda a, b, c: cut(a) * cut(b) + c, INTEGER)
    return Operation(form, (form,) * 2, lambda a, b: cut(a) * cut(b), INTEGER)


def dot_of_bytes(instruction: Instruction) -> Operation:
    """The operation of dp4a: the sum of products of four bytes, added to a number."""
    first, second = instruction.parts[1:]
    result = "s32" if "s32" in (first, second) else "u32"
    kinds = [np.int8 if one == "s32" else np.uint8 for one in (first, second)]

    def dot(a: Array, b: Array, c: Array) -> Array:
        a, b = (np.ascontiguousarray(one) for one in np.broadcast_arrays(a, b))
        parts = [one.view(kind).reshape(-1, 4).astype(np.int64) for one, kind in zip((a, b), kinds)]
        return cast(Array, (parts[0] * parts[1]).sum(axis=1).astype(c.dtype) + c)

    return Operation(result, ("b32", "b32", result), dot, INTEGER)
