"""Panels of the second matrix of a product: columns as many as a tile has, term after term, as the tile reads them."""

from __future__ import annotations

from typing import Any

from topi.kinds import PanelsOp
from topi.schedules.cpu.parallel import SHARES, chunk_length, share_out
from topi.schedules.cpu.tiles import registers
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_BESIDE = 4  # panels that are packed together at most: pieces of 4 lines where a panel is as wide as a line
_TURNED = 16  # terms whose columns are turned in registers together
_FEW = 32, 12  # rows that use each element of the second matrix too seldom for a copy to pay: where it fits L2, and where not


def as_panels(kernel: Kernel, tensor: Any) -> PanelsOp | None:
    """What says how a tensor lies in panels that are read through it; None for others, and for one that is a result itself."""
    packed = getattr(tensor.op, "info", None)
    return packed if isinstance(packed, PanelsOp) and tensor.op not in kernel.schedule.outputs else None


def given_panels(kernel: Kernel) -> int | None:
    """The columns of the panels in which the second matrix lies; None if it lies otherwise, or they are no whole vectors."""
    packed = as_panels(kernel, kernel.record.b)
    wide = packed.wide if packed is not None and packed.group == 1 and kernel.record.transpose_b else 0
    lanes = kernel.lanes(kernel.anchor)
    return wide if wide and wide % lanes == 0 and wide // lanes < registers(kernel.target) // 2 else None


def copy_of_columns(kernel: Kernel) -> Any:
    """Pack the columns of the second matrix that a tile uses, row after row; None where packing does not pay, or was done."""
    record = kernel.record
    if given_panels(kernel) is not None:
        return None
    count = product([extent_of(kernel.anchor.axis[-1]), extent_of(kernel.anchor.reduce_axis[0])])
    rows, size = extent_of(kernel.anchor.axis[-2]), None if count is None else count * record.b.dtype.bits // 8
    machine = kernel.target.machine
    few = rows is not None and rows < _FEW[size is not None and size > machine.l2.size]
    near = size is not None and size <= machine.l1.size // 2
    if not record.transpose_b and (few or near):
        return None
    s = kernel.schedule
    copy = s.cache_read(record.b, "global", [kernel.anchor], wide_dtype(kernel, record.b))
    if record.transpose_b:
        s[copy].transform_layout(lambda *at: [*at[:-2], at[-1], at[-2]])
    return copy


def wide_dtype(kernel: Kernel, operand: Any) -> str | None:
    """The dtype of a copy of an operand of 16-bit floats: that of the sums, to which each tile would cast its elements again.
    None for others.
    """
    total = kernel.anchor.output(0).dtype
    return str(total) if operand.dtype.is_float and operand.dtype.bits == 16 and total == "float32" else None


def panels_beside(kernel: Kernel, wide: int, part: int, most: int = _BESIDE, are_shared: bool = True) -> int:
    """The panels, at most so many, that are taken together: packed, so that a row of the second matrix is read in pieces of
    several lines; or multiplied with a tile of rows before the next one.

    They divide the panels of a row, fill at most one of `part` parts of L2, and leave tasks enough for all cores, if the cores
    share panels.
    """
    columns, terms = extent_of(kernel.anchor.axis[-1]), extent_of(kernel.anchor.reduce_axis[0])
    if columns is None or terms is None or columns % wide:
        return 1
    machine, panels = kernel.target.machine, columns // wide
    batch = product([extent_of(axis) for axis in kernel.tail.axis[:-2]]) or 1
    most = min(most, machine.l2.size // part // _bytes(kernel, wide, terms))
    if are_shared:
        most = min(most, batch * panels // (SHARES * machine.cores))
    return next((count for count in range(int(most), 1, -1) if panels % count == 0), 1)


def stays(kernel: Kernel, wide: int) -> bool:
    """Whether a panel stays in the nearest cache beside the rows that it is multiplied with: it serves all rows then before the
    next one. Of others each tile of rows, which comes from further away, is multiplied with several.
    """
    terms = extent_of(kernel.anchor.reduce_axis[0])
    return terms is None or 2 * _bytes(kernel, wide, terms) <= kernel.target.machine.l1.size


def _bytes(kernel: Kernel, wide: int, terms: int) -> int:
    operand = kernel.record.b
    element: int = (kernel.anchor.output(0) if wide_dtype(kernel, operand) else operand).dtype.bytes
    return max(1, element * wide * terms)


def lay_out(copy: Any, wide: int) -> Any:
    """Lay out a copy of columns in panels of `wide`, whose rows follow each other; returns its loops, the last three over the
    panels, their rows and the columns of one.
    """
    copy.transform_layout(lambda *at: [*at[:-2], at[-1] // wide, at[-2], at[-1] % wide])
    return copy.leaf_iter_vars


def pack(panel: Any, wide: int, beside: int) -> None:
    """Order the loops of a copy of so many panels: row after row of the second matrix, across the panels."""
    if beside > 1:
        *batch, one, k, lane = lay_out(panel, wide)
        panel.reorder(*batch, k, one, lane)
        panel.unroll(one)
    panel.vectorize(panel.leaf_iter_vars[-1])


def pack_before(kernel: Kernel, panel: Any, wide: int) -> None:
    """Copy all panels before the tiles, in parallel: some rows of the second matrix after the other, across the panels; of one
    that is stored transposed some terms of a panel, whose columns are turned in registers.
    """
    *batch, one, k, lane = lay_out(panel, wide)
    turned, terms = kernel.record.transpose_b, extent_of(kernel.anchor.reduce_axis[0]) or 1
    around = product([extent_of(axis) for axis in (*batch, *([one] if turned else []))]) or 1
    longest = -(-terms * around // (SHARES * kernel.target.machine.cores))
    chunk, k = panel.split(k, factor=chunk_length(kernel.target, terms, longest, _TURNED if turned else 1, around))
    shared = [*batch, one, chunk] if turned else [*batch, chunk]
    panel.reorder(*shared, k, *([] if turned else [one]), lane)
    if not turned:
        panel.unroll(one)
    panel.vectorize(lane)
    share_out(panel, shared, None)
