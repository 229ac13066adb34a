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
    extent = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    if extent is not None and extent < max(2, min(32, limits_of(kernel.target).threads)):
        _one_thread(kernel)
    else:
        _across_threads(kernel)


def _one_thread(kernel: Kernel) -> None:
    s = kernel.schedule
    loop = bind_elements(s[kernel.tail], limits_of(kernel.target))
    if kernel.fused:
        s[kernel.anchor].compute_at(s[kernel.tail], loop)
        s[kernel.anchor].set_scope("local")


def _across_threads(kernel: Kernel) -> None:
    """Bind the reduction to threadIdx.x and, where there are several results, some of them to threadIdx.y: a square of
    threads.
    """
    s, op, limits = kernel.schedule, kernel.anchor, limits_of(kernel.target)
    alone = product([extent_of(axis) for axis in kernel.tail.axis]) == 1
    side = 1 << int(math.log2(math.isqrt(limits.threads)))
    thread = te.thread_axis((0, limits.threads if alone else side), "threadIdx.x")
    reduce_across(s, op, thread)
    tail = s[kernel.tail]
    place = fused_axes(tail) if kernel.fused or not alone or tail.op.axis else None
    if place is None:
        s[op].set_store_predicate(thread.var.equal(0))
        return
    if alone:
        tail.bind(place, te.thread_axis("blockIdx.x"))
    else:
        block, place = tail.split(place, factor=side)
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
