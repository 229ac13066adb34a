"""The roofline of a session as SVG: how fast cases are beside what multiply-adds and each level of memory allow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.goals import ROWS

Session = Mapping[str, Any]
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22")
LEVELS = {"read L1": "-", "read L2": "--", "read L3": "-.", "read memory": ":"}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "font.size": 9, "font.family": "sans-serif"}


def points(session: Session) -> list[tuple[str, float, float]]:
    """(row, operations per byte, operations per second) of the cases that have both, with the arrays moved once; without
    shapes that are drawn.
    """
    return [(result["row"], result["intensity"], result["operations"] / result["times"][result["ours"]]["median"])
            for result in session["results"] if result["intensity"] and result["row"] != "random"]


def roofline(session: Session) -> str:
    """The picture as SVG text, without the declaration of XML."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7.2, 4.4))
        found = points(session)
        low = min([0.5, *(x for _, x, _ in found)]) / 1.5
        high = max([256.0, *(x for _, x, _ in found)]) * 1.5
        _roofs(axes, session["limits"], low, high)
        _dots(axes, found)
        axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="operations per byte of arguments and result",
                 ylabel="GFLOP/s", title=f"{session['processor']}, {session['threads']} thread{'s' * (session['threads'] > 1)}")
        axes.set_ylim(top=session["limits"]["FMA"] / 1e9 * 1.6)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    svg = text.getvalue()
    return svg[svg.index("<svg"):]


def _roofs(axes: Any, limits: Mapping[str, float], low: float, high: float) -> None:
    """The limit of multiply-adds, and below it a line for the bandwidth of each level of memory."""
    peak = limits["FMA"] / 1e9
    axes.plot([low, high], [peak, peak], color="black", lw=1.2)
    axes.annotate(f"multiply-adds: {peak:.0f} GFLOP/s", (low * 1.1, peak * 1.06), fontsize=7)
    for name, style in LEVELS.items():
        if name in limits:
            rate = limits[name] / 1e9
            ridge = peak / rate
            axes.plot([low, max(ridge, low)], [min(low * rate, peak), peak], style, color="black", lw=0.9,
                      label=f"{name}: {rate:.0f} GB/s")


def _dots(axes: Any, found: Sequence[tuple[str, float, float]]) -> None:
    rows = [row for row in ROWS if any(row == name for name, _, _ in found)]
    for at, row in enumerate(rows):
        xs, ys = zip(*((x, y / 1e9) for name, x, y in found if name == row))
        axes.scatter(xs, ys, s=14, color=COLOURS[at % len(COLOURS)], label=row, zorder=3, alpha=0.8)
