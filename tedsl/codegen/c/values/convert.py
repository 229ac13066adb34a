"""Emits casts among all dtypes: integers wrap, floats to integers saturate, narrower floats are rounded once."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import EQUALITY, Piece, call, cast, compared
from tedsl.codegen.c.text.types import float_text, integer_text, suffix, value_type
from tedsl.errors import LoweringError
from tedsl.ir.dtype import FLOAT64, INT64, DType
from tedsl.ir.expr import Cast


def emit_cast(out: Emitter, e: Cast) -> Emission:
    source = e.value.dtype
    if source.is_integer and (e.dtype.is_float or e.dtype.is_integer) and out.is_index(e.value):
        return convert(out, (yield e.value, True), INT64, e.dtype.element)
    return convert(out, (yield e.value, False), source.element, e.dtype.element)


def convert(out: Emitter, value: Piece, source: DType, target: DType) -> Piece:
    """Returns `value` of dtype `source` as dtype `target`, both of one lane."""
    if source is target:
        return value
    if target.is_handle or source.is_handle:
        raise LoweringError(f"a value of {source} cannot be cast to {target}", hint="handles are pointers: cast numbers only")
    if target.is_bool:
        zero = Piece(float_text(0.0, source) if source.is_float else integer_text(0, source))
        return compared("!=", EQUALITY, value, zero)
    if source.is_bool:
        return cast(value_type(target), value)
    if source.is_float and target.is_float:
        return _float_to_float(out, value, source, target)
    if source.is_float:
        return call(out.module.helper(f"{suffix(target)}_of", source), value)
    return _integer_to_float(out, value, source, target) if target.is_float else cast(value_type(target), value)


def _float_to_float(out: Emitter, value: Piece, source: DType, target: DType) -> Piece:
    if target.bits >= 32:
        return value if target.bits == 32 and source.bits == 16 else cast(value_type(target), value)
    if source.bits == 64:
        return call(out.module.helper(f"{suffix(target)}_of", FLOAT64), value)
    return call(out.module.helper("round", target), value)


def _integer_to_float(out: Emitter, value: Piece, source: DType, target: DType) -> Piece:
    if target.bits > 16:
        return cast(value_type(target), value)
    if source.bits <= 16:  # a float holds 16 bits exactly
        return call(out.module.helper("round", target), cast("float", value))
    if source.bits == 64:
        value = call(out.module.helper("sticky", source), value)
    return call(out.module.helper(f"{suffix(target)}_of", FLOAT64), cast("double", value))


def to_memory(out: Emitter, value: Piece, d: DType) -> Piece:
    """Returns `value` as it is stored: 16-bit floats as their bits."""
    return call(out.module.helper("store", d.element), value) if d.is_float and d.bits == 16 else value


def from_memory(out: Emitter, value: Piece, d: DType) -> Piece:
    """Returns a stored value as an expression: any byte but 0 is true, 16-bit floats become floats."""
    if d.is_bool:
        return compared("!=", EQUALITY, value, Piece("0"))
    return call(out.module.helper("load", d.element), value) if d.is_float and d.bits == 16 else value

