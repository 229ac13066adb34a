"""Transposes: the last axis of the result and that of the input are tiled, and tiles are turned in registers.

small or long rows:            tiles in the order of the input, whose rows are streams that processors prefetch
pages that are looked up:      the order of the groups of axes that comes to the fewest, or blocks of the result
planes that fit a cache:       some at a time, stored past the caches from end to end
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from topi.schedules.cpu.elements.memory import in_order_of, may_compute_twice, turns_past_caches
from topi.schedules.cpu.elements.pages import Loop, loop_over, page_visits
from topi.schedules.cpu.elements.turned_runs import await_lines, follow_in_lines, map_far_lines, map_lines, map_runs, runs_of
from topi.schedules.cpu.parallel import SHARES, keep_cores_busy, share_out
from topi.schedules.cpu.tiles import divisor_near, divisors
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import Formula, constant, extent_of, product, variables_in
from topi.schedules.formulas import runs as contiguous
from topi.schedules.kernel import Kernel

_RUN = 8  # lines of memory that are read or written one after the other, where pieces or rows change places
_WORTH = 1.3  # times fewer look-ups of pages, from which on the order of the input is given up
_SHORT = 4  # lines of a row of a matrix, below which it is written at once; of the runs in which blocks are read, at least
_OPENED = 0.25  # look-ups in the time that memory takes to open a page for lines that go past the caches
_GAINED = 32  # lines that are read and written for each look-up that another order spares at least
_MOST_OTHERS = 4  # groups of axes beside the tiled ones, all of whose orders are tried
_LINES = 16  # lines that are read and written for each page that is looked up: then blocks are as small as that, for the caches
_AHEAD = 2  # rows of tiles of a short matrix that are asked for before they are transposed
_STRIP = 8 / 3  # lines of a cache for each row of tiles, of which it holds two: rows begin anywhere in lines
_BELOW = 4  # tiles below each other whose lines of the result stay in the nearest cache, while they read runs of as many lines
_TURNED = 16  # the most rows and columns of a tile that is transposed in registers
_FEWEST = 4  # elements of the input beside each other from which on they are turned; one more of less than four bytes
_LONG = 16  # tiles of a row or column, from which on matrices are transposed strip by strip
_STORES = 48  # stores that wait for their lines in L1 at a time


def turned_axis(op: Any, formula: Formula) -> tuple[Any, Any] | None:
    """The axis along which a load is contiguous where the last axis is not, as in a transpose, and the load; None if there is
    none.
    """
    last = op.axis[-1]
    for axis in op.axis[:-1]:
        for load in formula.loads:
            if load.indices and load.indices[-1] is axis.var and any(last.var in variables_in(index) for index in load.indices):
                groups = contiguous(op.axis, formula)
                rows, columns = (product([extent_of(one) for one in next(group for group in groups if inside in group)])
                                 for inside in (axis, last))
                fewest = _FEWEST + (op.output(0).dtype.bytes < _FEWEST)
                is_tile = (rows is None or rows >= fewest) and (columns is None or columns >= _TURNED)
                return (axis, load) if is_tile else None
    return None


def map_turned(kernel: Kernel, op: Any, turned: Any, load: Any, formula: Formula) -> None:
    """Tiles the last axis and the axis `turned`, which are transposed in registers: each line of the input and of the output is
    read and written completely. The loops are in the order of the input, so that rows of it are streams, which processors
    prefetch; inside of them are tiles whose lines follow each other in the result, where its rows lie in pages of their own.
    Where this order comes to so many pages that each is looked up again and again, or is opened again in memory for lines that
    go past the caches, the loops are in an order that comes to few pages (`_order_of_few_pages`). They go along rows of the
    result where stores to these would take lines of a cache from each other, and where tiles share more lines that way
    (`_tiles_outside`).
    """
    stage = kernel.schedule[op]
    groups = contiguous(op.axis, formula)
    across = next(group for group in groups if turned in group)
    wide = min(max(kernel.lanes(op), kernel.target.machine.line // op.output(0).dtype.bytes), _TURNED)
    if _are_short_planes(kernel, op, groups, across, load):
        _map_planes(kernel, op, len(across), len(groups[-1]), load, wide)
        return
    runs = runs_of(kernel, op, groups, across, load, wide)
    if runs is not None:
        map_runs(kernel, op, groups, load, wide, runs)
        return
    if await_lines(kernel, op, groups, across, wide):
        map_far_lines(kernel, op, groups, across, load, wide)
        return
    if follow_in_lines(kernel, op, groups, across, wide):
        map_lines(kernel, op, groups, across, load, wide)
        return
    others = [group for group in groups if group not in (across, groups[-1])]
    strips = _strips(kernel, op, load, groups, across, wide)
    if strips is not None:
        _map_strips(kernel, op, load, [*others, groups[-1], across], wide, strips)
        return
    tiles = _tiles_in_a_row(kernel, op, across, load, wide, product([extent_of(axis) for axis in groups[-1]]))
    chosen = _order_of_few_pages(kernel, op, load, others, (groups[-1], across), wide, tiles)
    if isinstance(chosen, list):
        _map_in_order(kernel, op, chosen, (groups[-1], across), wide)
        return
    size = chosen
    order = in_order_of(load, groups) if size is None else [*others, groups[-1], across]
    below = _tiles_outside(kernel, op, load, order, groups[-1], across, wide) if size is None and tiles == 1 else None
    if below is not None:
        order = [*order[:-2], across, groups[-1]]
    loops = {id(group): stage.fuse(*group) if len(group) > 1 else group[0] for group in groups}
    outer, column = stage.split(loops[id(groups[-1])], factor=wide)
    along = loop_over(op, load, groups[-1])
    at_lines = size is None and below is None and tiles == 1 and along is not None and order[-1] is across and \
        op is kernel.tail and _reads_lines(kernel, op, along, wide) and \
        not kernel.target.machine.l1.evicts(wide, along.steps[1])  # else lines ahead are lost, however they are read
    tail = {"tail": "shift_inwards", "lines_of": load.producer} if at_lines else {}
    inner, row = stage.split(loops[id(across)], factor=wide, **tail)
    first = []
    if size is not None:
        tiles = 1
        if size * wide < (product([extent_of(axis) for axis in across]) or 0):
            block, inner = stage.split(inner, factor=size)
            first = [block]
    in_row = []
    if tiles > 1:
        outer, run = stage.split(outer, factor=tiles)
        in_row = [run]
    if below is not None and below > 1:
        inner, run = stage.split(inner, factor=below)
        in_row = [run]
    loops |= {id(groups[-1]): outer, id(across): inner}
    before = order[:next(at for at, group in enumerate(order) if group is groups[-1])]
    stage.reorder(*first, *(loops[id(group)] for group in order), *in_row, row, column)
    stage.vectorize(column)
    sizes = [(product([extent_of(axis) for axis in group]) or 1,
              wide * (below or 1) if group is across else 1) for group in before]
    iterations = product([-(-extent // part) for extent, part in sizes]) or 1
    shared = [*first, *(loops[id(group)] for group in before)]
    few = not first and iterations < SHARES * kernel.target.machine.cores
    share_out(stage, [*shared, outer] if few else shared, product([extent_of(axis) for axis in op.axis]))


def _strips(kernel: Kernel, op: Any, load: Any, groups: list[list[Any]], across: list[Any], wide: int) -> int | None:
    """The number of tasks in which a large matrix is transposed strip by strip, past the caches: `_BELOW` tiles of `wide` rows
    of the result at a time, which begin where lines of the input do. None where it is better to go through rows of the input,
    which are streams that processors prefetch, or where the columns make too few tasks.

    Streams are worse where the rows of the result that wait for their lines share few sets of L1, or lie in many more pages
    than are known at once.
    """
    machine, over = kernel.target.machine, [loop_over(op, load, group) for group in (across, groups[-1])]
    if len(groups) < 2 or groups[-2] is not across or in_order_of(load, groups)[-2:] != [groups[-1], across] or \
            over[0] is None or over[1] is None or not _reads_lines(kernel, op, over[1], wide):
        return None
    step = over[0].steps[0]
    if step % machine.line or over[0].extent < _LONG * wide or over[1].extent < _LONG * wide:
        return None
    if not machine.l1.evicts(_STORES, step) and over[0].extent * min(step, machine.page) <= 2 * machine.tlb2 * machine.page:
        return None
    around = product([extent_of(axis) for group in groups[:-2] for axis in group]) or 1
    tiles = over[1].extent // wide
    counts = [count for count in divisors(tiles) if tiles // count >= _LONG] if over[1].extent % wide == 0 else [1]
    return next((count for count in counts if keep_cores_busy(kernel.target, count * around)), None)


def _reads_lines(kernel: Kernel, op: Any, columns: Loop, wide: int) -> bool:
    """Whether tiles of a large transpose may begin where lines of the input do, and then read one line of each row: a row is
    one vector, and rows are whole lines apart. columns: the loop over these rows.
    """
    line = kernel.target.machine.line
    return wide * op.output(0).dtype.bytes == line == kernel.target.vector_bits // 8 and columns.steps[1] % line == 0 and \
        turns_past_caches(kernel, op) and may_compute_twice()


def _map_strips(kernel: Kernel, op: Any, load: Any, groups: list[list[Any]], wide: int, tasks: int) -> None:
    """Schedules the transpose `op` strip by strip, with so many `tasks` for each matrix. groups: in the order of the input."""
    stage = kernel.schedule[op]
    *around, columns, rows = [stage.fuse(*group) if len(group) > 1 else group[0] for group in groups]
    tile, column = stage.split(columns, factor=wide)
    below, row = stage.split(rows, factor=wide, tail="shift_inwards", lines_of=load.producer)
    strip, below = stage.split(below, factor=_BELOW)
    task, tile = stage.split(tile, nparts=tasks)
    stage.reorder(*around, task, strip, tile, below, row, column)
    stage.vectorize(column)
    share_out(stage, [*around, task], product([extent_of(axis) for axis in op.axis]))


def _tiles_outside(kernel: Kernel, op: Any, load: Any, order: list[list[Any]], columns: list[Any], rows: list[Any],
                   wide: int) -> int | None:
    """How many tiles of `wide` elements along rows of the result, below each other, are computed for one place after the other
    along its columns, in a transpose that does not stay in L1; None for all of them, in the order of the input.

    In that order each store goes to another row of the result. Where the distance of these rows has a large power of two as a
    factor, the lines that `_STORES` of them wait for share few sets of L1 and take the places from each other: as many tiles as
    leave each other's lines there, or, if the matrices come from memory, some whose rows of the input are read in runs.

    Elsewhere tiles of the next row share lines with those of one row, which begin anywhere in lines: one tile where lines of
    the input that such a row reads stay in a nearer cache than those of the result that a row of tiles of the input writes, or
    where neither stay in L2, for stores wait for their lines. Where neither stay in L1, some tiles, whose lines of the result
    do, read runs of the input. columns, rows: of the result. order: that of the input.
    """
    machine, over = kernel.target.machine, [loop_over(op, load, group) for group in (rows, columns)]
    size = 2 * (product([extent_of(axis) for axis in op.axis]) or 0) * op.output(0).dtype.bytes
    if order[-2] is not columns or order[-1] is not rows or over[0] is None or over[1] is None or size <= machine.l1.size:
        return None
    step, read_step, past = over[0].steps[0], over[1].steps[1], turns_past_caches(kernel, op)
    whole_lines = wide * op.output(0).dtype.bytes >= machine.line
    if whole_lines and past and machine.l1.evicts(wide, step):
        if page_visits([Loop(over[1].extent, (read_step,))], kernel.target) > machine.tlb2:
            return None
        return _BELOW if machine.l1.evicts(wide, read_step) else _BELOW // 2
    if past:
        return None
    few = next((count for count in (_BELOW, _BELOW // 2) if not machine.l1.evicts(count * wide, step)), 1)
    if whole_lines and machine.l1.evicts(_STORES, step):
        return few

    def nearest(count: int, step: int) -> int:
        bytes_held = _STRIP * count * machine.line
        if bytes_held <= machine.l1.size and not machine.l1.evicts(count, step):
            return 0
        return 2 if bytes_held <= machine.l2.size and machine.l2.evicts(2 * count, step) else 1

    written, read = nearest(over[0].extent, step), nearest(over[1].extent, read_step)
    if read < written or read == written == 2:
        return 1
    return None if written == 0 or few == 1 or 2 * size > machine.l3.size else few


def _order_of_few_pages(kernel: Kernel, op: Any, load: Any, others: list[list[Any]], tiled: tuple[list[Any], ...], wide: int,
                        tiles: int) -> list[list[Any]] | int | None:
    """How the loops over the groups `others` and over tiles of `wide` elements along both of `tiled`, the last axes of the
    result and of the input, come to fewer pages again than in the order of the input, with so many `tiles` one after the other
    in a row of the result: in another order of the groups; or, where a number is returned, in the order of the result within
    blocks of so many tiles along the input's last axes. None where neither pays or nothing is known.
    """
    machine, size = kernel.target.machine, op.output(0).dtype.bytes
    over = {id(group): loop for group in (*others, *tiled) if (loop := loop_over(op, load, group)) is not None}
    if len(over) < len(others) + len(tiled):
        return None
    column, row = (over[id(group)] for group in tiled)
    if not others and row.steps[0] >= _SHORT * machine.line:
        return None
    past = turns_past_caches(kernel, op)
    inside = [Loop(wide, column.steps), Loop(wide, row.steps)]

    def cost(loops: Sequence[Loop]) -> float:
        nest = [*loops, *inside]
        written = [Loop(loop.extent, loop.steps[:1]) for loop in nest]
        opened = page_visits(written, kernel.target, machine.tlb // 2) if past else 0
        return page_visits(nest, kernel.target) + _OPENED * opened

    by_tiles = {**over, id(tiled[0]): column.by(wide), id(tiled[1]): row.by(wide)}
    groups = in_order_of(load, [*others, *tiled])
    runs_of_tiles = {**by_tiles, id(tiled[0]): column.by(wide * tiles)}
    now = cost([*(runs_of_tiles[id(group)] for group in groups), Loop(tiles, column.by(wide).steps)])
    around, along = [over[id(group)] for group in others], row.by(wide)
    sizes = [count for count in divisors(along.extent) if count * wide * size >= _SHORT * machine.line] or [along.extent]
    costs = [cost([along.by(count), *around, column.by(wide), Loop(count, along.steps)]) for count in sizes]
    lines = 2 * size * math.prod(loop.extent for loop in over.values()) // machine.line
    block, least = next((count, one) for count, one in zip(sizes, costs, strict=True) if one <= min(costs) + lines // _LINES)
    if past and 0 < len(others) <= _MOST_OTHERS:
        def key(order: tuple[list[Any], ...]) -> tuple[float, bool]:
            return cost([by_tiles[id(group)] for group in order]), by_tiles[id(order[0])].extent < SHARES * machine.cores

        order = min(itertools.permutations(groups), key=key)  # of equals, the first is the nearest to the order of the input
        apart = [[axis] for group in others for axis in group]
        if len(others) < len(apart) <= _MOST_OTHERS:  # something else may come between axes that follow each other
            by_tiles |= {id(group): loop for group in apart if (loop := loop_over(op, load, group)) is not None}
            other = min(itertools.permutations(in_order_of(load, [*apart, *tiled])), key=key)
            order = other if _WORTH * key(other)[0] <= key(order)[0] else order
        if key(order)[0] <= least and _WORTH * key(order)[0] <= now and now - key(order)[0] >= lines // _GAINED:
            return list(order)
    return block if _WORTH * min(costs) <= now else None


def _map_in_order(kernel: Kernel, op: Any, order: list[list[Any]], tiled: tuple[list[Any], ...], wide: int) -> None:
    """Tiles the axes of both of `tiled` by `wide` elements, with the loops over groups of axes in this order."""
    stage = kernel.schedule[op]
    loops = {id(group): stage.fuse(*group) if len(group) > 1 else group[0] for group in order}
    inside = []
    for group in reversed(tiled):
        loops[id(group)], element = stage.split(loops[id(group)], factor=wide)
        inside.append(element)
    stage.reorder(*(loops[id(group)] for group in order), *inside)
    stage.vectorize(inside[-1])
    shared, tasks = 0, 1
    while shared < len(order) and tasks < SHARES * kernel.target.machine.cores:
        tasks *= -(-(product([extent_of(axis) for axis in order[shared]]) or 1) // (wide if order[shared] in tiled else 1))
        shared += 1
    share_out(stage, [loops[id(group)] for group in order[:shared]], product([extent_of(axis) for axis in op.axis]))


def _are_short_planes(kernel: Kernel, op: Any, groups: list[list[Any]], across: list[Any], load: Any) -> bool:
    """Whether matrices are transposed that fit half of the nearest cache, into a result that is to go past the caches, and
    cannot, since its rows are no whole lines.
    """
    machine, size = kernel.target.machine, op.output(0).dtype.bytes
    plane, columns = [product([extent_of(axis) for axis in axes]) for axes in ([*across, *groups[-1]], groups[-1])]
    if op is not kernel.tail or plane is None or columns is None or columns * size % machine.line == 0:
        return False
    return (op.num_outputs == 1 and across is groups[-2] and len(groups) > 2
            and in_order_of(load, groups)[-2:] == [groups[-1], across]
            and plane * size <= machine.l1.size // 2 and turns_past_caches(kernel, op))


def _map_planes(kernel: Kernel, op: Any, rows: int, columns: int, load: Any, wide: int) -> None:
    """Transposes some matrices at a time, whose rows and columns are so many axes, in a cache, and stores them from end to end:
    only the first and the last line of what is stored are written in parts. Rows of the input that come next are asked for.
    """
    s = kernel.schedule
    turned = s[s.cache_write(op.output(0), "global")]
    stage, own = s[op.output(0)], list(turned.op.axis)
    first, second = len(own) - rows - columns, len(own) - columns
    down, over = [turned.fuse(*axes) if len(axes) > 1 else axes[0] for axes in (own[first:second], own[second:])]
    tiles_down, row = turned.split(down, factor=wide)
    tiles_over, column = turned.split(over, factor=wide)
    turned.reorder(*own[:first], tiles_over, tiles_down, row, column)
    turned.vectorize(column)
    turned.prefetch(load.producer, tiles_over, _AHEAD)
    *outer, last = list(stage.op.axis)[:first]
    plane = product([extent_of(axis) for axis in own[first:]]) or 1
    most = kernel.target.machine.l1.size // 2 // (plane * op.output(0).dtype.bytes)
    together = divisor_near(extent_of(last), most, 1)
    block, one = stage.split(last, factor=together)
    vectorize(stage, stage.fuse(one, *list(stage.op.axis)[first:]), plane * together, 2 * wide)
    turned.compute_at(stage, share_out(stage, [*outer, block], None))


def _tiles_in_a_row(kernel: Kernel, op: Any, across: list[Any], load: Any, wide: int, extent: int | None) -> int:
    """How many tiles of `wide` elements, which follow each other in a row of the result, of `extent` elements, are computed one
    after the other, so that lines that are written to as many pages as there are rows come in runs. across: the axes of these
    rows.

    That pays where a run of tiles reads rows of the input completely, and where the rows of one tile fall into so few sets of
    L1 that lines ahead, which are prefetched, are lost anyway. 1 elsewhere, where so many rows of the input fall into few
    sets of L2, or a rest would be left, and for rows of whole lines that go past the caches.
    """
    machine, size = kernel.target.machine, op.output(0).dtype.bytes
    at = list(op.axis).index(across[-1])
    apart = product([extent_of(axis) for axis in list(op.axis)[at + 1:]])
    where = next(at for at, index in enumerate(load.indices) if op.axis[-1].var in variables_in(index))
    step = product([constant(dim) for dim in load.producer.shape[where + 1:]])
    rows = product([extent_of(axis) for axis in across])
    if apart is None or step is None or extent is None or rows is None or apart * size < machine.page:
        return 1
    if extent * size % machine.line == 0 and turns_past_caches(kernel, op):
        return 1
    far = step * size > machine.page
    if rows * size > _RUN * machine.line:
        pays = not far and machine.l1.evicts(wide, step * size)
    else:
        pays = not far or rows * apart * size > machine.tlb2 * machine.page
    most = max(1, _RUN * machine.line // (wide * size))
    counts = (n for n in range(most, 0, -1) if extent % (n * wide) == 0 and not machine.l2.evicts(n * wide, step * size))
    count = next(counts, 1) if pays else 1
    return count if 2 * count >= most else 1
