"""Loads and stores of many lanes for which the machine has no instruction: a loop over the lanes.

before:  <192 x i8> at p, p + s, p + 2*s, ...: 192 addresses, loads, and insertions into a vector
after:   for (k: 0, 192) { values[k] = p[offsets[k]] }, with values and offsets on the stack; then one load of values

LLVM takes as long for the first as for a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.types import memory_type
from tedsl.ir.dtype import DType

_WRITTEN, _MASKED = 64, 32  # lanes that are accessed one by one without a loop, which is not faster for one register
_CONSTANT = 128  # the same where they are constants apart: LLVM joins neighbours, and leaves out lanes that are off


def are_many(lanes: int, mask: str | None, constant: bool) -> bool:
    """Tells whether to access `lanes` lanes in a loop. constant: they are constants apart."""
    return lanes > (_CONSTANT if constant else _WRITTEN if mask is None else _MASKED)


class Places(NamedTuple):
    """pointer: what the elements are counted from. offsets: a vector of integers of `bits`, or the distance of neighbours."""

    pointer: str
    offsets: str | int
    bits: int = 64


def load_in_turn(out: Emitter, places: Places, d: DType, mask: str | None) -> str:
    """Emits the loads of the lanes that are on in `mask`; the others are zero."""
    element, t = memory_type(d.element), memory_type(d)
    values = _scratch(out, element, d.lanes)

    def access(lane: str, pointer: str) -> None:
        value = out.assign(f"load {element}, ptr {pointer}, align {d.bytes}")
        here = out.assign(f"getelementptr inbounds {element}, ptr {values}, i64 {lane}")
        out.line(f"store {element} {value}, ptr {here}, align {d.bytes}")

    _in_turn(out, places, d, mask, access)
    result = out.assign(f"load {t}, ptr {values}, align 64")
    return result if mask is None else out.assign(f"select <{d.lanes} x i1> {mask}, {t} {result}, {t} zeroinitializer")


def store_in_turn(out: Emitter, places: Places, value: str, d: DType, mask: str | None) -> None:
    """Emits the stores of the lanes that are on in `mask`, in ascending order."""
    element = memory_type(d.element)
    values = _scratch(out, element, d.lanes)
    out.line(f"store {memory_type(d)} {value}, ptr {values}, align 64")

    def access(lane: str, pointer: str) -> None:
        here = out.assign(f"getelementptr inbounds {element}, ptr {values}, i64 {lane}")
        one = out.assign(f"load {element}, ptr {here}, align {d.bytes}")
        out.line(f"store {element} {one}, ptr {pointer}, align {d.bytes}")

    _in_turn(out, places, d, mask, access)


def _in_turn(out: Emitter, places: Places, d: DType, mask: str | None, access: Callable[[str, str], None]) -> None:
    """Emits a loop that calls `access` with the number and the address of each lane that is on."""
    lanes, element, offsets, on = d.lanes, memory_type(d.element), places.offsets, ""
    of = f"i{places.bits}"
    if isinstance(offsets, str):
        kept = _scratch(out, of, lanes, "offsets")
        out.line(f"store <{lanes} x {of}> {offsets}, ptr {kept}, align 64")
    if mask is not None:
        on = _scratch(out, "i8", lanes, "on")
        bytes_ = out.assign(f"zext <{lanes} x i1> {mask} to <{lanes} x i8>")
        out.line(f"store <{lanes} x i8> {bytes_}, ptr {on}, align 64")
    before, loop, done = out.block, out.fresh("lanes"), out.fresh("done")
    last = out.fresh("next") if mask is not None else loop
    lane, after = f"%{out.fresh('lane')}", f"%{out.fresh('after')}"
    out.line(f"br label %{loop}")
    out.start_block(loop)
    out.line(f"{lane} = phi i64 [ 0, %{before} ], [ {after}, %{last} ]")
    if mask is not None:
        bit = out.assign(f"load i8, ptr {out.assign(f'getelementptr inbounds i8, ptr {on}, i64 {lane}')}, align 1")
        then = out.fresh("then")
        out.line(f"br i1 {out.assign(f'icmp ne i8 {bit}, 0')}, label %{then}, label %{last}")
        out.start_block(then)
    if isinstance(offsets, str):
        place = out.assign(f"getelementptr inbounds {of}, ptr {kept}, i64 {lane}")
        moved = out.assign(f"load {of}, ptr {place}, align {places.bits // 8}")
    else:
        of, moved = "i64", out.assign(f"mul i64 {lane}, {offsets}")
    access(lane, out.assign(f"getelementptr {element}, ptr {places.pointer}, {of} {moved}"))
    if mask is not None:
        out.line(f"br label %{last}")
        out.start_block(last)
    out.line(f"{after} = add i64 {lane}, 1")
    out.line(f"br i1 {out.assign(f'icmp ult i64 {after}, {lanes}')}, label %{loop}, label %{done}")
    out.start_block(done)


def _scratch(out: Emitter, element: str, lanes: int, name: str = "values") -> str:
    """Returns an array on the stack, the same for all accesses of so many elements."""
    key = f"[{lanes} x {element}]", name
    if key not in out.scratch:
        out.scratch[key] = out.alloca(key[0], 64, name)
    return out.scratch[key]
