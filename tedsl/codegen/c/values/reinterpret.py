"""Emits the bits of a value as another dtype of equal width, also where the lanes differ."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import Piece, call, cast
from tedsl.codegen.c.text.types import memory_type, suffix, value_type
from tedsl.codegen.c.values.convert import from_memory, to_memory
from tedsl.codegen.c.values.lanes import array_of
from tedsl.errors import LoweringError
from tedsl.ir.expr import Call


def emit_reinterpret(out: Emitter, e: Call) -> Emission:
    """Emits the bits of the argument as another dtype of equal width."""
    source, target = e.args[0].dtype, e.dtype
    if source.bits * source.lanes != target.bits * target.lanes or source.is_bool or target.is_bool:
        raise LoweringError(f"reinterpret of {source} as {target}: both need the same number of bits, and bool has no bits")
    if source.is_handle and target.is_integer and target.lanes == 1:
        return cast(value_type(target), cast("uintptr_t", (yield e.args[0], False)))
    if source.lanes != target.lanes:
        return (yield from _through_memory(out, e))
    value = to_memory(out, (yield e.args[0], False), source)
    if memory_type(source) != memory_type(target):
        value = call(out.module.define(f"tedsl_bits_{suffix(target)}_from_{suffix(source)}"), value)
    return from_memory(out, value, target)


def _through_memory(out: Emitter, e: Call) -> Emission:
    """Emits a vector as one of other lanes: through an array."""
    target, lane = e.dtype, out.lane
    out.lane = None
    held = yield from array_of(out, e.args[0], in_memory=True)
    out.lane = lane
    name = out.names.fresh("bits")
    out.line(f"{memory_type(target)} {name}[{target.lanes}];")
    out.line(f"memcpy({name}, {held.text}, sizeof {name});")
    out.module.uses.add("memcpy")
    at = "0" if lane is None else lane.text.text
    return from_memory(out, Piece(f"{name}[{at}]", depth=1), target)
