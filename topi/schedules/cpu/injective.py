"""Element by element: as few loops as the memory allows, vectors innermost, chunks in parallel."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import extent_of, product, runs
from topi.schedules.kernel import Kernel

_CHUNK = 16 * 1024


def schedule_injective(kernel: Kernel) -> None:
    """Axes that lie one after the other in every tensor become one loop; of that one, or the last axis, come the vectors."""
    map_elements(kernel, kernel.tail)


def map_elements(kernel: Kernel, op: Any) -> None:
    """The loops of the stage of `op` alone."""
    if not op.axis:
        return
    stage, formula = kernel.schedule[op], kernel.formula(op)
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


def vectorize(stage: te.Stage, loop: Any, extent: int | None, lanes: int) -> None:
    """Run `loop`, of `extent` iterations, in vectors of `lanes` elements."""
    if extent == 1 or lanes == 1:
        return
    if extent is not None and extent <= lanes:
        stage.vectorize(loop)
        return
    _, lane = stage.split(loop, factor=lanes)
    stage.vectorize(lane)
