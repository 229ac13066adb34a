"""Tiles for devices: blocks, virtual threads, threads, and results of a thread; operands in shared memory.

    blockIdx.x: vthread: threadIdx.x:
      ko:                           terms in steps
        (a step of each operand, fetched by all threads of the block into shared memory)
        ki: results of a thread:    sums, in registers
      results of a thread:          the tail, that reads them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.auto_scheduler.sketch.extents import factors
from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor
from topi.schedules.formulas import extent_of
from topi.schedules.gpu.injective import fused_axes
from topi.schedules.gpu.limits import Limits, limits_of
from topi.schedules.gpu.parts import bind, in_four

_RESULTS = 64  # of a thread: a quarter of the registers that it may have, the rest for operands and addresses
_ALONG = 8  # results of a thread along one axis
_VIRTUAL = (1, 1, 1, 2, 4)
_STEP = 64  # terms of an axis that are in shared memory at a time
_UNROLLED = (0, 16, 64)  # statements: more take longer to compile than they save
_FETCHED = (1, 1, 2, 4)  # neighbours that a thread fetches at once, 16 bytes of float32 at most
_SHARED = 0.8  # how often an operand is copied to shared memory


def block_kernel(program: Program, kernel: Kernel) -> None:
    """Binds the loops of a kernel whose tail has axes and which has reductions of one value."""
    s, choices, tail = program.schedule, program.choices, kernel.tail
    sizes = _sizes(program, kernel, limits_of(program.target))
    sums: list[ComputeOp] = [op for op in kernel.anchors if op is not tail]
    for op in sums:
        s[op].set_scope("local")
    if tail in kernel.anchors:
        sums.append(s.cache_write(tail.output(0), "local").op)
    copies = _copies(program, kernel, sums[0]) if len(sums) == 1 else []
    stage: Any = s[tail]
    parts = [in_four(stage, axis, size) for axis, size in zip(stage.op.axis, sizes)]
    blocks, virtual, threads, results = ([one[level] for one in parts] for level in range(4))
    stage.reorder(*blocks, *virtual, *threads, *results)
    bind(stage, [_fused(stage, blocks)], ["blockIdx.x"])
    bind(stage, virtual, ["vthread"] * len(virtual))
    thread = _fused(stage, threads)
    bind(stage, [thread], ["threadIdx.x"])
    count = math.prod(size[2] for size in sizes)
    for op in sums:
        s[op].compute_at(stage, thread)
        step = _terms(program, kernel, op)
        for copy in copies:
            _fetch(program, kernel, copy, s[op], step, count)
    unroll = choices.one(f"{kernel.name} unroll", _UNROLLED)
    for op in (*sums, tail) if unroll else ():
        s[op].pragma(s[op].leaf_iter_vars[0], "auto_unroll_max_step", unroll)
        s[op].pragma(s[op].leaf_iter_vars[0], "unroll_explicit", True)


def _sizes(program: Program, kernel: Kernel, limits: Limits) -> list[tuple[int, int, int, int]]:
    """Decides for each axis of the tail how many virtual threads, threads and results of a thread share it: as many threads as
    a block may have, as many results as registers hold. The last axis chooses first, since its neighbours share sectors.
    """
    choices, name = program.choices, kernel.name
    extents = [extent_of(axis) or 1 for axis in kernel.tail.axis]
    threads, results = limits.threads, _RESULTS
    found: list[tuple[int, int, int, int]] = []
    for at in reversed(range(len(extents))):
        along = choices.one(f"{name} threads{at}", factors(extents[at], threads))
        threads //= along
        each = choices.one(f"{name} results{at}", factors(-(-extents[at] // along), min(_ALONG, results)))
        results //= each
        rest = -(-extents[at] // (along * each))
        parts = choices.one(f"{name} virtual{at}", [n for n in _VIRTUAL if n <= min(rest, results)])
        results //= parts
        found.append((1, parts, along, each))
    return found[::-1]


def _fused(stage: Any, loops: Sequence[Any]) -> Any:
    return stage.fuse(*loops) if len(loops) > 1 else loops[0]


def _copies(program: Program, kernel: Kernel, op: ComputeOp) -> list[Tensor]:
    """Decides which operands of the sums are read from shared memory, and makes the copies' stages."""
    found = []
    for number, tensor in enumerate(op.input_tensors):
        if tensor.shape and program.choices.yes(f"{kernel.name} shared{number}", _SHARED):
            found.append(program.schedule.cache_read(tensor, "shared", [op]))
    return found


def _terms(program: Program, kernel: Kernel, op: ComputeOp) -> Any:
    """The loops of the sums: terms in steps, the results of a thread innermost; returns the loop over the steps."""
    stage: Any = program.schedule[op]
    steps, terms = [], []
    for at, axis in enumerate(stage.op.reduce_axis):
        extent = extent_of(axis) or 1
        size = program.choices.one(f"{kernel.name} {op.name} step{at}", factors(extent, _STEP))
        outer, inner = stage.split(axis, factor=size)
        steps.append(outer)
        terms.append(inner)
    stage.reorder(*steps, *terms, *stage.op.axis)
    return steps[-1]


def _fetch(program: Program, kernel: Kernel, copy: Tensor, reader: Any, step: Any, threads: int) -> None:
    """The threads of a block copy what a step reads, neighbours one after the other."""
    stage: Any = program.schedule[copy]
    stage.compute_at(reader, step)
    rest = fused_axes(stage)
    wide = program.choices.one(f"{kernel.name} {copy.op.name} fetch", _FETCHED)
    if wide > 1:
        rest, lane = stage.split(rest, factor=wide)
        stage.vectorize(lane)
    _, thread = stage.split(rest, factor=threads)
    stage.bind(thread, te.thread_axis("threadIdx.x"))
