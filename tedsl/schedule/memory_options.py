"""What was said about the memory of a stage: frozen data, read by lowering."""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.ir.expr import Expr
from tedsl.lang.tensor import Tensor


@dataclass(frozen=True)
class Alignment:
    """The stride of dimension `dim`, in elements, is `offset` modulo `factor`."""

    dim: int
    factor: int
    offset: int


@dataclass(frozen=True)
class Storage:
    """How a stage is kept.

    alignments: one for each dimension that has one. double_buffer: the next iteration is computed into a second copy while
    this one is used. rolling: what the next iteration needs too is kept, not computed again.
    """

    alignments: tuple[Alignment, ...] = ()
    double_buffer: bool = False
    rolling: bool = False

    def describe(self, axes: tuple[str, ...]) -> list[str]:
        """What to say about it in a line of text; `axes` names the dimensions."""
        words = [f"stride of {axes[a.dim]} = {a.offset} modulo {a.factor}" for a in self.alignments]
        return words + ["double-buffered"] * self.double_buffer + ["in a rolling buffer"] * self.rolling


PLAIN = Storage()


class AxisSeparator:
    """Stands between the indices of a layout where memory of several physical dimensions begins the next one."""

    def __repr__(self) -> str:
        return "te.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()  # memory of a CPU has one dimension: it changes nothing there


@dataclass(frozen=True, eq=False)
class Prefetched:
    """The region of `tensor` that is read `offset` iterations later is asked for in each iteration of a loop."""

    tensor: Tensor
    offset: Expr
