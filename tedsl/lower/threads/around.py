"""What stands around a stage: the stages inside whose loops it is computed, and the threads among these loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Var
from tedsl.ir.iters import Range
from tedsl.lower.plan import Ends, Loop, StagePlan
from tedsl.schedule.threads import is_shared_among, memory_scope


def hosts(plan: StagePlan) -> Iterator[tuple[StagePlan, int]]:
    """The stages around `plan` from the inside out, each with the number of the loop inside which the way goes on."""
    while plan.host is not None:
        yield plan.host, plan.position
        plan = plan.host


def spans(plan: StagePlan, loop: Loop) -> bool:
    """Whether the memory of `plan` is that of all threads of `loop`, which stands around it."""
    thread = loop.attr.bind_thread
    return thread is not None and is_shared_among(memory_scope(plan.stage), thread.thread_tag)


def outer_threads(plan: StagePlan, reader: StagePlan) -> Mapping[Var, Ends]:
    """The ranges of the threads around `plan` that share its memory: it is computed for all of them together.

    Those of the host are left out if it is the `reader`: its loops are looked at before.
    """
    found: dict[Var, Ends] = {}
    inner = plan
    while inner.host is not None:
        for loop in inner.host.loops[:inner.position + 1] if inner.host is not reader else ():
            if loop.var is not None and spans(plan, loop):
                found[loop.var] = build.const(0, loop.var.dtype), build.sub(loop.extent, 1)
        inner = inner.host
    return found


def bind_outer_threads(plan: StagePlan, analyzer: Analyzer) -> None:
    """Tell `analyzer` the ranges of the threads around `plan`: other stages may have used the same axes with other ranges."""
    for host, until in hosts(plan):
        for loop in host.loops[:until + 1]:
            if loop.var is not None and loop.attr.bind_thread is not None:
                analyzer.bind(loop.var, Range.from_min_extent(build.const(0, loop.var.dtype), loop.extent))


def bind_threads(plan: StagePlan, analyzer: Analyzer) -> None:
    """Tell `analyzer` the ranges of the threads of the kernel of `plan`: another kernel may have used the same axes."""
    if plan.launch is not None:
        for tag, axes in plan.launch.axes.items():
            for axis in axes:
                analyzer.bind(axis.var, Range.from_min_extent(build.const(0, axis.var.dtype), plan.launch.counts[tag]))
