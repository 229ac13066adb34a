"""Emits the statements that mean something else in a kernel than in a function of a processor."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.nvptx.launch import emit_launch
from tedsl.codegen.nvptx.memory import emit_allocate
from tedsl.ir.stmt import LAUNCH, Allocate, AttrStmt


def emit_attr(out: Emitter, s: AttrStmt) -> None:
    if s.attr_key == LAUNCH:
        emit_launch(out, s)
    out.statement(s.body)


STATEMENTS: dict[type, Callable[..., None]] = {Allocate: emit_allocate, AttrStmt: emit_attr}
