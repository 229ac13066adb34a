"""Element-wise kernels: as few loops as the memory allows, vectors innermost, chunks in parallel."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import Formula, extent_of, product, runs, variables_in
from topi.schedules.kernel import Kernel

_CHUNK = 16 * 1024
_TURNED = 16  # elements of a line of memory
_LINES = 8


def schedule_injective(kernel: Kernel) -> None:
    """Fuse the axes that are contiguous in every tensor and vectorize the fused loop, or the last axis."""
    map_elements(kernel, kernel.tail)


def map_elements(kernel: Kernel, op: Any) -> None:
    """Schedule the loops of the stage of `op` alone."""
    if not op.axis:
        return
    stage, formula = kernel.schedule[op], kernel.formula(op)
    turned = turned_axis(op, formula)
    if turned is not None:
        _map_turned(kernel, op, turned)
        return
    groups = runs(op.axis, formula)
    extents = [product([extent_of(axis) for axis in group]) for group in groups]
    loops = [stage.fuse(*group) if len(group) > 1 else group[0] for group in groups]
    work = product(extents)
    lanes = kernel.lanes(op)
    inner, extent = loops[-1], extents[-1]
    outer = loops[:-1]
    if (not outer) if extent is None else extent >= 2 * _CHUNK:
        chunk, inner = stage.split(inner, factor=_CHUNK)
        outer.append(chunk)
    vectorize(stage, inner, extent, lanes)
    share_out(stage, outer, None if work is None else work * (1 + formula.cost // 10))


def turned_axis(op: Any, formula: Formula) -> Any:
    """The axis along which inputs are contiguous where the last axis is not, as in a transpose; None if there is none."""
    last = op.axis[-1]
    for axis in op.axis[:-1]:
        if any(load.indices and load.indices[-1] is axis.var and any(last.var in variables_in(index) for index in load.indices)
               for load in formula.loads):
            extents = extent_of(axis), extent_of(last)
            return axis if all(extent is None or extent >= _TURNED for extent in extents) else None
    return None


def _map_turned(kernel: Kernel, op: Any, turned: Any) -> None:
    """Tiles the last axis and the axis `turned`, so that each cache line of the input and of the output is used completely
    while it is in L1.

    Tiles are narrow along the last axis, because lines a power of two apart fall into the same cache set.
    """
    stage = kernel.schedule[op]
    *outer, last = [axis for axis in op.axis if axis is not turned]
    lanes = min(kernel.lanes(op), _LINES)
    turned_out, turned_in = stage.split(turned, factor=_TURNED)
    last_out, last_in = stage.split(last, factor=lanes)
    stage.reorder(*outer, turned_out, last_out, turned_in, last_in)
    stage.vectorize(last_in)
    share_out(stage, [*outer, turned_out], product([extent_of(axis) for axis in op.axis]))


def vectorize(stage: te.Stage, loop: Any, extent: int | None, lanes: int) -> None:
    """Run `loop`, of `extent` iterations, in vectors of `lanes` elements."""
    if extent == 1 or lanes == 1:
        return
    if extent is not None and extent <= lanes:
        stage.vectorize(loop)
        return
    _, lane = stage.split(loop, factor=lanes)
    stage.vectorize(lane)
