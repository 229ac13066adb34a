"""Emits statements: loops, branches, allocations, assertions."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.statements.comments import stage_of
from tedsl.codegen.c.statements.frame import emit_allocate, emit_return
from tedsl.codegen.c.statements.loops import counted
from tedsl.codegen.c.statements.parallel import emit_parallel
from tedsl.codegen.c.text.piece import UNARY, Piece
from tedsl.codegen.c.values.convert import to_memory
from tedsl.codegen.c.values.expr import FALSE, TRUE, bind
from tedsl.codegen.c.values.index import combined
from tedsl.codegen.c.values.lanes import array_of, emit_vector_store, guard
from tedsl.codegen.c.values.memory import buffer_info, condition_of, element
from tedsl.codegen.c.values.vector_types import store_as_vector
from tedsl.errors import InternalError, LoweringError
from tedsl.ir.expr import Add, Call, StringImm
from tedsl.ir.ops import RET
from tedsl.ir.stmt import (
    LAUNCH,
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Stmt,
    Store,
    While,
    is_no_op,
)


def emit_seq(out: Emitter, s: SeqStmt) -> None:
    for part in s.seq:
        out.statement(part)


def emit_let(out: Emitter, s: LetStmt) -> None:
    body: Stmt = s
    while isinstance(body, LetStmt):  # hoisting makes long chains of them
        out.begin(body.value)
        if body.value.dtype.lanes > 1:
            out.vectors[body.var] = out.run(array_of(out, body.value)).text
        else:
            out.run(bind(out, body.var, body.value))
        body = body.body
    out.statement(body)


def emit_store(out: Emitter, s: Store) -> None:
    out.begin(s.value, s.index, s.predicate)
    if s.value.dtype.lanes > 1:
        if not store_as_vector(out, s):
            emit_vector_store(out, s)
        return
    with guard(out, condition_of(s.predicate)):
        index = out.value(s.index, True)
        value = to_memory(out, out.value(s.value), s.value.dtype)
        out.line(f"{element(buffer_info(out, s.buffer_var), index).text} = {value.text};")


def emit_evaluate(out: Emitter, s: Evaluate) -> None:
    e = s.value
    if is_no_op(s):
        return
    if isinstance(e, Call) and e.op is RET:
        out.begin(e.args[0])
        emit_return(out, out.value(e.args[0]))
        return
    out.begin(e)
    if e.dtype.lanes > 1:
        out.run(array_of(out, e))
        return
    piece = out.value(e)
    if piece.depth:  # else it is a temporary already
        out.line(f"{piece.text};" if e.dtype.code == "void" else f"(void){piece.at(UNARY)};")


# --- loops ------------------------------------------------------------------------------------------------------------

def emit_for(out: Emitter, s: For) -> None:
    if s.kind is ForKind.THREAD_BINDING:
        raise LoweringError(f"loop {s.loop_var.name} is bound to threads of a GPU; C has none",
                            hint="use parallel(axis) for threads of a CPU")
    if s.kind is ForKind.VECTORIZED:
        raise InternalError(f"loop {s.loop_var.name} is still marked vectorized")
    out.begin(s.min, s.extent)
    first, extent = out.value(s.min, True), out.value(s.extent, True)
    if extent.constant is not None and extent.constant <= 1:
        if extent.constant == 1:
            if first.depth:
                first = out.temporary(first, "int64_t", s.loop_var.name)
            out.index[s.loop_var] = first
            out.statement(s.body)
        return
    outer = out.stage
    out.stage = stage_of(s)
    if out.stage and out.stage != outer:
        out.line(f"/* {out.stage} */")
    if s.kind is ForKind.PARALLEL and not out.function.in_parallel and out.module.dialect.parallel != "serial":
        emit_parallel(out, s, first, extent)
    else:
        counted(out, s, first, combined(out, Add, first, extent))
    out.stage = outer


def emit_while(out: Emitter, s: While) -> None:
    with out.block("for (;;)"):
        out.begin(s.condition)
        condition = out.value(s.condition)
        with out.block(f"if ({negated(condition)})"):
            out.line("break;")
        out.statement(s.body)


def negated(condition: Piece) -> str:
    return f"!{condition.at(9)}"


# --- branches ---------------------------------------------------------------------------------------------------------

def emit_if(out: Emitter, s: IfThenElse) -> None:
    out.begin(s.condition)
    condition = out.value(s.condition)
    if condition is TRUE or condition is FALSE:
        chosen = s.then_case if condition is TRUE else s.else_case
        if chosen is not None:
            out.statement(chosen)
        return
    with out.block(f"if ({condition.text})"):
        out.statement(s.then_case)
    if s.else_case is not None:
        with out.block("else"):
            out.statement(s.else_case)


def emit_assert(out: Emitter, s: AssertStmt) -> None:
    message = s.message.value if isinstance(s.message, StringImm) else str(s.message)
    out.begin(s.condition)
    condition = out.value(s.condition)
    if condition is not TRUE:
        with out.block(f"if ({negated(condition)})"):
            out.leave(str(out.function.status(message)))
    out.statement(s.body)


# --- attributes -------------------------------------------------------------------------------------------------------

def emit_prefetch(out: Emitter, s: Prefetch) -> None:
    """Emits nothing for a prefetch statement: the processor prefetches by itself."""


def emit_attr(out: Emitter, s: AttrStmt) -> None:
    if s.attr_key == LAUNCH:
        raise LoweringError("loops are bound to threads of a GPU; C has none")
    if s.attr_key == "pragma_import_llvm":
        raise LoweringError("the pragma import_llvm is code for LLVM, which C cannot hold",
                            hint='use import_c, or build for target "llvm"')
    out.statement(s.body)


STATEMENTS: dict[type, Callable[..., None]] = {
    SeqStmt: emit_seq, LetStmt: emit_let, Evaluate: emit_evaluate, For: emit_for, While: emit_while, IfThenElse: emit_if,
    AssertStmt: emit_assert, Allocate: emit_allocate, AttrStmt: emit_attr, Prefetch: emit_prefetch, Store: emit_store,
}
