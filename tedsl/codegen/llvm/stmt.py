"""Emits statements: loops, branches, allocations, assertions."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.expr import bind
from tedsl.codegen.llvm.frame import emit_allocate, emit_return, expected_to_hold, fail_unless
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.outlined.parallel import emit_parallel
from tedsl.codegen.llvm.outlined.parts import PART, emit_in_parts
from tedsl.codegen.llvm.streaming import emit_range, emit_whole_lines, may_stream
from tedsl.errors import InternalError, LoweringError
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import VOID
from tedsl.ir.expr import Call, StringImm
from tedsl.ir.ops import CALL_PACKED, LIKELY, RET
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
    While,
    is_no_op,
)
from tedsl.ir.walk.contents import contains
from tedsl.passes.machine.mark_streams import WHOLE_LINES


def emit_seq(out: Emitter, s: SeqStmt) -> None:
    if out.function.loops.get(s, 0) > PART:
        emit_in_parts(out, s)
        return
    for part in s.seq:
        out.statement(part)


def emit_let(out: Emitter, s: LetStmt) -> None:
    body: Stmt = s
    while isinstance(body, LetStmt):  # hoisting makes long chains of them
        out.memo.clear()
        out.index_memo.clear()
        bind(out, body.var, body.value)
        body = body.body
    out.statement(body)


def emit_evaluate(out: Emitter, s: Evaluate) -> None:
    e = s.value
    if is_no_op(s):
        return
    if isinstance(e, Call) and e.op is RET:
        emit_return(out, e.args[0])
        out.start_block(out.fresh("after"))
        return
    if isinstance(e, Call) and e.op is CALL_PACKED:
        e = e.replace(dtype=VOID)  # what it returns is not used, and may be anything
    out.value(e)


# --- loops ----------------------------------------------------------------------------------------------------------------

def emit_for(out: Emitter, s: For) -> None:
    if s.kind is ForKind.THREAD_BINDING:
        raise LoweringError(f"loop {s.loop_var.name} is bound to threads of a GPU; target {out.target} has none",
                            hint="use parallel(axis) for threads of a CPU")
    if s.kind is ForKind.VECTORIZED:
        raise InternalError(f"loop {s.loop_var.name} is still marked vectorized")
    first, extent = out.scalar_index(s.min), out.scalar_index(s.extent)
    if not extent.terms and extent.const <= 1:
        if extent.const == 1:
            out.scope.index[s.loop_var] = first
            out.statement(s.body)
        return
    if s.kind is ForKind.PARALLEL and not out.function.in_parallel:
        emit_parallel(out, s, first, extent)
        return
    emit_range(out, s, first, ix.add(first, extent))


def emit_while(out: Emitter, s: While) -> None:
    head, inside, after = (out.fresh(name) for name in ("while", "do", "done"))
    marks = out.mark()
    out.line(f"br label %{head}")
    out.open_region()
    out.start_block(head)
    out.line(f"br i1 {out.value(s.condition)}, label %{inside}, label %{after}")
    out.start_block(inside)
    out.statement(s.body)
    out.line(f"br label %{head}")
    out.close_region(marks)
    out.start_block(after)


# --- branches ---------------------------------------------------------------------------------------------------------------

# The begin of a branch that has loops, where the other one has, too: no instruction for one thread. LLVM drops blocks without
# any, and set the sums of both branches to zero before the condition: 27 and 24 vectors, of which it kept 17 on the stack.
# Devices have no fence of one thread: LLVM aborts.
_APART = 'fence syncscope("singlethread") acq_rel'


def emit_if(out: Emitter, s: IfThenElse) -> None:
    condition = out.value(s.condition)
    if condition in ("true", "false"):
        chosen = s.then_case if condition == "true" else s.else_case
        if chosen is not None:
            out.statement(chosen)
        return
    then, join = out.fresh("then"), out.fresh("join")
    other = out.fresh("else") if s.else_case is not None else join
    marks, loops = out.mark(), s.else_case is not None and contains(s.then_case, For) and contains(s.else_case, For)
    apart = loops and not out.target.is_device
    expected = expected_to_hold(out) if isinstance(s.condition, Call) and s.condition.op is LIKELY else ""
    out.line(f"br i1 {condition}, label %{then}, label %{other}{expected}")
    out.open_region()
    out.start_block(then)
    if apart:
        out.line(_APART)
    out.statement(s.then_case)
    out.line(f"br label %{join}")
    if s.else_case is not None:
        out.next_side(marks)
        out.start_block(other)
        if apart:
            out.line(_APART)
        out.statement(s.else_case)
        out.line(f"br label %{join}")
    out.close_region(marks)
    out.start_block(join)


def emit_assert(out: Emitter, s: AssertStmt) -> None:
    message = s.message.value if isinstance(s.message, StringImm) else str(s.message)
    fail_unless(out, out.value(s.condition), str(out.function.status(message)))
    out.statement(s.body)


# --- attributes -----------------------------------------------------------------------------------------------------

def emit_prefetch(out: Emitter, s: Prefetch) -> None:
    """Emits nothing for a prefetch statement: the processor prefetches by itself."""


def emit_attr(out: Emitter, s: AttrStmt) -> None:
    if s.attr_key == LAUNCH:
        raise LoweringError(f"loops are bound to threads of a GPU; target {out.target} has none")
    if s.attr_key == WHOLE_LINES:
        emit_whole_lines(out, s)
        return
    data = s.node.data if isinstance(s.node, Buffer) else s.node
    if s.attr_key != "nontemporal" or data not in out.scope.buffers or not may_stream(out):
        out.statement(s.body)
        return
    before, out.streams = out.streams, {**out.streams, data: None}
    out.statement(s.body)
    out.streams = before


STATEMENTS: dict[type, Callable[..., None]] = {
    SeqStmt: emit_seq, LetStmt: emit_let, Evaluate: emit_evaluate, For: emit_for, While: emit_while, IfThenElse: emit_if,
    AssertStmt: emit_assert, Allocate: emit_allocate, AttrStmt: emit_attr, Prefetch: emit_prefetch,
}
