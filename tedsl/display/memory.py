"""Draws memory over time: a box for each block, steps to the right and offsets upwards, and what is in use at each step."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.display.markup import Markup, element, joined
from tedsl.record import record

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760.0, 320.0, 70.0, 14.0, 34.0  # pixels


@record
class Box:
    """Memory of `size` bytes at `offset`, in use from step `begin` to step `end`."""

    begin: int
    end: int
    offset: int
    size: int
    title: str


def memory_svg(boxes: Sequence[Box], in_use: Sequence[int], total: int, steps: Sequence[str]) -> Markup:
    """Returns the picture. total: the bytes of the whole memory; in_use: at each step, a line; steps: their names."""
    column, scale = WIDTH / max(len(steps), 1), HEIGHT / max(total, 1)

    def y(offset: float) -> float:
        return TOP + HEIGHT - offset * scale

    drawn = [element("g", _rect(box, column, y(box.offset + box.size), scale), element("title", box.title)) for box in boxes]
    points = [f"{_px(LEFT + (at + side) * column)},{_px(y(size))}" for at, size in enumerate(in_use) for side in (0, 1)]
    line = element("path", d=f"M {' L '.join(points)}", fill="none", stroke="#b03030") if points else None
    marks = [element("text", f"{part * total / 4e6:.2f} MB", x=_px(LEFT - 6), y=_px(y(part * total / 4) + 4), text_anchor="end",
                     font_size=11) for part in range(5)]
    ends = [element("text", f"step {at}: {steps[at]}", x=_px(x), y=_px(TOP + HEIGHT + 20), text_anchor=anchor, font_size=11)
            for at, x, anchor in ((0, LEFT, "start"), (len(steps) - 1, LEFT + WIDTH, "end"))] if steps else []
    width, height = LEFT + WIDTH + 10, TOP + HEIGHT + BOTTOM
    return element("svg", joined(*drawn, line, *marks, *ends), xmlns="http://www.w3.org/2000/svg", width=_px(width),
                   height=_px(height), viewBox=f"0 0 {_px(width)} {_px(height)}", role="img", aria_label="Memory over time")


def _rect(box: Box, column: float, top: float, scale: float) -> Markup:
    return element("rect", x=_px(LEFT + box.begin * column), y=_px(top), width=_px((box.end - box.begin + 1) * column),
                   height=_px(box.size * scale), fill="#dbe7f5", stroke="#5b7ea8")


def _px(length: float) -> str:
    return f"{length:.1f}".removesuffix(".0")
