"""Calls in TVMScript: operators of TVM by name, all others by `T.call_intrin`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl.ir.expr import Call
from tedsl.ir.ops import (
    ATOMIC_ADD,
    CALL_PACKED,
    COMBINE_LANES,
    COMPRESS,
    DATA_INDEX,
    DOT,
    ELEMENTS_PAST_LINE,
    EXP_BOUNDED,
    FMA,
    FOREIGN,
    LANE_MASK,
    OPS,
    PREFETCH,
    REINTERPRET,
    STRUCT_GET,
    TILE_PRODUCT,
    TILES_ALLOWED,
    TYPE_ANNOTATION,
)
from tedsl.ir.text import Part, quoted

if TYPE_CHECKING:
    from tedsl.ir.tvmscript.printer import TVMScriptPrinter

DTYPE_FIRST = (FOREIGN - {CALL_PACKED}) | {REINTERPRET, TYPE_ANNOTATION}
# What `T` has no function for: `T.prefetch` is a statement about a region.
OURS = frozenset((EXP_BOUNDED, FMA, DOT, LANE_MASK, COMPRESS, *COMBINE_LANES, DATA_INDEX, ATOMIC_ADD, PREFETCH,
                  ELEMENTS_PAST_LINE, TILE_PRODUCT, TILES_ALLOWED))


def call_parts(e: Call, p: TVMScriptPrinter) -> list[Part]:
    args: list[Any] = list(e.args)
    dtype = quoted(str(e.dtype or "void"))
    if e.op in OURS or OPS.get(e.op.name) is not e.op:
        return p.function("call_intrin", dtype, quoted(e.op.name), *args)
    if e.op in DTYPE_FIRST:
        args.insert(0, dtype)
    elif e.op is STRUCT_GET:
        args.append(dtype)
    return p.function("tvm_call_packed" if e.op is CALL_PACKED else e.op.short, *args)
