"""Weights of the next panel, asked for while tiles use those of this one."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.conv.operands import weights_of
from topi.schedules.formulas import constant, product
from topi.schedules.kernel import Kernel

_STAY = 2  # parts of the second cache, of which one holds weights that stay there beside images


def come_from_afar(kernel: Kernel) -> bool:
    """Whether each call reads the weights, which are stored by panels, from beyond the second cache."""
    weights = weights_of(kernel)
    size = product([constant(extent) for extent in weights.shape])
    return isinstance(weights.op, te.PlaceholderOp) and size is not None \
        and size * weights.dtype.bytes > kernel.target.machine.l2.size // _STAY


def ask_for_next(kernel: Kernel, tail: Any, panels: Any) -> None:
    """Prefetch at `panels`, the loop over panels, what its next iteration reads of weights that come from afar, bit by bit:
    the first tile of a panel would wait for all of it, while memory rests beside the others.
    """
    if come_from_afar(kernel):
        tail.prefetch(weights_of(kernel), panels, 1, spread=True)
