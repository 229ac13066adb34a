"""The numbers by which tiles of `split(..., lines_of=A)` begin earlier than multiples of the factor: how many elements the
array of a call begins behind a line of memory.

    let A.lead = elements_past_line(A, 16, 4)            once, around all loops
    for (i.outer, 0, 5) { for (i.inner, 0, 16) { B[max(min(i.outer*16 - A.lead, 44), 0) + i.inner] = ... } }
"""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.lines import elements_past_line
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import Range
from tedsl.ir.stmt import LetStmt, Stmt
from tedsl.lower.arguments import TensorBuffers
from tedsl.schedule.relations import Split


class Leads:
    """Gives each split its number: a variable for each array and size of a line. Arrays that the function allocates begin at
    lines, and their tiles at multiples of the factor.
    """

    def __init__(self, memory: TensorBuffers, analyzer: Analyzer) -> None:
        self.memory, self.analyzer = memory, analyzer
        self.found: dict[tuple[Buffer, int, DType], Var] = {}

    def __call__(self, split: Split) -> Expr | None:
        if split.lines_of is None or split.line == 1:
            return None
        buffer = self.memory.argument(split.lines_of)
        if buffer is None:
            return None
        key = buffer, split.line, split.parent.dtype
        if key not in self.found:
            self.found[key] = var = Var(f"{buffer.name}.lead", split.parent.dtype)
            self.analyzer.bind(var, Range.from_min_extent(build.const(0, var.dtype), build.const(split.line, var.dtype)))
        return self.found[key]

    def around(self, body: Stmt) -> Stmt:
        """`body` with values for the variables."""
        for (buffer, line, of), var in reversed(self.found.items()):
            body = LetStmt(var, build.cast(of, elements_past_line(buffer.data, line, buffer.dtype)), body)
        return body
