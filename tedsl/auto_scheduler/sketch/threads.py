"""Kernels for devices without tiles: a thread for each element, and sums that the threads of a block share."""

from __future__ import annotations

from typing import Any

from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from topi.schedules.formulas import extent_of, product
from topi.schedules.gpu.injective import bind_loops, fused_axes
from topi.schedules.gpu.limits import limits_of
from topi.schedules.gpu.reduce import reduce_by_rows
from topi.schedules.kernel import Kernel as Nest

_VECTORS = (1, 1, 2, 4)  # neighbours that a thread computes, 16 bytes of float32 at most


def element_kernel(program: Program, kernel: Kernel) -> None:
    """Each thread computes elements of the tail, with the sums that they need."""
    stage: Any = program.schedule[kernel.tail]
    count = product([extent_of(axis) for axis in kernel.tail.axis]) or 1
    sums = [op for op in kernel.anchors if op is not kernel.tail]
    loop = fused_axes(stage)
    lanes = 1 if kernel.anchors else program.choices.one(f"{kernel.name} vectors", _VECTORS)
    if lanes > 1:
        loop, lane = stage.split(loop, factor=lanes)
        stage.vectorize(lane)
    warp, most = limits_of(program.target).warp, limits_of(program.target).threads
    threads = program.choices.one(f"{kernel.name} threads", _powers(warp, most))
    place = bind_loops(stage, [loop], limits_of(program.target), -(-count // lanes), threads)
    for op in sums:
        program.schedule[op].compute_at(stage, place)
        program.schedule[op].set_scope("local")


def shared_kernel(program: Program, kernel: Kernel) -> None:
    """The threads of threadIdx.x sum parts of the terms of each result; a block has several results."""
    limits = limits_of(program.target)
    width = program.choices.one(f"{kernel.name} across", _powers(min(limits.warp, limits.threads), limits.threads))
    results = product([extent_of(axis) for axis in kernel.tail.axis]) or 1
    rows = program.choices.one(f"{kernel.name} rows", _powers(1, max(1, min(results, limits.threads // width))))
    reduce_by_rows(Nest(program.schedule, kernel.anchors[0], kernel.tail, program.target), width, rows)


def can_share(kernel: Kernel) -> bool:
    """Whether threads may share the terms of a kernel's reduction."""
    return len(kernel.anchors) == 1 and (product([extent_of(axis) for axis in kernel.anchors[0].reduce_axis]) or 1) > 1


def _powers(least: int, most: int) -> list[int]:
    """`least`, and its products with powers of two up to `most`."""
    found = [max(1, least)]
    while found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return found
