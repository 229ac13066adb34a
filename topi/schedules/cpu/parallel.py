"""Sharing work among threads."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tedsl.target import Target
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

# Elements of light work below which one thread is done before another has woken up.
SERIAL = 32 * 1024
SHARES = 4  # tasks for each core, from which no core is left without work for long


def share_out_rows(kernel: Kernel, stage: Any, axes: list[Any], work: int | None) -> Any:
    """Does what `share_out` does for the rows of `kernel`, chunk by chunk and block by block if it shares them with others.

    Returns the loop over rows.
    """
    if kernel.blocks is None:
        return share_out(stage, axes, work)
    chunk, row = stage.split(stage.fuse(*axes) if len(axes) > 1 else axes[0], factor=kernel.blocks.chunk)
    block, row = stage.split(row, factor=kernel.blocks.block)
    stage.parallel(chunk)
    kernel.over_blocks = stage, block, row
    return row


def share_out(stage: Any, axes: list[Any], work: int | None) -> Any:
    """Fuse `axes`, the outermost loops of `stage`, and run them in parallel if `work` (None: unknown) is worth it.

    Returns the loop; None where there are no axes.
    """
    if not axes:
        return None
    loop = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    if (work is None or work >= SERIAL) and product([extent_of(axis) for axis in axes]) != 1:
        stage.parallel(loop)
    return loop


def keep_cores_busy(target: Target, tasks: int) -> bool:
    """Whether so many equal tasks leave no core without work for long."""
    return tasks % target.machine.cores == 0 or tasks >= SHARES * target.machine.cores


def split_for_cores(target: Target, stage: Any, loop: Any, extent: int, tasks: int) -> tuple[list[Any], Any]:
    """Splits a loop of `extent` iterations, which runs `tasks` times, into equal chunks if the cores need more tasks. Returns
    the loop over chunks, as a list of at most one, and the loop inside.
    """
    wanted = SHARES * target.machine.cores
    if tasks >= wanted:
        return [], loop
    chunk, inside = stage.split(loop, nparts=divisor_near(extent, min(extent, -(-wanted // tasks)), 1))
    return [chunk], inside


def chunk_length(target: Target, extent: int, longest: int, unit: int, tasks: int = 1) -> int:
    """Returns the length of the chunks in which the cores share out a loop of `extent` iterations, `tasks` times.

    A chunk has at most about `longest` iterations, in whole `unit`s. Few chunks are shortened until each core has the same
    number of them: of seven, one of two cores would take four.
    """
    cores, chunks = target.machine.cores, -(-extent // longest)
    if tasks * chunks > cores and not keep_cores_busy(target, tasks * chunks):
        even = cores // math.gcd(cores, tasks)
        longest = -(-extent // (-(-chunks // even) * even))
    return -(-longest // unit) * unit


class Tasks(NamedTuple):
    """How tiles below each other are shared out: `size` are a task, and the cores are done after the time of `time` tiles."""

    size: int
    time: int


def tasks_of_tiles(target: Target, around: int, tiles: int) -> Tasks:
    """Shares out `tiles` tiles below each other, `around` times, so that the cores are done soonest, by the fewest tasks."""
    cores = target.machine.cores
    sizes = sorted({-(-tiles // chunks) for chunks in range(1, min(tiles, SHARES * cores) + 1)}, reverse=True)
    return min((Tasks(size, -(-(around * -(-tiles // size)) // cores) * size) for size in sizes), key=lambda tasks: tasks.time)


class Cover(NamedTuple):
    """How tiles cover a dimension of `extent` elements: by `size` of them."""

    extent: int | None
    size: int


def whole_loops(target: Target, loops: list[Any], covers: dict[Any, Cover], vectors: Any = None) -> list[Any]:
    """Those of `loops`, over tiles, that are shared out: all, or those before a loop whose last tile is smaller, or up to it
    if it is the first one of several tiles.

    The end of a loop is code of its own; that of a loop which is fused with others is a condition around every term. Cores
    without work are the lesser evil then, unless they are many. vectors: the loop whose tiles are vectors, if one is.
    """
    sizes = [(extent, size) for extent, size in (covers[loop] for loop in loops) if extent is not None]
    if len(sizes) < len(loops):
        return loops
    counts = [-(-extent // size) for extent, size in sizes]
    for at, (loop, (extent, size)) in enumerate(zip(loops, sizes)):
        if extent > size and extent % size:
            whole = loops[:at] if math.prod(counts[:at]) > 1 else loops[:at + 1]
            few, all_ = (_idle(target, math.prod(counts[:end])) for end in (len(whole), len(loops)))
            return whole if few <= conditions(target, loop is vectors) * all_ else loops
    return loops


def _idle(target: Target, tasks: int) -> float:
    """The time until the cores are done with equal tasks, over that in which they would be without waiting for each other."""
    cores = target.machine.cores
    return -(-tasks // cores) * cores / max(1, tasks)


def conditions(target: Target, of_vectors: bool) -> float:
    """The time of a tile with a condition around every term, over that of one without. of_vectors: whether it tells some lanes
    from others, as a mask.
    """
    return 1.1 if of_vectors and target.has_mask_registers else 3


def whole_tiles(kernel: Kernel, others: list[Any], tiles: Any, wide: int, *, of_vectors: bool = True) -> list[Any]:
    """Those of the loops `others` and `tiles`, over tiles of `wide` columns of the tail, that are shared out. of_vectors:
    whether the columns are lanes.
    """
    covers = {tiles: Cover(extent_of(kernel.tail.axis[-1]), wide), **{loop: Cover(extent_of(loop), 1) for loop in others}}
    return whole_loops(kernel.target, [*others, tiles], covers, tiles if of_vectors else None)
