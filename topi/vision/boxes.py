"""Boxes as four numbers, two opposite corners, and how much two of them overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.record import record


@record
class Box:
    """The sides of a box."""

    left: Any
    top: Any
    right: Any
    bottom: Any


def box_of(ib: Any, corners: Sequence[Any]) -> Box:
    """The box with two opposite corners (x, y, x, y)."""
    x0, y0, x1, y1 = [ib.let("corner", value) for value in corners]
    return Box(te.min(x0, x1), te.min(y0, y1), te.max(x0, x1), te.max(y0, y1))


def overlap(ib: Any, a: Box, b: Box, pixel: float = 0.0) -> Any:
    """The area that two boxes share over the area that they cover together, 0 where that is not above 0.

    pixel: 1.0 where both corners of a box are pixels that belong to it, 0.0 where they are points.
    """
    zero, one = te.const(0, a.left.dtype), te.const(pixel, a.left.dtype)
    width = te.max(zero, te.min(a.right, b.right) - te.max(a.left, b.left) + one)
    height = te.max(zero, te.min(a.bottom, b.bottom) - te.max(a.top, b.top) + one)
    shared = ib.let("shared", width * height)
    covered = ib.let("covered", _area(a, one) + _area(b, one) - shared)
    return te.if_then_else(covered <= zero, zero, shared / covered)


def _area(box: Box, one: Any) -> Any:
    return (box.right - box.left + one) * (box.bottom - box.top + one)
