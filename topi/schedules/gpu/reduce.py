"""Reductions: the threads of a block reduce one result together."""

from __future__ import annotations

import math
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError
from topi.schedules.formulas import extent_of, product
from topi.schedules.gpu.injective import bind_elements, fused_axes
from topi.schedules.gpu.limits import limits_of
from topi.schedules.kernel import Kernel


def schedule_reduce(kernel: Kernel) -> None:
    """Reduce across the threads of a block where the reduction is long, else by one thread per result."""
    if is_short(kernel):
        reduce_by_one(kernel, 0)
        return
    limits = limits_of(kernel.target)
    side = 1 << int(math.log2(math.isqrt(limits.threads)))
    reduce_by_rows(kernel, limits.threads if product([extent_of(axis) for axis in kernel.tail.axis]) == 1 else side, side)


def is_short(kernel: Kernel) -> bool:
    """Tells whether a result is a sum of fewer terms than threads of a warp: one of them computes it."""
    extent = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    return extent is not None and extent < max(2, min(32, limits_of(kernel.target).threads))


def reduce_by_one(kernel: Kernel, threads: int) -> None:
    """Each thread computes a result, in blocks of `threads`; 0 for as many as divide the results well."""
    s = kernel.schedule
    loop = bind_elements(s[kernel.tail], limits_of(kernel.target), threads)
    if kernel.fused:
        s[kernel.anchor].compute_at(s[kernel.tail], loop)
        s[kernel.anchor].set_scope("local")


def reduce_by_rows(kernel: Kernel, width: int, rows: int) -> None:
    """Bind the reduction to `width` threads of threadIdx.x and, where there are several results, `rows` of them to
    threadIdx.y.
    """
    s, op = kernel.schedule, kernel.anchor
    alone = product([extent_of(axis) for axis in kernel.tail.axis]) == 1
    thread = te.thread_axis((0, width), "threadIdx.x")
    reduce_across(s, op, thread)
    tail = s[kernel.tail]
    place = fused_axes(tail) if kernel.fused or not alone or tail.op.axis else None
    if place is None:
        s[op].set_store_predicate(thread.var.equal(0))
        return
    if alone:
        tail.bind(place, te.thread_axis("blockIdx.x"))
    else:
        block, place = tail.split(place, factor=rows)
        tail.bind(block, te.thread_axis("blockIdx.x"))
        tail.bind(place, te.thread_axis("threadIdx.y"))
    if kernel.fused:
        s[op].compute_at(tail, place)
    tail.set_store_predicate(thread.var.equal(0))


def schedule_one_of_a_block(kernel: Kernel, threads: int) -> None:
    """Each block computes one result: `threads` threads, each a part of the sum."""
    s, op = kernel.schedule, kernel.anchor
    most = limits_of(kernel.target).threads
    if threads > most:
        raise ArgumentError(f"a result by {threads} threads: a block of the device has at most {most}")
    thread = te.thread_axis((0, threads), "threadIdx.x")
    reduce_across(s, op, thread)
    tail = s[kernel.tail]
    place = fused_axes(tail)
    tail.bind(place, te.thread_axis("blockIdx.x"))
    if kernel.fused:
        s[op].compute_at(tail, place)
    tail.set_store_predicate(thread.var.equal(0))


def reduce_across(s: te.Schedule, op: Any, thread: Any) -> None:
    """Factor the reduction `op` into one partial result per thread, combined across the threads."""
    axes = list(op.reduce_axis)
    loop = s[op].fuse(*axes) if len(axes) > 1 else axes[0]
    _, inner = s[op].split(loop, factor=extent_of(thread))
    factored = s.rfactor(op.output(0), inner)
    partial = factored[0] if isinstance(factored, list) else factored
    (across,) = s[op].op.reduce_axis
    s[op].bind(across, thread)
    s[partial].compute_at(s[op], across)
