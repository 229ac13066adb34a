"""What `why_slow` returns: the causes, those that lose most first, and a row for each stage."""

from __future__ import annotations

from textwrap import wrap

from tedsl.bottlenecks.causes import Cause
from tedsl.bottlenecks.stages import LEVELS, Stage
from tedsl.record import record

_LEAST = 0.1  # the part of the time that a cause loses, below which it is not told
_MUCH = 0.5  # of the limit, below which a kernel has not been explained
_WIDTH = 108  # columns


@record(eq=False)
class Report:
    """Why a kernel takes the time that it takes. seconds: of a call; causes: those that lose most first; stages: in order;
    share: the part of the limit of the machine that it reaches; threads: how many it may use.
    """

    name: str
    seconds: float
    causes: tuple[Cause, ...]
    stages: tuple[Stage, ...]
    threads: int

    @property
    def share(self) -> float:
        return min(1.0, sum(stage.least for stage in self.stages) / self.seconds) if self.seconds else 1.0

    @property
    def told(self) -> tuple[Cause, ...]:
        """The causes that lose at least a tenth of the time."""
        return tuple(cause for cause in self.causes if cause.seconds >= _LEAST * self.seconds)

    def _first(self) -> str:
        unknown = "" if self.share >= _MUCH else ", and no rule knows what loses the rest"
        return f"nothing stands out: {self.name} reaches {100 * self.share:.0f} % of the limit of the machine{unknown}"

    def _said(self, cause: Cause) -> str:
        return f"{cause.stage}: {cause.text} (about {min(99, 100 * cause.seconds / self.seconds):.0f} % of the time)"

    def _rows(self) -> list[tuple[str, ...]]:
        head = ("stage", "µs", "%", "MFLOP", *[f"MB {level}" for level in LEVELS], "% limit", "lanes", "gather", "scatter",
                "spill", "guard", "% busy")
        return [head, *[self._row(stage) for stage in self.stages]]

    def _row(self, stage: Stage) -> tuple[str, ...]:
        code = stage.code
        counts = ("?",) * 3 if code is None else (str(code.gathers), str(code.scatters), str(code.spills))
        time = f"{stage.seconds * 1e6:.{0 if stage.seconds > 0.01 else 1}f}"
        return (stage.name, time, f"{100 * stage.seconds / self.seconds if self.seconds else 0:.0f}",
                _millions(stage.operations), *[_millions(stage.traffic[level]) for level in LEVELS],
                f"{100 * stage.share:.0f}", "?" if stage.lanes is None else f"{stage.lanes}/{stage.wanted_lanes}", *counts,
                str(stage.guards), "" if stage.busy is None else f"{100 * stage.busy:.0f}")

    def __str__(self) -> str:
        lines: list[str] = []
        for cause in self.told:
            lines += wrap(self._said(cause), _WIDTH, subsequent_indent="  ")
            lines += wrap(f"try: {cause.remedy}", _WIDTH, initial_indent="  ", subsequent_indent="  ")
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows)]
        table = ["  ".join([row[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]]).rstrip()
                 for row in rows]
        whole = (f"{self.name}: {self.seconds * 1e6:.1f} µs a call with {self.threads} threads; "
                 f"{100 * self.share:.0f} % of the limit")
        return "\n".join([*(lines or [self._first()]), "", *table, whole])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tedsl.display.markup import element, joined
        from tedsl.display.page import fragment

        said = [element("li", self._said(cause), element("br"), element("span", f"try: {cause.remedy}", class_="dim"))
                for cause in self.told] or [element("li", self._first())]
        head, *rows = self._rows()
        table = element("table", element("tr", *[element("th", cell) for cell in head]),
                        *[element("tr", *[element("td", cell) for cell in row]) for row in rows])
        return fragment(f"{self.name}: {self.seconds * 1e6:.1f} µs", joined(element("ol", *said), table))


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f}" if count < 1e8 else f"{count / 1e6:.0f}"
