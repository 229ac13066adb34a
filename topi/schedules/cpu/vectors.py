"""Vectors of a loop: how long, and how many in a step."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.formulas import CALL_COST, Formula
from topi.schedules.kernel import Kernel

_TOGETHER = 4  # vectors of functions that a step of a loop computes
_TWO = 2  # vectors from which on several in a step pay: of 50 elements 6 to 18 %, of 246 20 to 30 %


def vectorize(stage: te.Stage, loop: Any, extent: int | None, lanes: int) -> None:
    """Run `loop`, of `extent` iterations, in vectors of `lanes` elements."""
    if extent == 1 or lanes == 1:
        return
    if extent is not None and extent <= lanes:
        stage.vectorize(loop)
        return
    _, lane = stage.split(loop, factor=lanes)
    stage.vectorize(lane)


def vectorize_panel(stage: te.Stage, loop: Any, extent: int, lanes: int) -> None:
    """Run a loop over the few columns of a panel in vectors of `lanes` elements, written one after the other."""
    if extent <= lanes:
        return stage.vectorize(loop)
    outer, lane = stage.split(loop, factor=lanes)
    stage.unroll(outer)
    stage.vectorize(lane)


def vectors_together(kernel: Kernel, formula: Formula, extent: int | None, lanes: int) -> int:
    """How many vectors each step of a loop computes, so that their chains of operations run beside each other.

    Functions are chains of some fifteen operations that wait for each other, and a core looks ahead no further than two of
    them.
    """
    few = extent is None or extent < _TWO * lanes
    return 1 if few or formula.cost < CALL_COST or kernel.target.vector_bits < 256 else _TOGETHER
