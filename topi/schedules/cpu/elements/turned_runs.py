"""Transposes whose rows are too short to go past the caches one by one.

An array of numpy begins 16 bytes behind a line. Rows of a few lines then share lines with their neighbours, so that a loop over
the vectors of one row has few whole lines to store past the caches. Rows that follow each other make a run, which has many.

Rows that follow each other as the elements of the input do are turned in L1, some at a time, and stored as runs:

    for block of rows {
      for tile of columns, tile of rows { held[...] = a tile of the input, turned in registers; ask for tiles of later rows }
      result[run] = held[run]                                                   whole lines past the caches
    }

Of other rows each vector begins at a line of the result, and goes on in the next row:

    for tile of elements of the input, part of a row, rows that follow each other { result[line] = a line of turned elements }

Where the last cache is far, stores to parts of lines, whose other parts are in it, wait long for each. Then this holds for rows
of any length. Two lines at a time are written to all rows: of memory that takes neighbouring lines by turns, rows that are
whole pairs of lines apart would else keep one half busy, and then the other.

    for two lines of the result, tile of elements of the input { result[lines] = lines of turned elements }
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tedsl import te
from topi.schedules.cpu.elements.memory import in_order_of, may_compute_twice, turns_past_caches
from topi.schedules.cpu.elements.pages import loop_over
from topi.schedules.cpu.parallel import keep_cores_busy, share_out, split_for_cores
from topi.schedules.cpu.tiles import divisors
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_PART = 3  # of the nearest cache: that of a block of rows, and that of the lines of the input that are asked for
_RUN = 16  # lines of a run, at least
_LONG = 64  # lines of a run of rows of which each vector is a line: its ends are stored in parts
_FEW = 8  # tiles of elements that follow each other in the input; streams of more are as fast
_SHORT = 4  # lines of a row: longer ones that begin at lines are stored one by one in half of the time
_STREAMS = 64  # columns, whose lines are asked for ahead
_TILES = 4  # of rows in a block, at most, and that are asked for before they are turned
_PAIR = 2  # lines that are written to each row at a time
_LEAST = 1.5  # tiles of rows in a block: those of one share their lines of the input with the next block


class Runs(NamedTuple):
    """Blocks of a transpose. divided: the number of the axis of the result of which a block has `each` iterations; the axes
    behind it are whole in each block. ahead: the tiles of rows that are asked for meanwhile.
    """

    divided: int
    each: int
    ahead: int


def runs_of(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], load: Any, wide: int) -> Runs | None:
    """The blocks in which the transpose `op` is stored as runs of rows, with tiles of `wide` rows and columns. None where rows
    are long enough to go past the caches one by one, or do not follow each other, or blocks do not fit, or where columns share
    pages of the input: these are a stream, which processors prefetch.

    groups: the axes of the result that follow each other in both arrays. across: those that are contiguous in the input.
    """
    machine, axes, size = kernel.target.machine, list(op.axis), op.output(0).dtype.bytes
    is_known = all(extent_of(axis) is not None for axis in axes)
    if op is not kernel.tail or op.num_outputs != 1 or not is_known or not turns_past_caches(kernel, op):
        return None
    columns = _extent(groups[-1])
    row, room = columns * size, machine.l1.size // _PART
    ahead = min(_TILES, room // (columns * machine.line))
    is_long = row > _SHORT * machine.line or columns > _STREAMS
    along = loop_over(op, load, groups[-1])
    if len(groups) < 2 or groups[-2] is not across or is_long or ahead < 1 or along is None or along.steps[1] < machine.page:
        return None
    most = min(room // row, _TILES * wide)
    divided = next(axis for at, axis in enumerate(across) if _extent(across[at + 1:]) <= most or axis is across[-1])
    behind = _extent(across[across.index(divided) + 1:])
    count = next((n for n in reversed(divisors(_extent([divided]))) if n * behind <= most), 1)
    rows = count * behind
    return Runs(axes.index(divided), count, ahead) if rows >= _LEAST * wide and rows * row >= _RUN * machine.line else None


def map_runs(kernel: Kernel, op: Any, groups: list[list[Any]], load: Any, wide: int, runs: Runs) -> None:
    """Schedules the transpose `op` in blocks that are turned in L1, and stored as runs past the caches."""
    s, machine, axes = kernel.schedule, kernel.target.machine, list(op.axis)
    held = s[s.cache_write(op.output(0), "global")]
    stage = s[op.output(0)]
    own, inside = list(stage.op.axis), list(held.op.axis)
    first_column, behind = len(axes) - len(groups[-1]), list(range(runs.divided + 1, len(axes)))
    order = [axes.index(axis) for (axis,) in in_order_of(load, [[axis] for axis in axes])]

    around = [at for at in order if at < runs.divided]
    block, part = stage.split(own[runs.divided], factor=runs.each)
    outer = [own[at] for at in around]
    tasks, blocks = _extent([axes[at] for at in around]), _extent([axes[runs.divided]]) // runs.each
    chunks, block = split_for_cores(kernel.target, stage, block, blocks, tasks)
    outer = [*chunks, *outer]
    stage.reorder(*outer, block, part, *(own[at] for at in behind))
    run, elements = stage.fuse(part, *(own[at] for at in behind)), runs.each * _extent([axes[at] for at in behind])
    vectorize(stage, run, elements, machine.line // op.output(0).dtype.bytes)

    held.compute_at(stage, block)
    row, column = (held.fuse(*part) if len(part) > 1 else part[0] for part in (inside[runs.divided:first_column],
                                                                              inside[first_column:]))
    columns, column = held.split(column, factor=wide)
    rows, row = held.split(row, factor=wide)
    held.reorder(*(inside[at] for at in around), columns, rows, row, column)
    held.vectorize(column)
    held.prefetch(load.producer, rows, runs.ahead)
    share_out(stage, outer, _extent(axes))


def follow_in_lines(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], wide: int) -> bool:
    """Whether rows of the transpose `op` go past the caches only as vectors that begin at lines of the result and go on in the
    next row: rows of one or two whole lines, which follow each other in the result, but not as the elements of the input do, of
    which a few tiles follow each other. A vector is a line.
    """
    machine, size = kernel.target.machine, op.output(0).dtype.bytes
    is_known = all(extent_of(axis) is not None for axis in op.axis)
    if op is not kernel.tail or op.num_outputs != 1 or not is_known or not turns_past_caches(kernel, op):
        return False
    is_line = wide * size == machine.line == kernel.target.vector_bits // 8
    if across in groups[-2:] or _extent(across) > _FEW * wide or not is_line or not may_compute_twice():
        return False
    row, (before, behind) = _extent(groups[-1]) * size, _beside(groups, across)
    tasks = math.prod(map(_extent, before)) * -(-_extent(across) // wide)
    return row in (machine.line, 2 * machine.line) and _extent(behind) * size >= _LONG * machine.line and \
        keep_cores_busy(kernel.target, tasks)


def map_lines(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], load: Any, wide: int) -> None:
    """Schedules the transpose `op` by vectors that begin at lines of the result. All rows are inside of a tile of elements of
    the input; where rows go on with the next elements after a few tiles, these are inside of the loop over parts of a row.
    """
    stage, (before, behind) = kernel.schedule[op], _beside(groups, across)
    outer = [_fused(stage, group) for group in in_order_of(load, before)]
    line, lane = stage.split(_fused(stage, behind), factor=wide, tail="shift_inwards", lines_of=op.output(0))
    row, part = stage.split(line, factor=_extent(groups[-1]) // wide)
    tile, element = stage.split(_fused(stage, across), factor=wide)
    goes_on = in_order_of(load, groups)[-2] is groups[-2]
    parts_outside = goes_on and (bool(outer) or kernel.target.machine.cores == 1)
    stage.reorder(*outer, *((part, tile) if parts_outside else (tile, part)), row, element, lane)
    stage.vectorize(lane)
    share_out(stage, outer if parts_outside else [*outer, tile], _extent(list(op.axis)))


def await_lines(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], wide: int) -> bool:
    """Whether a transpose past the caches is written by lines because those of the last cache arrive late. A vector is a line,
    and all rows of the result, which are long, begin at the same places of lines.
    """
    machine, size = kernel.target.machine, op.output(0).dtype.bytes
    is_known = all(extent_of(axis) is not None for axis in op.axis)
    is_whole = op is kernel.tail and op.num_outputs == 1 and is_known
    if not machine.has_far_l3 or not is_whole or not turns_past_caches(kernel, op):
        return False
    is_line = wide * size == machine.line == kernel.target.vector_bits // 8
    row = _extent(_beside(groups, across)[1]) * size
    is_long = row >= _LONG * machine.line and row % machine.line == 0
    return is_line and is_long and may_compute_twice() and _extent(across) >= wide


def map_far_lines(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], load: Any, wide: int) -> None:
    """Schedules the transpose `op` by lines of the result: those of all rows, one after the other, in an order in which rows of
    the input are streams.
    """
    stage, machine, size = kernel.schedule[op], kernel.target.machine, op.output(0).dtype.bytes
    before, behind = _beside(groups, across)
    while not keep_cores_busy(kernel.target, tasks := math.prod(map(_extent, before))):
        row = _extent(behind[1:]) * size
        if row < _LONG * machine.line or row % machine.line:
            break
        before, behind = [*before, behind[:1]], behind[1:]
    lanes = _PAIR * wide if _extent(groups[-1]) >= _PAIR * wide else wide  # of a row and the next one at most
    outer = [_fused(stage, group) for group in in_order_of(load, before)]
    line, lane = stage.split(_fused(stage, behind), factor=lanes, tail="shift_inwards", lines_of=op.output(0))
    tile, element = stage.split(_fused(stage, across), factor=wide)
    if not keep_cores_busy(kernel.target, tasks):  # threads may not share lines, which overlap at the ends of rows
        chunk, tile = stage.split(tile, nparts=min(machine.cores, -(-_extent(across) // wide)))
        outer.append(chunk)
    stage.reorder(*outer, line, tile, element, lane)
    stage.vectorize(lane)
    share_out(stage, outer, _extent(list(op.axis)))


def _beside(groups: list[list[Any]], across: list[Any]) -> tuple[list[list[Any]], list[Any]]:
    """The groups before `across`, and the axes of those behind it."""
    at = next(at for at, group in enumerate(groups) if group is across)
    return groups[:at], [axis for group in groups[at + 1:] for axis in group]


def _fused(stage: te.Stage, axes: list[Any]) -> Any:
    return stage.fuse(*axes) if len(axes) > 1 else axes[0]


def _extent(axes: list[Any]) -> int:
    """The iterations of loops over axes of constant extents."""
    return product([extent_of(axis) for axis in axes]) or 1
