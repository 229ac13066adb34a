"""Bits of neighbouring elements in one word, the first element in the highest bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, axis_of, opening, require_integers, shown

WORDS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


@checked
def bitpack(data: te.Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str,
            name: str = "QuantizeInput") -> te.Tensor:
    """The lowest `bits` bits of integers, each bit of as many elements along pack_axis as pack_type has bits in one word.

    data: any shape of integers, whose extent along pack_axis that number divides. The result has a new dimension at
    `bit_axis`, bit 0 first, and words in the dimension that is pack_axis of the data. pack_type: uint8, uint16, uint32, uint64.
    """
    where = opening("bitpack", data)
    require_integers(data, where, "data")
    if not 1 <= bits <= data.dtype.bits:
        raise ArgumentError(f"{where}: bits is {bits}", hint=f"{data.name} holds {data.dtype}: from 1 to {data.dtype.bits}")
    axis, place = axis_of(pack_axis, data.ndim, where, "pack_axis"), axis_of(bit_axis, data.ndim + 1, where, "bit_axis")
    packed = _packed(data, axis, pack_type, where)
    shape = [*packed[:place], bits, *packed[place:]]

    def bit(i: tuple[Any, ...], at: Callable[[tuple[Any, ...]], Any]) -> Any:
        element = at((*i[:place], *i[place + 1:]))
        return element >> i[place].astype(element.dtype) & te.const(1, element.dtype)

    return _words(data, shape, axis, pack_type, bit, name, "bitpack")


@checked
def binarize_pack(data: te.Tensor, axis: int | None = None, name: str = "PackedInput") -> te.Tensor:
    """For each element whether it is at least 0, those of 32 neighbours along `axis` (None: the last) in a word of uint32."""
    where = opening("binarize_pack", data)
    along = axis_of(-1 if axis is None else axis, data.ndim, where)
    shape = _packed(data, along, "uint32", where)
    return _words(data, shape, along, "uint32", lambda i, at: at(i) >= te.const(0, data.dtype), name, "binarize_pack")


def _packed(data: te.Tensor, axis: int, pack_type: str, where: str) -> list[Any]:
    """The shape of the data with words along `axis`."""
    width = WORDS.get(pack_type)
    if width is None:
        raise DTypeError(f"{where}: pack_type is {pack_type!r}", hint=f"choose one of {', '.join(WORDS)}")
    extent = as_int(data.shape[axis])
    if extent is None or extent % width:
        raise ShapeError(f"{where}: axis {axis} of {shown(data.shape)} is not a multiple of {width}",
                         hint="pad it: topi.nn.pad")
    return [*data.shape[:axis], extent // width, *data.shape[axis + 1:]]


def _words(data: te.Tensor, shape: list[Any], axis: int, pack_type: str, bit: Callable[..., Any], name: str,
           tag: str) -> te.Tensor:
    """Sums of bits at their places, which are words."""
    width = WORDS[pack_type]
    k = te.reduce_axis((0, width), name="bit")

    def element(*i: Any) -> Any:
        def at(place: tuple[Any, ...]) -> Any:
            return data(*place[:axis], place[axis] * width + k, *place[axis + 1:])

        return te.sum(bit(i, at).astype(pack_type) << (width - 1 - k).astype(pack_type), axis=k)

    made: te.Tensor = te.compute(shape, element, name=name, tag=tag)
    return made


def binary_op_multiplier(pack_dtype: str) -> int:
    """How many elements of one bit a word of a dtype such as "uint32" holds; DTypeError for another."""
    width = WORDS.get(pack_dtype)
    if width is None:
        raise DTypeError(f"binary_op_multiplier: pack_dtype is {pack_dtype!r}", hint=f"choose one of {', '.join(WORDS)}")
    return width
