"""Tiles in three levels: blocks for threads and caches, tiles within them, and sums that stay in registers.

    parallel jo, io:                 blocks
      (a packed panel of an operand)
      im, jm:                        tiles of a block
        k: unroll i: vectorize j:    sums, in registers
        unroll i: vectorize j:       the tail, that reads them

The sums of a whole block may be kept in memory instead, and then terms are taken in blocks too (SSRSRS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tedsl.auto_scheduler.sketch.extents import counts, factors, rows_of_tile
from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from tedsl.auto_scheduler.sketch.packing import choose_copies, place_copies
from tedsl.lang.operation import ComputeOp
from topi.schedules.cpu.tiles import accumulators
from topi.schedules.formulas import extent_of

_VECTORS = 4  # along the vector axis of a tile: more leave no registers for rows
_STRAIGHT = 8  # terms of a reduction that are written out


@dataclass
class Tile:
    """The tile of a kernel: its size in registers by axis, how many of them make a block, and the axis of vectors (-1: none).
    """

    inner: list[int]
    middle: list[int]
    vector: int


def tile_kernel(program: Program, kernel: Kernel) -> None:
    """Tiles the loops of a kernel whose tail has axes."""
    s, choices, tail = program.schedule, program.choices, kernel.tail
    tile = choose_tile(program, kernel)
    single = [op for op in kernel.anchors if op is not tail or op.num_outputs == 1]
    copies = choose_copies(program, kernel, tile.inner, tile.vector) if kernel.anchors else []
    sums: list[Any] = [op for op in kernel.anchors if op is not tail]
    if single and tail in kernel.anchors and choices.yes(f"{kernel.name} cache_write", 0.9):
        sums.append(s.cache_write(tail.output(0), "global").op)
    blocks = bool(sums) and math.prod(tile.middle) > 1 and choices.yes(f"{kernel.name} blocks", 0.25)
    place = _tail_loops(program, kernel, tile, blocks, bool(sums) or tail not in kernel.anchors)
    for op in sums:
        if place is not None:
            s[op].compute_at(s[tail], place)
        _sum_loops(program, kernel, op, tile, blocks)
    place_copies(program, kernel, copies)


def choose_tile(program: Program, kernel: Kernel) -> Tile:
    """Decides the sizes. The sums of a tile fit the vector registers, a block of results fits L2."""
    choices, name = program.choices, kernel.name
    extents = [extent_of(axis) or 1 for axis in kernel.tail.axis]
    lanes = program.lanes(kernel.tail)
    wide = [at for at, extent in enumerate(extents) if extent > 1]
    vector = choices.one(f"{name} vector", [wide[-1]] * 8 + wide) if wide else -1
    left, inner = accumulators(program.target), [1] * len(extents)
    if vector >= 0:
        inner[vector] = choices.one(f"{name} lanes", _widths(extents[vector], lanes))
        left = max(1, left // -(-inner[vector] // lanes))
    for at in reversed(range(len(extents))):
        if at != vector:
            inner[at] = choices.one(f"{name} rows{at}", rows_of_tile(extents[at], left))
            left = max(1, left // inner[at])
    room = program.target.machine.l2.size * 8 // kernel.tail.output(0).dtype.bits // math.prod(inner)
    middle = [1] * len(extents)
    for at in reversed(range(len(extents))):
        middle[at] = choices.one(f"{name} tiles{at}", counts(-(-extents[at] // inner[at]), max(1, room)))
        room = max(1, room // middle[at])
    return Tile(inner, middle, vector)


def _widths(extent: int, lanes: int) -> list[int]:
    """Sizes of a tile along the axis of vectors."""
    if extent <= lanes:
        return [extent]
    whole = [lanes * n for n in range(1, _VECTORS + 1) if lanes * n <= extent]
    return whole + [n for n in factors(extent, lanes * _VECTORS) if n > lanes and n not in whole]


def _tail_loops(program: Program, kernel: Kernel, tile: Tile, blocks: bool, apart: bool) -> Any:
    """The loops of the tail; returns the loop in which its sums are computed, if there is one. apart: whether sums are computed
    in stages of their own.
    """
    stage, choices, name = program.schedule[kernel.tail], program.choices, kernel.name
    levels = [_levels(stage, axis, extent_of(axis) or 1, tile, at) for at, axis in enumerate(kernel.tail.axis)]
    outer = [one[0] for one in levels if one[0] is not None]
    middle = [one[1] for one in levels if one[1] is not None]
    inner = [one[2] for at, one in enumerate(levels) if one[2] is not None and at != tile.vector]
    lane = levels[tile.vector][2] if tile.vector >= 0 else None
    if len(outer) > 1 and choices.yes(f"{name} turned", 0.4):
        outer.reverse()
    if len(middle) > 1 and choices.yes(f"{name} inside out", 0.4):
        middle.reverse()
    lanes = [] if lane is None else [lane]
    terms = [] if apart else list(kernel.tail.reduce_axis)
    loops = [*outer, *middle, *terms, *inner, *lanes]
    if len(loops) > 1:
        stage.reorder(*loops)
    around = outer or middle[:1]
    last = middle[-1] if middle else None
    if around and kernel.host is None:
        count = choices.one(f"{name} threads", [len(around)] * 4 + list(range(1, len(around))))
        head = stage.fuse(*around[:count]) if count > 1 else around[0]
        stage.parallel(head)
        around = [head, *around[count:]]
        if not outer:
            last = head if len(middle) == 1 else last
    kernel.place = around[-1] if around else None
    for loop in inner:
        stage.unroll(loop)
    if lane is not None:
        stage.vectorize(lane)
    return kernel.place if blocks or last is None else last


def _levels(stage: Any, axis: Any, extent: int, tile: Tile, at: int) -> tuple[Any, Any, Any]:
    """The loops of an axis at the three levels, None where there is none."""
    inner, middle = tile.inner[at], tile.middle[at]
    rest, lane = axis, None
    if at == tile.vector or inner > 1:
        if inner >= extent:
            return None, None, axis
        rest, lane = stage.split(axis, factor=inner)
    if middle == 1:
        return rest, None, lane
    if middle >= -(-extent // inner):
        return None, rest, lane
    block, rest = stage.split(rest, factor=middle)
    return block, rest, lane


def _sum_loops(program: Program, kernel: Kernel, op: ComputeOp, tile: Tile, blocks: bool) -> None:
    """The loops of a reduction that is computed in the tiles of the tail."""
    stage, choices = program.schedule[op], program.choices
    name = f"{kernel.name} {op.name}"
    terms, late = [], []
    for at, axis in enumerate(op.reduce_axis):
        extent = extent_of(axis) or 1
        sizes = factors(extent, extent) if blocks else [extent] * 3 + factors(extent, _STRAIGHT)
        block = choices.one(f"{name} terms{at}", sizes)
        if 1 < block < extent:
            axis, low = stage.split(axis, factor=block)
            late.append(low)
            if not blocks:
                stage.unroll(low)
        elif block == extent and extent <= _STRAIGHT and len(op.reduce_axis) > 1 and choices.yes(f"{name} unroll{at}", 0.3):
            stage.unroll(axis)
        terms.append(axis)
    if len(terms) > 1 and choices.yes(f"{name} turned", 0.3):
        terms.reverse()
    middle, inner = [], []
    for at, axis in enumerate(op.axis):
        size = tile.inner[at]
        if blocks and tile.middle[at] > 1:
            up, axis = stage.split(axis, factor=size)
            middle.append(up)
        inner.append(axis)
    lanes = [inner.pop(tile.vector)] if tile.vector >= 0 else []
    if blocks:
        stage.reorder(*terms, *middle, *late, *inner, *lanes)
    else:
        stage.reorder(*terms, *late, *inner, *lanes)
    for loop in inner:
        stage.unroll(loop)
    for loop in lanes:
        stage.vectorize(loop)
