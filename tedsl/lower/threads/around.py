"""The surroundings of a stage: the stages inside whose loops it is computed, and the threads among these loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Var
from tedsl.ir.iters import Range
from tedsl.lower.plan import Ends, Launch, Loop, Placement, StagePlan
from tedsl.schedule.thread_ranks import is_shared_among, memory_scope


def hosts(plan: StagePlan) -> Iterator[tuple[StagePlan, int]]:
    """Yields the stages around `plan` from the inside out, each with the number of its loop that encloses the previous one."""
    return outwards(plan.host, plan.position)


def outwards(host: StagePlan | None, position: int) -> Iterator[tuple[StagePlan, int]]:
    """Yields `host` and the stages around it, as `hosts` does for a stage inside loop number `position` of `host`."""
    while host is not None:
        yield host, position
        position, host = host.position, host.host


def spans(plan: Placement, loop: Loop) -> bool:
    """Whether the memory of `plan` is shared by all threads of `loop`, which encloses `plan`."""
    thread = loop.attr.bind_thread
    return thread is not None and is_shared_among(memory_scope(plan.stage), thread.thread_tag)


def outer_threads(plan: Placement, host: StagePlan | None, reader: StagePlan) -> Mapping[Var, Ends]:
    """The ranges of the threads around `plan`, from `host` outwards, that share its memory: its region is computed for all of
    them together.

    The threads of `reader` are left out: its own loops were relaxed before.
    """
    return {loop.var: (build.const(0, loop.var.dtype), build.sub(loop.extent, 1))
            for around, until in outwards(host, plan.position) if around is not reader
            for loop in around.loops[:until + 1] if loop.var is not None and spans(plan, loop)}


def bind_outer_threads(host: StagePlan | None, position: int, analyzer: Analyzer) -> None:
    """Tells `analyzer` the ranges of the threads around loop number `position` of `host`: other stages may have used the same
    axes with other ranges.
    """
    for around, until in outwards(host, position):
        for loop in around.loops[:until + 1]:
            if loop.var is not None and loop.attr.bind_thread is not None:
                analyzer.bind(loop.var, Range.from_min_extent(build.const(0, loop.var.dtype), loop.extent))


def bind_threads(launch: Launch | None, analyzer: Analyzer) -> None:
    """Tells `analyzer` the ranges of the threads of `launch`: another kernel may have used the same axes with other ranges."""
    if launch is not None:
        for tag, axes in launch.axes.items():
            for axis in axes:
                analyzer.bind(axis.var, Range.from_min_extent(build.const(0, axis.var.dtype), launch.counts[tag]))
