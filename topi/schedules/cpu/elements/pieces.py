"""Pieces of memory that change places whole, as in a transpose that leaves the last axis where it is.

short pieces in the caches:    tiles of pieces, so that both arrays are read and written in runs
results past the caches:       pieces are gathered in the nearest cache and stored as runs of whole lines
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.elements.memory import goes_past_caches
from topi.schedules.cpu.parallel import share_out, split_for_cores
from topi.schedules.cpu.tiles import divisor_near, divisors
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_RUN = 8  # lines of memory that are read or written one after the other, where pieces or rows change places
_PAST = 16  # lines of a run of pieces that are stored past the caches
_GATHERED = 8  # parts of the nearest cache, one of which holds pieces: many streams at once are not followed


def run_of_pieces(kernel: Kernel, op: Any, groups: list[list[Any]], extents: list[int | None]) -> tuple[int, int] | None:
    """Where short pieces of memory change places: the number of the group that follows pieces in the result, and how many of
    them make a run that is worth reading and writing; None elsewhere. groups: in the order of the input.
    """
    order = {axis: at for at, axis in enumerate(op.axis)}
    follows = max(range(len(groups) - 1), key=lambda at: order[groups[at][-1]], default=None)
    if follows is None or follows == len(groups) - 2 or any(extent is None for extent in extents):
        return None
    piece = (extents[-1] or 1) * op.output(0).dtype.bytes
    count = _RUN * kernel.target.machine.line // piece
    return (follows, count) if count > 1 and min(extents[follows] or 1, extents[-2] or 1) >= count else None


def gathered_pieces(kernel: Kernel, op: Any, groups: list[list[Any]]) -> tuple[Any, int, int] | None:
    """Where short pieces of memory change places in a result that goes past the caches, which takes whole lines: the axis that
    pieces follow each other along in the result, how many of them make a run of enough lines, and how many pieces that follow
    each other in the input are read for each of them. None elsewhere. groups: in the order of the input.
    """
    if op is not kernel.tail or op.num_outputs != 1 or len(groups) < 3 or not goes_past_caches(kernel, op):
        return None
    extents = [extent_of(axis) for axis in op.axis]
    last = product([extent_of(axis) for axis in groups[-1]])
    if None in extents or last is None:
        return None
    follows = list(op.axis)[len(op.axis) - len(groups[-1]) - 1]
    piece, line = last * op.output(0).dtype.bytes, kernel.target.machine.line
    if follows is groups[-2][-1] or not line <= piece < _PAST * line:
        return None
    room = kernel.target.machine.l1.size // _GATHERED
    rows = next((count for count in divisors(extent_of(follows) or 1) if _PAST * line <= count * piece <= room), None)
    if rows is None:
        return None
    most = max(1, min(_RUN * line, room // rows) // piece)
    return follows, rows, divisor_near(extent_of(groups[-2][-1]), most, 1)


def map_gathered(kernel: Kernel, op: Any, groups: list[list[Any]], load: Any, follows: Any, rows: int, columns: int) -> None:
    """Gathers pieces in the nearest cache, `rows` times `columns` at a time, and stores them as runs; the next ones are asked
    for meanwhile. groups: in the order of the input; the last axis of the group before the last one is that of the columns.
    """
    s, machine = kernel.schedule, kernel.target.machine
    places = {axis: at for at, axis in enumerate(op.axis)}
    held = s[s.cache_write(op.output(0), "global")]
    stage = s[op.output(0)]
    own, inside = list(stage.op.axis), list(held.op.axis)
    order = [places[axis] for group in groups[:-1] for axis in group]
    across, down, pieces = order[-1], places[follows], [places[axis] for axis in groups[-1]]
    run, row = stage.split(own[down], factor=rows)
    block, column = stage.split(own[across], factor=columns)
    outer = [*(own[at] for at in order if at not in (across, down)), run]
    blocks = (extent_of(own[across]) or 1) // columns
    tasks = (product([extent_of(own[at]) for at in order]) or 1) // (rows * columns * blocks)
    chunks, block = split_for_cores(kernel.target, stage, block, blocks, tasks)
    outer = [*chunks, *outer]
    stage.reorder(*outer, block, column, row, *(own[at] for at in pieces))
    size = op.output(0).dtype.bytes
    piece = product([extent_of(axis) for axis in groups[-1]]) or 1
    vectorize(stage, stage.fuse(row, *(own[at] for at in pieces)), rows * piece, machine.line // size)
    held.compute_at(stage, block)
    held.reorder(*(inside[at] for at in order if at not in (across, down)), inside[across], inside[down],
                 *(inside[at] for at in pieces))
    last = held.fuse(*(inside[at] for at in pieces)) if len(pieces) > 1 else inside[pieces[0]]
    vectorize(held, last, piece, kernel.lanes(op))
    stage.prefetch(load.producer, block, 1)
    share_out(stage, outer, product([extent_of(axis) for axis in own]))


def map_pieces(stage: te.Stage, loops: list[Any], extents: list[int | None], lanes: int, follows: int, count: int) -> None:
    """Tiles the loops over the pieces that follow each other in the input and in the result: both are read and written in runs,
    which share lines and pages.
    """
    rows, row = stage.split(loops[follows], factor=divisor_near(extents[follows], count, -(-count // 2)))
    columns, column = stage.split(loops[-2], factor=divisor_near(extents[-2], count, -(-count // 2)))
    outer = [*loops[:follows], rows, *loops[follows + 1:-2], columns]
    stage.reorder(*outer, column, row, loops[-1])
    vectorize(stage, loops[-1], extents[-1], lanes)
    share_out(stage, outer, product(extents))
