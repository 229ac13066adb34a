"""Draws charts: points and steps over two axes, of which each is linear or logarithmic. A chart is a whole file of SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tedsl.display.markup import Markup, element, joined
from tedsl.record import record

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 380.0, 260.0, 74.0, 30.0, 46.0, 20.0  # pixels
_MARKS = 5  # numbers on a linear axis
_COLOURS = ("#2f6db3", "#b03030", "#5f8a3a", "#8a6a3a")


@record
class Series:
    """Points (x, y) with a name. steps: a line that goes right and then up or down to each point, and no dots; line: a straight
    line from point to point.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    steps: bool = False
    line: bool = False


@record
class Chart:
    """Series over the axes x and y, with their names. log_x, log_y: logarithmic, for numbers above 0."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False


def charts_svg(charts: Sequence[Chart]) -> Markup:
    """Returns charts side by side as a file of SVG. Points that are not finite, or not above 0 on a logarithmic axis, are left
    out.
    """
    wide = LEFT + WIDTH + GAP
    drawn = [element("g", _drawn(chart), transform=f"translate({_px(at * wide)} 0)") for at, chart in enumerate(charts)]
    width, height = wide * len(charts), TOP + HEIGHT + BOTTOM
    page = element("rect", x=0, y=0, width=_px(width), height=_px(height), style="fill:#ffffff;stroke:none")
    return element("svg", page, joined(*drawn), xmlns="http://www.w3.org/2000/svg", width=_px(width), height=_px(height),
                   viewBox=f"0 0 {_px(width)} {_px(height)}", role="img", aria_label="; ".join(chart.title for chart in charts),
                   font_family="monospace", font_size=11)


@record
class _Axis:
    """low, high: the numbers at its ends; length: in pixels."""

    low: float
    high: float
    log: bool
    length: float

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.length * ((at - low) / (high - low) if high > low else 0.5)

    @property
    def marks(self) -> list[float]:
        if self.log and self.high / self.low >= 10:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0 ** power for power in range(first, last + 1)]
        return [self.low + part * (self.high - self.low) / (_MARKS - 1) for part in range(_MARKS)]


def _axis(values: Sequence[float], log: bool, length: float) -> _Axis:
    low, high = min(values, default=1.0), max(values, default=1.0)
    low = low if log else min(low, 0.0)
    return _Axis(low, high if high > low else low + 1, log, length)


def _drawn(chart: Chart) -> Markup:
    kept = [Series(one.name, tuple(p for p in one.points if _can_be_drawn(p, chart)), one.steps, one.line)
            for one in chart.series]
    x = _axis([p[0] for one in kept for p in one.points], chart.log_x, WIDTH)
    y = _axis([p[1] for one in kept for p in one.points], chart.log_y, HEIGHT)
    frame = element("rect", x=LEFT, y=TOP, width=WIDTH, height=HEIGHT, style="fill:none;stroke:#999999")
    numbers = [_text(_shown(mark), LEFT + x(mark), TOP + HEIGHT + 15, "middle") for mark in x.marks]
    numbers += [_text(_shown(mark), LEFT - 5, TOP + HEIGHT - y(mark) + 4, "end") for mark in y.marks]
    names = [_text(chart.title, LEFT, 14, "start"), _text(chart.x, LEFT + WIDTH / 2, TOP + HEIGHT + 34, "middle"),
             _text(chart.y, LEFT + 6, TOP + 14, "start")]
    names += [element("text", one.name, x=_px(LEFT + WIDTH - 6), y=_px(TOP + 14 + 14 * at), text_anchor="end",
                      style=f"fill:{_COLOURS[at % len(_COLOURS)]}") for at, one in enumerate(kept)]
    shapes = [_series(one, x, y, _COLOURS[at % len(_COLOURS)]) for at, one in enumerate(kept)]
    return joined(frame, *numbers, *names, *shapes)


def _can_be_drawn(point: tuple[float, float], chart: Chart) -> bool:
    return all(math.isfinite(v) and (v > 0 or not log) for v, log in zip(point, (chart.log_x, chart.log_y)))


def _series(one: Series, x: _Axis, y: _Axis, colour: str) -> Markup:
    places = [(LEFT + x(px), TOP + HEIGHT - y(py)) for px, py in one.points]
    if not (one.steps or one.line):
        return joined(*[element("circle", cx=_px(px), cy=_px(py), r=2.2, style=f"fill:{colour};fill-opacity:0.6;stroke:none")
                        for px, py in places])
    path: list[str] = []
    for at, (px, py) in enumerate(places):
        path += [f"H {_px(px)}"] if at and one.steps else []
        path.append(f"{'L' if at else 'M'} {_px(px)} {_px(py)}")
    return element("path", d=" ".join(path), style=f"fill:none;stroke:{colour};stroke-width:1.5") if path else Markup("")


def _text(text: str, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, x=_px(x), y=_px(y), text_anchor=anchor, style="fill:#333333")


def _shown(value: float) -> str:
    return f"{value:.3g}"


def _px(length: float) -> str:
    return f"{length:.1f}".removesuffix(".0")
