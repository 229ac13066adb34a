"""One loop in four parts: blocks, virtual threads, threads, and what each of them computes; and shared memory that the threads
of a block fill together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.schedules.gpu.injective import fused_axes


def in_four(stage: te.Stage, axis: Any, parts: Sequence[int]) -> list[Any]:
    """Splits `axis` by the last three numbers of `parts`; its loops, outer ones first."""
    outer, inside = stage.split(axis, factor=parts[1] * parts[2] * parts[3])
    virtual, inside = stage.split(inside, factor=parts[2] * parts[3])
    thread, inside = stage.split(inside, factor=parts[3])
    return [outer, virtual, thread, inside]


def bind(stage: te.Stage, loops: Sequence[Any], names: Sequence[str]) -> None:
    """Binds each loop to the thread axis of that name; "vthread" names virtual threads."""
    for loop, name in zip(loops, names):
        stage.bind(loop, te.thread_axis(name))


def fill_shared(stage: te.Stage, reader: te.Stage, loop: Any, threads: Sequence[tuple[str, int]]) -> None:
    """Computes `stage`, a copy in shared memory, at `loop` of its reader: each thread takes every n-th element, neighbours in
    threadIdx.x one after the other. threads: the axes of a block and their extents, outer ones first.
    """
    stage.compute_at(reader, loop)
    rest = fused_axes(stage)
    for name, count in reversed(threads):
        rest, inside = stage.split(rest, factor=count)
        stage.bind(inside, te.thread_axis(name))
