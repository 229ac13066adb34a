"""Reductions whose terms are parted: lanes of a vector, or chunks for threads, each with a sum of its own (rfactor)."""

from __future__ import annotations

from tedsl.auto_scheduler.sketch.extents import factors
from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.handles import Schedule
from topi.schedules.cpu.tiles import accumulators
from topi.schedules.formulas import extent_of, product

_FEW = 64  # results, fewer than which leave threads without work


def can_part(kernel: Kernel) -> bool:
    """Whether the terms of a kernel's reduction are enough for several sums."""
    return len(kernel.anchors) == 1 and (extent_of(kernel.anchors[0].reduce_axis[-1]) or 1) > 1


def parted_kernel(program: Program, kernel: Kernel) -> None:
    """Parts the terms; results are shared out among threads, or chunks of terms where there are few results."""
    s, choices, (anchor,) = program.schedule, program.choices, kernel.anchors
    results = product([extent_of(axis) for axis in kernel.tail.axis]) or 1
    chunks = kernel.host is None and results < _FEW and choices.yes(f"{kernel.name} chunks", 0.6)
    parts = _lanes(program, kernel, anchor)
    if chunks:
        parts = _share_out(program, kernel, parts)
    lane = s[parts].op.axis[-1]
    s[parts].reorder(*s[parts].op.axis[:-1], *s[parts].op.reduce_axis, lane)
    s[parts].vectorize(lane)
    stage = s[kernel.tail]
    axes = list(stage.op.axis)
    if not axes:
        return
    count = choices.one(f"{kernel.name} threads", list(range(1, len(axes) + 1)))
    head = stage.fuse(*axes[:count]) if count > 1 else axes[0]
    if kernel.host is None and not chunks:
        stage.parallel(head)
    kernel.place = head
    if anchor is not kernel.tail:
        s[anchor].compute_at(stage, head)
    if not chunks:
        s[parts].compute_at(stage, head)


def _lanes(program: Program, kernel: Kernel, anchor: ComputeOp) -> ComputeOp:
    """Gives each lane a sum; returns the operation of these sums, its lanes last."""
    s, choices = program.schedule, program.choices
    lanes = program.lanes(anchor)
    last = anchor.reduce_axis[-1]
    extent = extent_of(last) or 1
    most = accumulators(program.target)
    widths = [lanes * n for n in (1, 2, 4, 8) if n <= most and lanes * n < extent] or [extent]
    width = choices.one(f"{kernel.name} lanes", widths)
    lane = last if width >= extent else s[anchor].split(last, factor=width)[1]
    return _factored(s, anchor, lane, len(anchor.axis))


def _factored(s: Schedule, op: ComputeOp, loop: IterVar, at: int) -> ComputeOp:
    """The operation of the sums that rfactor makes for each iteration of `loop`, which is its axis number `at`."""
    made = s.rfactor(op.output(0), loop, at)
    parts: ComputeOp = (made[0] if isinstance(made, list) else made).op
    return parts


def _share_out(program: Program, kernel: Kernel, parts: ComputeOp) -> ComputeOp:
    """Gives chunks of the terms of `parts` to threads; returns the operation of their sums."""
    s = program.schedule
    if not parts.reduce_axis:
        return parts
    first = s[parts].op.reduce_axis[0]
    extent = extent_of(first) or 1
    sizes = factors(extent, extent)
    size = program.choices.one(f"{kernel.name} chunk", sizes)
    if size < 2 or size >= extent:
        return parts
    outer, _ = s[parts].split(first, factor=size)
    chunk = _factored(s, parts, outer, 0)
    s[chunk].parallel(s[chunk].op.axis[0])
    return chunk
