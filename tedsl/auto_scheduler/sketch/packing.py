"""Copies of operands in the order in which tiles read them.

    panel of columns:   B[k, jo * w + j]  ->  a copy (k, j) for each block of columns, or (jo, k, j) before the kernel
    turned:             B[jo * w + j, k]  ->  the same, so that vectors are read from consecutive places
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor
from topi.schedules.formulas import extent_of

_OPTIONS = ("none", "none", "panel", "whole")


@dataclass
class Copy:
    """A copy of `source`: at the loop around a block (within), or before the kernel."""

    tensor: Tensor
    within: bool


def choose_copies(program: Program, kernel: Kernel, inner: Sequence[int], vector: int) -> list[Copy]:
    """Decides which operands of the reductions are copied, and makes the copies' stages."""
    found: list[Copy] = []
    for op in kernel.anchors:
        formula = program.formulas[op]
        for number, tensor in enumerate(op.input_tensors):
            loads = [load for load in formula.loads if load.producer is tensor or load.producer == tensor]
            if len(loads) != 1 or tensor.op in program.inlined or tensor.op in kernel.anchors:
                continue
            place = _place(op, loads[0], inner, vector)
            if place is None:
                continue
            dim, width = place
            how = program.choices.one(f"{kernel.name} {op.name} pack{number}", _OPTIONS)
            if how != "none":
                found.append(_copy(program, op, tensor, dim, width if how == "whole" else 1))
    return found


def _place(op: ComputeOp, load: Any, inner: Sequence[int], vector: int) -> tuple[int, int] | None:
    """The dimension of an operand along which a tile reads several elements, and how many; the vectors' before others."""
    order = sorted(range(len(op.axis)), key=lambda at: (at != vector, -at))
    for at in order:
        extent = extent_of(op.axis[at]) or 1
        dims = [dim for dim, index in enumerate(load.indices) if index is op.axis[at].var]
        if len(dims) == 1 and inner[at] > 1 and extent > 1:
            return dims[0], min(inner[at], extent)
    return None


def _copy(program: Program, op: ComputeOp, tensor: Tensor, dim: int, width: int) -> Copy:
    """A copy in which dimension `dim` is the last one, in panels of `width` elements if that is more than 1."""
    s = program.schedule
    copy = s.cache_read(tensor, "global", [op])
    rank = len(tensor.shape)
    if width > 1:
        s[copy].transform_layout(lambda *at: [at[dim] // width, *at[:dim], *at[dim + 1:], at[dim] % width])
    elif dim != rank - 1:
        s[copy].transform_layout(lambda *at: [*at[:dim], *at[dim + 1:], at[dim]])
    return Copy(copy, width == 1)


def place_copies(program: Program, kernel: Kernel, copies: Sequence[Copy]) -> None:
    """Gives the copies their loops."""
    s = program.schedule
    for copy in copies:
        stage = s[copy.tensor]
        if copy.within and kernel.place is not None:
            stage.compute_at(s[kernel.tail], kernel.place)
        elif kernel.host is None:
            stage.parallel(stage.leaf_iter_vars[0])
        last = stage.leaf_iter_vars[-1]
        if len(stage.leaf_iter_vars) > 1 or (copy.within and kernel.place is not None):
            lanes = program.lanes(kernel.tail)
            extent = extent_of(last)
            if not copy.within and extent is not None and extent <= lanes * 4:
                stage.vectorize(last)
            else:
                stage.vectorize(stage.split(last, factor=lanes)[1])
