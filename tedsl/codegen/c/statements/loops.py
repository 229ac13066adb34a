"""Counted loops."""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.text.piece import INT64_MAX, INT64_MIN, Piece
from tedsl.codegen.c.values.index import combined
from tedsl.ir.expr import Add
from tedsl.ir.stmt import For


def counted(out: Emitter, s: For, first: Piece, end: Piece, shift: Piece | None = None, *, directive: str = "") -> None:
    """Emits a loop over [first, end). With a `shift`, the loop's variable is that much larger than the counter.
    directive: of OpenMP, before the loop.
    """
    if end.reads or end.depth > 1:
        end = out.temporary(end, "int64_t", f"{s.loop_var.name}.end")
    name = out.names.fresh(s.loop_var.name)
    limit = s.loop_var.dtype.max_value
    low, high = max(first.low, INT64_MIN), min(end.high - 1, INT64_MAX if limit is None else limit)
    if directive:
        openmp(out, directive)
    with out.block(f"for (int64_t {name} = {first.text}; {name} < {end.text}; ++{name})"):
        var = Piece(name, low=low, high=max(low, high))
        out.index[s.loop_var] = var if shift is None else combined(out, Add, shift, var)
        out.statement(s.body)


def openmp(out: Emitter, directive: str) -> None:
    """Emits a directive of OpenMP, which only its compilers read: others warn of it."""
    for line in ("#ifdef _OPENMP", f"#pragma omp {directive}", "#endif"):
        out.line(line)
