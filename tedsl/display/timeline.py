"""Draws what happens when: rows of bars over an axis of time."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.display.markup import Markup, element, joined
from tedsl.record import record

CHAR, ROW, PAD, WIDTH = 7.3, 26, 9, 900  # pixels, for 12 pixel monospace
MOST_BARS = 600


@record
class Bar:
    """Something in `row` from `begin` to `end`, in seconds or any unit; label: shown where there is room; kind: its style."""

    row: str
    begin: float
    end: float
    label: str = ""
    kind: str = "plain"


def timeline_of(bars: Sequence[Bar], title: str) -> Markup:
    """Returns the picture: rows in the order of their first bars. Of more than 600 bars the first are shown."""
    shown = sorted(bars, key=lambda bar: bar.begin)[:MOST_BARS]
    rows = {name: at for at, name in enumerate(dict.fromkeys([bar.row for bar in shown]))}
    begin, end = min((bar.begin for bar in shown), default=0.0), max((bar.end for bar in shown), default=1.0)
    left = CHAR * max(map(len, rows), default=0) + 2 * PAD
    scale = (WIDTH - left - PAD) / max(end - begin, 1e-30)
    height = ROW * (len(rows) + 1) + PAD
    drawn = [element("text", name, x=PAD, y=ROW * at + 18) for name, at in rows.items()]
    drawn += [_bar(bar, left + (bar.begin - begin) * scale, ROW * rows[bar.row] + 4, (bar.end - bar.begin) * scale)
              for bar in shown]
    drawn += [element("text", f"{begin + (end - begin) * part / 4:.4g}", x=round(left + (WIDTH - left - 5 * CHAR) * part / 4),
                      y=ROW * len(rows) + 18) for part in range(5)]
    if len(bars) > len(shown):
        height += ROW
        drawn.append(element("text", f"... and {len(bars) - len(shown)} more", x=PAD, y=height - PAD))
    return element("svg", element("title", title), joined(*drawn), xmlns="http://www.w3.org/2000/svg", role="img",
                   class_="tedsl-timeline", viewBox=f"0 0 {WIDTH} {height}", width=WIDTH, height=height)


def _bar(bar: Bar, x: float, y: float, width: float) -> Markup:
    box = element("rect", x=round(x, 2), y=y, width=round(max(width, 0.5), 2), height=ROW - 6, rx=2)
    fits = bar.label and width >= CHAR * len(bar.label)
    label = element("text", bar.label, x=round(x + width / 2 - CHAR * len(bar.label) / 2, 2), y=y + 14) if fits else ""
    told = element("title", f"{bar.row} {bar.label}: {bar.begin:.6g} to {bar.end:.6g}")
    return element("g", told, box, Markup(label), class_=f"node {bar.kind}")
