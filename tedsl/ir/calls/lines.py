"""Where arrays begin within a line of memory: `tir.elements_past_line`."""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.dtype import INT32, UINT64, DType
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.ops import BITWISE_AND, ELEMENTS_PAST_LINE, REINTERPRET, SHIFT_RIGHT

LINE = 64  # bytes of a line of memory: what processors load and store at once


def elements_per_line(factor: int, of: DType) -> int:
    """Returns how many elements of dtype `of` are a line, for tiles of `factor` elements: LINE or a part of it that divides
    each tile, so that all of them begin at lines if one does; 1 if no part of more elements does.
    """
    size = of.bytes * of.lanes
    tile = factor * size
    line = min(LINE, tile & -tile)
    return line // size if line % size == 0 else 1


def elements_past_line(data: Var, elements: int, of: DType) -> Expr:
    """Returns the number of elements of dtype `of` that `data` begins behind a line of so many `elements`."""
    return Call(INT32, ELEMENTS_PAST_LINE, (data, build.const(elements, INT32), build.const(of.bytes * of.lanes, INT32)))


def most_past_line(call: Call) -> int:
    """Returns the largest value that `call` of ELEMENTS_PAST_LINE can have."""
    elements = build.as_int(call.args[1])
    assert elements is not None
    return elements - 1


def in_bits(call: Call) -> Expr:
    """Returns what `call` of ELEMENTS_PAST_LINE is, of the bits of the address."""
    size = build.as_int(call.args[2])
    assert size is not None
    address: Expr = Call(UINT64, REINTERPRET, call.args[:1])
    if size > 1:
        address = Call(UINT64, SHIFT_RIGHT, (address, build.const(size.bit_length() - 1, UINT64)))
    return build.cast(call.dtype, Call(UINT64, BITWISE_AND, (address, build.const(most_past_line(call), UINT64))))
