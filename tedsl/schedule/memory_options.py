"""Directives on the memory of a stage as frozen data, which lowering reads."""

from __future__ import annotations

from tedsl.ir.expr import Expr
from tedsl.ir.script import script
from tedsl.lang.tensor import Tensor
from tedsl.record import record


@record
class Alignment:
    """The stride of dimension `dim`, in elements, is `offset` modulo `factor`."""

    dim: int
    factor: int
    offset: int


@record
class Storage:
    """How the memory of a stage is laid out and filled.

    alignments: one for each dimension that has one. double_buffer: the next iteration is computed into a second copy while
    this one is read. rolling: elements that the next iteration reads too are kept instead of computed again.
    """

    alignments: tuple[Alignment, ...] = ()
    double_buffer: bool = False
    rolling: bool = False

    def describe(self, axes: tuple[str, ...]) -> list[str]:
        """Words for these options on one line of text; `axes` names the dimensions."""
        words = [f"stride of {axes[a.dim]} = {a.offset} modulo {a.factor}" for a in self.alignments]
        return words + ["double-buffered"] * self.double_buffer + ["in a rolling buffer"] * self.rolling


PLAIN = Storage()


class AxisSeparator:
    """A marker between the indices of a layout where the next dimension of multi-dimensional memory begins."""

    def __repr__(self) -> str:
        return "te.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()  # memory of a CPU has one dimension: it changes nothing there


@record(eq=False)
class Prefetched:
    """A prefetch in each iteration of a loop: of the region of `tensor` that is read `offset` iterations later; at once, or
    parted among the iterations of the loops inside.

    into: an output, whose region at the same places is asked for instead, in order to write it.
    """

    tensor: Tensor
    offset: Expr
    is_spread: bool = False
    into: Tensor | None = None

    def describe(self) -> str:
        """Words for it on one line of text."""
        what = self.tensor.name if self.into is None else f"{self.into.name} to be written, as {self.tensor.name},"
        return f"prefetching {what} {script(self.offset)} ahead{' bit by bit' * self.is_spread}"
