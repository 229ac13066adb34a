"""HybridOp: tensors computed by the statements of a hybrid script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.ir.node import FrozenDict
from tedsl.ir.source_line import SourceLine
from tedsl.ir.stmt import Stmt
from tedsl.lang.extern import StatementsOp
from tedsl.lang.tensor import Tensor
from tedsl.record import record


@record(eq=False, repr=False)
class HybridOp(StatementsOp):
    """An operation whose `body` computes every output whole, from the whole of every input.

    input_placeholders, output_placeholders: the buffers that the body uses in place of the tensors.
    axis: the loops of the body that directives can change, in the order in which they are written: their variables are those
    of the loops, their domains do not depend on other loops.
    """

    name: str
    tag: str
    attrs: Mapping[str, Any]
    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]
    body: Stmt
    axis: tuple[IterVar, ...]
    source: SourceLine | None = None
    lines: Mapping[Stmt, str] = FrozenDict()  # statements of the body → the line of the script, as errors show it

    axis_are_loops = True

    @property
    def num_outputs(self) -> int:
        return len(self.output_placeholders)

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        return self.output_placeholders[index].shape

    def line_of(self, stmt: Stmt | None = None) -> str:
        """The source line of `stmt` (of the whole script for None), for error messages."""
        known = None if stmt is None else self.lines.get(stmt)
        return known or f"hybrid script {self.name}" + (f" ({self.source})" if self.source is not None else "")

    def __repr__(self) -> str:
        return f"hybrid({self.name}, inputs=[{', '.join(tensor.name for tensor in self.inputs)}])"
