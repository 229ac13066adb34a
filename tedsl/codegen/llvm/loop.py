"""Emits counted loops."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.conditions import emit_condition
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, Atom, Index
from tedsl.ir.expr import Var
from tedsl.ir.stmt import For


def count_body(out: Emitter, s: For, var: Index) -> None:
    """Emits the body of `s` for one value of its variable."""
    out.scope.index[s.loop_var] = var
    out.statement(s.body)


def _value_limit(var: Var) -> int:
    """Returns the largest value that a loop variable can have: the largest of its dtype, at most that of int64."""
    limit = var.dtype.max_value
    return min(limit, INT64_MAX) if limit is not None else INT64_MAX


def emit_counted(out: Emitter, s: For, first: Index, end: Index, shift: Atom | None) -> None:
    """Emits a loop over [first, end), tested once before it and at its end.
    With a `shift`, the variable is that much larger.
    """
    limit = _value_limit(s.loop_var)
    start, _ = out.register(first)
    stop, _ = out.register(end)
    some = emit_condition(out, "slt", first, end)
    head, leave_label = out.fresh("loop"), out.fresh("done")
    counter = "%" + out.fresh(s.loop_var.name)
    before = out.block
    marks = out.mark()
    out.line(f"br label %{head}" if some == "true" else f"br i1 {some}, label %{head}, label %{leave_label}")
    out.open_region()
    out.start_block(head)
    place, at = out.lines, len(out.lines)
    out.line("")
    low, high = max(first.bounds()[0], INT64_MIN), min(end.bounds()[1] - 1, limit)
    var = ix.atom_index(out.atom(counter, out.level, low, high))
    count_body(out, s, var if shift is None else ix.add(var, ix.atom_index(shift)))
    following = out.assign(f"add nsw i64 {counter}, 1")  # below `end`, so it fits
    again = out.assign(f"icmp slt i64 {following}, {stop}")
    out.line(f"br i1 {again}, label %{head}, label %{leave_label}")
    place[at] = f"  {counter} = phi i64 [ {start}, %{before} ], [ {following}, %{out.block} ]"
    out.close_region(marks)
    out.start_block(leave_label)
