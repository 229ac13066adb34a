"""Products of matrices of bytes and of bfloat16 by the tile registers of the processor (AMX).

    the second matrix is copied in panels of 32 columns, by groups of terms      [j // 32, k // g, j % 32, k % g]
    some rows are multiplied by panels that lie in half of L2                    s[C].pragma(rows, "tile_products")
    and their sums are used, or stored: whole lines, row by row, where tiles would store parts of lines of 32 rows
"""

from __future__ import annotations

from typing import Any, NamedTuple

from topi.schedules.cpu.dots import turn_groups
from topi.schedules.cpu.panels import as_panels
from topi.schedules.cpu.parallel import keep_cores_busy, share_out, tasks_of_tiles
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.cpu.vectors import vectorize_panel
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

PANEL = 32  # columns of two tiles, and rows of two tiles
STEP = 64  # bytes of a row of a tile
_COPIED = 4  # panels, from which rows are copied for their tiles: each of them reads the rows again
_RATE = 1024  # products of bytes in a cycle, of tiles whose rows are full; half as many of bfloat16
_SHAPED = 400  # cycles until the tiles have their shapes, and the caller its registers


def multiplies_faster(kernel: Kernel, dtypes: tuple[Any, Any], terms: int | None, group: int, in_line: int | None = None,
                      stored: int = 0) -> bool:
    """Whether tiles multiply in less time than vectors, which add up `group` of so many terms at once.

    in_line: the terms that lie side by side: no row of a tile has more; None: they fill rows. stored: the cycles that
    tiles take longer than vectors to store a vector of the result.
    """
    target = kernel.target
    if group == 1 or not target.multiplies_tiles(*dtypes) or terms is None or terms % group:
        return False
    extents = [extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)]
    work = product(extents)
    if work is None:
        return 0 not in extents
    vectors = group * (target.vector_bits // 32) * target.machine.fmas(target.vector_bits)
    size = 4 // group * (in_line or STEP)
    filled = size / (-(-size // STEP) * STEP)
    results = product([extent_of(axis) for axis in kernel.anchor.axis]) or 0
    return work / (_RATE * group / 4 * filled) + stored * results / (PANEL // 2) + _SHAPED < work / vectors


def are_packed(kernel: Kernel) -> bool:
    """Whether the columns of the second matrix of a product lie in panels as tiles multiply them."""
    record = kernel.record
    packed = as_panels(kernel, record.b)
    return packed is not None and record.transpose_b and packed.wide == PANEL and \
        packed.group * packed.panels.dtype.bits == 32 and kernel.target.multiplies_tiles(record.a.dtype, record.b.dtype)


def copy_by_panels(kernel: Kernel, tensor: Any, terms: int, columns: int, group: int) -> Any:
    """A copy of `tensor` in panels of columns, by groups of the dimension `terms`; dimensions between them stay in order."""
    rank = len(tensor.shape)
    rest = [at for at in range(rank) if at not in (terms % rank, columns % rank)]
    copy = kernel.schedule.cache_read(tensor, "global", [kernel.anchor])
    kernel.schedule[copy].transform_layout(
        lambda *at: [*(at[k] for k in rest), at[columns] // PANEL, at[terms] // group, at[columns] % PANEL, at[terms] % group])
    return copy


def multiply_tiles(kernel: Kernel, group: int) -> None:
    """Schedule a product of matrices."""
    s, tail, record = kernel.schedule, kernel.schedule[kernel.tail], kernel.record
    if record.transpose_a:
        turned = s.cache_read(record.a, "global", [kernel.anchor])
        s[turned].transform_layout(lambda *at: [*at[:-2], at[-1], at[-2]])
        s[turned].vectorize(s[turned].split(s[turned].leaf_iter_vars[-1], factor=kernel.lanes(kernel.anchor))[1])
    terms, columns = (-1, -2) if record.transpose_b else (-2, -1)
    copy = None if are_packed(kernel) else s[copy_by_panels(kernel, record.b, terms, columns, group)]
    parts = _parts(kernel)
    rows_copy = s[_copy_by_steps(kernel, parts.step)] if parts.step else None
    sums = s[kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "global").op]
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=parts.columns)
    jm, ji = tail.split(ji, factor=parts.held)
    jp, ji = tail.split(ji, factor=PANEL)
    co, ci = tail.split(i, factor=parts.chunk)
    io, ii = tail.split(ci, factor=parts.rows)
    tail.reorder(*batch, jo, co, io, jm, ii, jp, ji)
    place = share_out(tail, [*batch, jo] if parts.is_whole else [*batch, jo, co], None)
    vectorize_panel(tail, ji, PANEL, kernel.lanes(kernel.tail))
    sums.compute_at(tail, jm)
    sums.transform_layout(lambda *at: [*at[:-2], at[-1] // PANEL, at[-2], at[-1] % PANEL])
    *_, panels, rows, lanes = sums.op.axis
    (k,) = sums.op.reduce_axis
    ks, k = sums.split(k, factor=parts.step or extent_of(k))
    steps, inside = sums.split(k, factor=group)
    sums.reorder(panels, rows, ks, steps, lanes, inside)
    sums.pragma(panels, "tile_products")
    if rows_copy is not None:
        rows_copy.compute_at(tail, io)
        *around, step, row, lane = rows_copy.leaf_iter_vars
        rows_copy.reorder(*around, row, step, lane)
        rows_copy.vectorize(lane)
    if copy is None:
        return
    *around, panel, steps, lanes, inside = copy.leaf_iter_vars
    if parts.is_whole:
        copy.compute_at(tail, place)
    turn_groups(kernel, copy, (panel, steps, lanes, inside), turned=record.transpose_b)
    if not parts.is_whole:
        share_out(copy, [*around, panel], None)


def _copy_by_steps(kernel: Kernel, step: int) -> Any:
    """A copy of the first matrix, in which the terms of a step follow each other, row after row: whole lines of memory."""
    copy = kernel.schedule.cache_read(kernel.record.a, "global", [kernel.anchor])
    kernel.schedule[copy].transform_layout(lambda *at: [*at[:-2], at[-1] // step, at[-2], at[-1] % step])
    return copy


def columns_near(kernel: Kernel, columns: int | None, terms: int) -> int:
    """The columns that are multiplied by all rows, then the next: in panels, of `terms` bytes each column, in half of L2."""
    panels = -(-(columns or PANEL) // PANEL)
    return PANEL * min(panels, max(1, kernel.target.machine.l2.size // 2 // (PANEL * terms)))


def columns_of_call(kernel: Kernel, columns: int, rows: int) -> int:
    """The columns, of those near, whose sums are used together: panels of so many rows that fit L1, at least one. They divide
    those near if a number of at least half as many does: others leave a rest with conditions.
    """
    most = max(1, kernel.target.machine.l1.size // (4 * PANEL * rows))
    return PANEL * divisor_near(columns // PANEL, most, -(-most // 2))


class _Parts(NamedTuple):
    """How a product is divided: `columns` stay near, those of a call are `held`; `chunk` rows are a task, `rows` those of a
    call, whose terms are copied by `step`, 0 if they are not.
    """

    columns: int
    held: int
    chunk: int
    rows: int
    step: int
    is_whole: bool  # whether a task has all rows


def _parts(kernel: Kernel) -> _Parts:
    """Divides a product."""
    *batch, rows, columns = (extent_of(axis) for axis in kernel.anchor.axis)
    terms, size = extent_of(kernel.anchor.reduce_axis[0]) or 1, kernel.record.a.dtype.bits // 8
    wide = columns_near(kernel, columns, terms * size)
    tall = PANEL if rows is None else min(PANEL, rows)
    held = columns_of_call(kernel, wide, tall)
    step = _step(terms, size) if (columns or 0) >= _COPIED * PANEL and not kernel.record.transpose_a else 0
    around = (product(batch) or 1) * -(-(columns or PANEL) // wide)
    if rows is None:
        return _Parts(wide, held, tall, tall, step, False)
    if keep_cores_busy(kernel.target, around):
        return _Parts(wide, held, rows, tall, step, True)
    return _Parts(wide, held, tasks_of_tiles(kernel.target, around, -(-rows // tall)).size * tall, tall, step, False)


def _step(terms: int, size: int) -> int:
    """The terms of a step of up to 64 bytes, of which all steps have as many; 0 if there is no such number."""
    steps = -(-terms * size // STEP)
    return terms // steps if terms % steps == 0 and terms // steps * size % 4 == 0 else 0
