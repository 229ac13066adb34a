"""The table in a terminal: a line for each case, and the rows with their goals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.case import OURS
from benchmarks.goals import ROWS
from benchmarks.run import Result

LOW = 0.8
HEADER = f"{'case':40s} {'tedsl':>9s} {'ratio':>6s} {'limit':>12s} {'goal':>12s}     other times"


def readable(seconds: float) -> str:
    """Seconds with three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def line(result: Result) -> str:
    """A case: our time, the time of the best contender over ours, the part of the limit, the goal, and all other times."""
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
    share = result.bound and f"{'?' if result.share is None else f'{100 * result.share:.0f}'} % {result.bound}"
    met = {True: "yes", False: "NO ", None: "   "}[result.met]
    others = [f"{name} {readable(time.median)}" for name, time in result.times.items() if name != result.ours]
    compared = [time.spread for name, time in result.times.items() if name in (result.ours, result.best)]
    others += [f"~{100 * max(compared):.0f} %"] if result.noisy else []
    others += [f"WRONG {name}: {problem}" for name, problem in result.wrong.items()]
    ours = readable(result.times[result.ours].median)
    of = "" if result.ours == OURS else f"({result.ours.removeprefix(OURS).strip()}) "
    return f"{result.name:40s} {ours:>9s} {ratio:>6s} {share:>12s} {result.goal:>12s} {met} {of}{'  '.join(others)}"


def geomean(results: Sequence[Result]) -> float | None:
    """Of the ratios, each as often as its case occurs."""
    logs = [(math.log(r.ratio), r.occurs) for r in results if r.ratio is not None]
    return math.exp(sum(log * times for log, times in logs) / sum(times for _, times in logs)) if logs else None


def worst(results: Sequence[Result], count: int = 10) -> list[str]:
    """Of shapes drawn at random: the geomean, the part below 0.8, and the cases with the lowest ratio."""
    drawn = sorted((r for r in results if r.row == "random" and r.ratio is not None), key=lambda r: r.ratio or 0.0)
    if not drawn:
        return []
    below = sum((r.ratio or 0.0) < LOW for r in drawn)
    title = f"{len(drawn)} shapes: geomean {geomean(drawn):.2f}, {below} ({100 * below / len(drawn):.0f} %) below {LOW}; worst:"
    return [title, *(line(r) for r in drawn[:count])]


def summary(results: Sequence[Result]) -> list[str]:
    """The rows of the table with their geomean, their worst case, and how many cases reach their goal."""
    lines = [f"{'row':62s} {'geomean':>8s} {'worst':>6s} {'met':>8s}  worst case"]
    for key, row in ROWS.items():
        cases = [r for r in results if r.row == key]
        judged = [r for r in cases if r.met is not None]
        if not cases:
            continue
        mean, rated = geomean(cases), [r for r in cases if r.ratio is not None]
        worst = min(rated, key=lambda r: r.ratio or 0.0) if rated else None
        part = f"{sum(bool(r.met) for r in judged)}/{len(judged)}"
        goal = f" (goal {row.geomean:g}, {'met' if (mean or 0) >= row.geomean else 'NOT met'})" if row.geomean else ""
        lines.append(f"{row.title:62s} {f'{mean:.2f}' if mean else '':>8s} {f'{worst.ratio:.2f}' if worst else '':>6s} "
                     f"{part:>8s}  {worst.name if worst else ''}{goal}")
    return lines
