"""Sharing work among threads."""

from __future__ import annotations

from typing import Any

from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

# Elements of light work below which one thread is done before another has woken up.
SERIAL = 32 * 1024


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
