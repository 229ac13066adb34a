"""Loops without tiles: element-wise stages, and what sketches cannot tile."""

from __future__ import annotations

from typing import Any

from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from topi.schedules.formulas import extent_of, product

_VECTORS = (1, 1, 2, 4)  # vectors of a step, which the machine may compute at once


def flat_kernel(program: Program, kernel: Kernel) -> None:
    """All axes of an element-wise stage as one loop, in vectors, shared out among threads."""
    stage, choices = program.schedule[kernel.tail], program.choices
    axes = list(kernel.tail.axis)
    total = product([extent_of(axis) for axis in axes]) or 1
    rows = len(axes) > 1 and choices.yes(f"{kernel.name} rows", 0.6)
    if rows:
        head = stage.fuse(*axes[:-1]) if len(axes) > 2 else axes[0]
        loops, total = [head, axes[-1]], extent_of(axes[-1]) or 1
    else:
        loops = [stage.fuse(*axes) if len(axes) > 1 else axes[0]]
    width = program.lanes(kernel.tail) * choices.one(f"{kernel.name} vectors", _VECTORS)
    if total > width:
        outer, lane = stage.split(loops[-1], factor=width)
        loops[-1:] = [outer, lane]
    if total > 1:
        stage.vectorize(loops[-1])
    kernel.place = loops[0] if len(loops) > 1 else None
    if kernel.host is None and kernel.place is not None and choices.yes(f"{kernel.name} parallel", 0.8):
        stage.parallel(loops[0])


def plain_kernel(program: Program, kernel: Kernel) -> None:
    """Outer loops for threads; everything else as the formula says."""
    stage: Any = program.schedule[kernel.tail]
    axes = list(kernel.tail.axis)
    for op in kernel.anchors:
        if op is not kernel.tail and axes:
            program.schedule[op].compute_at(stage, axes[0])
    kernel.place = axes[0] if axes else None
    if axes and kernel.host is None and program.choices.yes(f"{kernel.name} parallel", 0.8):
        stage.parallel(axes[0])
