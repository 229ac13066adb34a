"""Operations on bits: logic, shifts, fields, counts, permutations."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import LOGIC, Array, Operation, array_type, modifiers, unknown
from tedsl.simulate.ptx.syntax import BYTES, Instruction

_LOGIC: dict[str, tuple[int, Callable[..., Array]]] = {
    "and": (2, np.bitwise_and), "or": (2, np.bitwise_or), "xor": (2, np.bitwise_xor), "not": (1, np.invert),
    "cnot": (1, lambda a: (a == 0).astype(a.dtype))}


def logic(instruction: Instruction) -> Operation:
    """The operation of and, or, xor, not, cnot on bits and predicates."""
    modifiers(instruction, ())
    count, function = _LOGIC[instruction.name]
    return Operation(instruction.type, (instruction.type,) * count, function, LOGIC)


def shift(instruction: Instruction) -> Operation:
    """The operation of shl and shr: shifts by more than the width give zeros, or signs."""
    modifiers(instruction, ())
    form = instruction.type
    kind, width = array_type(form).type, 8 * BYTES[form]
    signed = instruction.name == "shr" and form[0] == "s"

    def left(a: Array, by: Array) -> Array:
        far = by >= width
        if not far.any():
            return cast(Array, a << by.astype(a.dtype))
        return cast(Array, np.where(far, kind(0), a << np.where(far, np.uint32(0), by).astype(a.dtype)))

    def right(a: Array, by: Array) -> Array:
        far = by >= width
        if not far.any():
            return cast(Array, a >> by.astype(a.dtype))
        if signed:
            return cast(Array, a >> np.minimum(by, np.uint32(width - 1)).astype(a.dtype))
        return cast(Array, np.where(far, kind(0), a >> np.where(far, np.uint32(0), by).astype(a.dtype)))

    return Operation(form, (form, "u32"), left if instruction.name == "shl" else right, LOGIC)


def funnel(instruction: Instruction) -> Operation:
    """The operation of shf: 32 bits of two registers, shifted as one of 64 bits."""
    found = modifiers(instruction, {"l", "r", "wrap", "clamp"})

    def shifted(low: Array, high: Array, by: Array) -> Array:
        by = (by & np.uint32(31) if "wrap" in found else np.minimum(by, np.uint32(32))).astype(np.uint64)
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        moved = both >> by if "r" in found else (both << by) >> np.uint64(32)
        return moved.astype(np.uint32)

    return Operation("b32", ("b32", "b32", "u32"), shifted, LOGIC)


def _masks(count: Array, kind: np.dtype[np.generic], width: int) -> Array:
    """Numbers whose last `count` bits are set."""
    whole = count >= width
    one = np.array([1], kind)
    return np.where(whole, ~np.array([0], kind), (one << np.where(whole, 0, count).astype(kind)) - one)


def extract(instruction: Instruction) -> Operation:
    """The operation of bfe: a field of bits, with its sign if the type has one."""
    modifiers(instruction, ())
    form = instruction.type
    width, unsigned = 8 * BYTES[form], np.dtype(f"u{BYTES[form]}")

    def field(a: Array, start: Array, length: Array) -> Array:
        start, length = start & np.uint32(0xFF), length & np.uint32(0xFF)
        bits, sign = a.view(unsigned), np.uint32(width - 1)
        moved = np.where(start >= width, unsigned.type(0), bits >> np.minimum(start, sign).astype(unsigned))
        kept = moved & _masks(length, unsigned, width)
        if form[0] == "u":
            return cast(Array, kept)
        last = np.minimum(start + length - np.uint32(1), sign)
        negative = (length > 0) & ((bits >> last.astype(unsigned)) & unsigned.type(1)).astype(bool)
        cut = np.minimum(length, np.maximum(np.uint32(width) - np.minimum(start, np.uint32(width)), np.uint32(0)))
        return cast(Array, np.where(negative, kept | ~_masks(cut, unsigned, width), kept).view(a.dtype))

    return Operation(form, (form, "u32", "u32"), field, LOGIC)


def insert(instruction: Instruction) -> Operation:
    """The operation of bfi: the second operand with a field of bits replaced by the first."""
    modifiers(instruction, ())
    form = instruction.type
    width, kind = 8 * BYTES[form], array_type(form)

    def inserted(a: Array, b: Array, start: Array, length: Array) -> Array:
        start, length = start & np.uint32(0xFF), length & np.uint32(0xFF)
        inside = np.minimum(start, np.uint32(width - 1)).astype(kind)
        mask = np.where(start >= width, kind.type(0), _masks(length, kind, width) << inside)
        return cast(Array, ((a << inside) & mask) | (b & ~mask))

    return Operation(form, (form, form, "u32", "u32"), inserted, LOGIC)


def _bytes_of(value: Array) -> Array:
    """The bits of each number, the lowest first, in rows."""
    return np.unpackbits(np.ascontiguousarray(value).view(np.uint8).reshape(value.size, -1), axis=1, bitorder="little")


def _leading(value: Array) -> Array:
    bits = _bytes_of(value)[:, ::-1]
    return cast(Array, np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1]).astype(np.uint32))


def _reversed(value: Array) -> Array:
    return np.packbits(_bytes_of(value)[:, ::-1], axis=1, bitorder="little").reshape(-1).view(value.dtype)


def _highest(value: Array) -> Array:
    """The place of the highest bit that differs from the sign; all ones if there is none."""
    seen = np.where(value < 0, ~value, value) if value.dtype.kind == "i" else value
    places = np.uint32(8 * value.dtype.itemsize - 1) - _leading(seen)
    return np.where(seen == 0, np.uint32(0xFFFFFFFF), places).astype(np.uint32)


def count(instruction: Instruction) -> Operation:
    """The operation of popc, clz, brev and bfind."""
    form, name = instruction.type, instruction.name
    found = modifiers(instruction, {"shiftamt"} if name == "bfind" else ())
    if found:
        raise unknown(instruction)
    functions: dict[str, Callable[..., Array]] = {
        "popc": lambda a: _bytes_of(a).sum(axis=1, dtype=np.uint32), "clz": _leading, "brev": _reversed, "bfind": _highest}
    return Operation(form if name == "brev" else "u32", (form,), functions[name], LOGIC)


def permute(instruction: Instruction) -> Operation:
    """The operation of prmt: each byte of the result is one of the eight of two operands, or its sign."""
    if modifiers(instruction, ()):
        raise unknown(instruction)

    def permuted(a: Array, b: Array, selector: Array) -> Array:
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        result = np.zeros(1, np.uint32)
        for place in range(4):
            choice = (selector >> np.uint32(4 * place)) & np.uint32(0xF)
            byte = (both >> ((choice & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(0xFF)
            sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
            result = result | (np.where(choice & np.uint32(8), sign, byte) << np.uint32(8 * place))
        return cast(Array, result)

    return Operation("b32", ("b32", "b32", "u32"), permuted, LOGIC)


def lookup(instruction: Instruction) -> Operation:
    """The operation of lop3: any function of three bits, by its table."""
    if modifiers(instruction, ()):
        raise unknown(instruction)

    def looked_up(a: Array, b: Array, c: Array, table: Array) -> Array:
        result: Array = np.zeros(1, np.uint32)
        for row in range(8):
            if int(table[0]) >> row & 1:
                result = result | ((a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c))
        return result

    return Operation("b32", ("b32", "b32", "b32", "u32"), looked_up, LOGIC)
