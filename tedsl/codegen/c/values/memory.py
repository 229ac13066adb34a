"""Emits loads, addresses, and the places of stores."""

from __future__ import annotations

from tedsl.codegen.c.emitter import BufferInfo, Emission, Emitter
from tedsl.codegen.c.text.piece import SUM, Piece
from tedsl.codegen.c.text.types import float_text, integer_text, value_type
from tedsl.codegen.c.values.convert import from_memory
from tedsl.codegen.c.values.expr import FALSE
from tedsl.errors import InternalError, LoweringError
from tedsl.ir.build import is_true
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Broadcast, Call, Expr, Load, Var


def buffer_info(out: Emitter, var: Var) -> BufferInfo:
    info = out.buffers.get(var)
    if info is None:
        raise InternalError(f"buffer {var.name} is used in {out.function.name} where it does not exist")
    return info


def element(info: BufferInfo, index: Piece) -> Piece:
    """Returns the element of the buffer at `index`, as it is in memory."""
    return Piece(f"{info.name}[{index.text}]", depth=index.depth, reads=True)


def condition_of(predicate: Expr | None) -> Expr | None:
    """Returns the condition of an access; None if it always happens."""
    if predicate is None or is_true(predicate.value if isinstance(predicate, Broadcast) else predicate):
        return None
    return predicate


def emit_load(out: Emitter, e: Load) -> Emission:
    predicate = condition_of(e.predicate)
    if predicate is None:
        return (yield from _loaded(out, e))
    c = yield predicate, False
    d = e.dtype.element
    if c is FALSE:
        return zero(d)
    return (yield from out.choose(c, value_type(d), _loaded(out, e), _given(zero(d))))


def _loaded(out: Emitter, e: Load) -> Emission:
    index = yield e.index, True
    return from_memory(out, element(buffer_info(out, e.buffer_var), index), e.dtype)


def _given(piece: Piece) -> Emission:
    return piece
    yield


def zero(d: DType) -> Piece:
    """Returns 0 of dtype `d`, one lane."""
    if d.is_handle:
        return Piece("NULL")
    return Piece(float_text(0.0, d) if d.is_float else integer_text(0, d))


def address(info: BufferInfo, index: Piece) -> Piece:
    """Returns the pointer to the element at `index`."""
    if index.constant == 0:
        return Piece(info.name)
    return Piece(f"{info.name} + {index.at(SUM + 1)}", SUM, index.depth + 1, index.reads)


def emit_address_of(out: Emitter, e: Call) -> Emission:
    load = e.args[0]
    if not isinstance(load, Load):
        raise LoweringError("address_of takes an element of a buffer")
    return address(buffer_info(out, load.buffer_var), (yield load.index, True))


def emit_access_ptr(out: Emitter, e: Call) -> Emission:
    """Emits the address of an element of a buffer; the offset counts values of the dtype of the first argument."""
    kind, data = e.args[0].dtype, e.args[1]
    if not isinstance(data, Var):
        raise LoweringError("tvm_access_ptr takes the pointer of a buffer", hint="write buffer.access_ptr('r')")
    offset = yield e.args[2], True
    info = buffer_info(out, data)
    if kind.lanes > 1 and offset.constant != 0:
        offset = Piece(f"{offset.at(9)} * {kind.lanes}", 8, offset.depth + 1, offset.reads)
    pointer = address(info, offset)
    if info.dtype.element is not kind.element:
        raise LoweringError(f"a pointer to {kind.element} into {data.name}, which holds {info.dtype.element}")
    return pointer


