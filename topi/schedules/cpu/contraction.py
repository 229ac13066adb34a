"""Sums of products that are matrix products in other notation: formulas and einsums.

out[b, i, j] = sum over k of  a[b, i, k] * b[b, k, j]:  a tile of rows i times lanes j stays in registers while k runs
out[b, i, j] = sum over k of  a[b, i, k] * b[b, j, k]:  the same, from a copy of b with j innermost
"""

from __future__ import annotations

from typing import Any

from tedsl import tir
from topi.schedules.cpu.parallel import share_out, whole_tiles
from topi.schedules.cpu.tiles import tile_of
from topi.schedules.formulas import Formula, extent_of, product, variables_in
from topi.schedules.kernel import Kernel

_OFTEN = 8  # rows that use a copy before it is worth it


def rows_of_contraction(kernel: Kernel, formula: Formula) -> int | None:
    """The number of the anchor's axis that a register tile uses as rows, with the last axis as lanes; None if tiling does not
    apply.

    It applies if each load depends on at most one of the two: loads along the lanes must be the same for all rows, and at least
    one other load the same for all lanes. Loads along the lanes must be contiguous, or readable from a packed copy.
    """
    *outer, last = [axis.var for axis in kernel.anchor.axis] or [None]
    if not outer or last in formula.entangled or len(formula.loads) < 2:
        return None
    inside = [(load, set().union(*map(variables_in, load.indices))) for load in formula.loads]
    along = [used for load, used in inside if last in used]
    if not along or len(along) == len(inside):
        return None
    row = next((at for at in reversed(range(len(outer))) if not any(outer[at] in used for used in along)), None)
    turned = turned_loads(kernel, formula)
    if row is None or (turned and (extent_of(kernel.anchor.axis[row]) or _OFTEN) < _OFTEN):
        return None
    return row if all(_can_be_copied(kernel, formula, load) for load in turned) else None


def turned_loads(kernel: Kernel, formula: Formula) -> list[Any]:
    """The loads that are not contiguous along the last axis of the anchor."""
    last = kernel.anchor.axis[-1].var
    return [load for load in formula.loads if last in load.indices[:-1] or
            (load.indices and load.indices[-1] is not last and last in variables_in(load.indices[-1]))]


def _can_be_copied(kernel: Kernel, formula: Formula, load: Any) -> bool:
    """Whether the load can read from a packed copy: its indices are distinct axes and no other load reads that tensor."""
    return load.producer in kernel.anchor.input_tensors and len(set(load.indices)) == len(load.indices) and \
        all(isinstance(index, tir.Var) for index in load.indices) and len(formula.reads_of(load.producer.op)) == 1


def schedule_contraction(kernel: Kernel, formula: Formula, row: int) -> None:
    """Tile the axis number `row` and the last axis; the sums of a tile stay in registers."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    work = product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])
    rows, columns = extent_of(kernel.anchor.axis[row]), extent_of(kernel.anchor.axis[-1])
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    tall, wide = tile_of(rows, columns, terms, kernel.lanes(kernel.anchor), kernel.target)
    copies = [_copy(kernel, load) for load in turned_loads(kernel, formula)]
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    *others, j = tail.op.axis
    i = others.pop(row)
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    tail.reorder(*others, jo, io, ii, ji)
    tail.unroll(ii)
    tail.vectorize(ji)
    shared = whole_tiles(kernel, others, jo, wide)
    place = share_out(tail, shared, work)
    place = place if shared and shared[-1] is jo else jo
    stage = s[sums]
    stage.compute_at(tail, io)
    *rest, j = stage.op.axis
    i = rest.pop(row)
    stage.reorder(*rest, *stage.op.reduce_axis, i, j)
    stage.unroll(i)
    stage.vectorize(j)
    for copy in copies:
        s[copy].compute_at(tail, place)
        s[copy].vectorize(s[copy].leaf_iter_vars[-1])


def _copy(kernel: Kernel, load: Any) -> Any:
    """Packs the elements that a tile reads by `load`, with the last axis of the anchor innermost."""
    copy = kernel.schedule.cache_read(load.producer, "global", [kernel.anchor])
    at = load.indices.index(kernel.anchor.axis[-1].var)
    kernel.schedule[copy].transform_layout(lambda *i: [*i[:at], *i[at + 1:], i[at]])
    return copy


def tiles_fit(kernel: Kernel) -> bool:
    """Whether the tail of the kernel has the axes of its reduction, and the reduction has one output."""
    axes, ends = kernel.anchor.axis, kernel.tail.axis
    return kernel.anchor.num_outputs == 1 and len(axes) == len(ends) and all(
        extent_of(a) == extent_of(b) for a, b in zip(axes, ends))
