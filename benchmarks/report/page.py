"""A page of what was measured: a roofline for each number of threads, and a bar for each case."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.goals import ROWS
from benchmarks.report.picture import roofline

Session = Mapping[str, Any]
WIDEST = 4.0  # the ratio at which a bar ends
COLUMNS = "".join(f"<col style='width:{width}px'>" for width in (270, 75, 45, 240, 100, 90, 360))
STYLE = """
body { font: 13px/1.35 sans-serif; margin: 2em auto; max-width: 1180px; color: #222 }
table { border-collapse: collapse; table-layout: fixed; width: 100% } td { padding: 1px 8px 1px 0; overflow: hidden }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } td.others { color: #777; font-size: 11px }
td.bar { position: relative; padding: 1px 0 } .bar div { height: 11px }
.bar i { position: absolute; top: 0; bottom: 0; width: 1px; background: #222 }
.yes { background: #58a55c } .no { background: #d9534f } .none { background: #9aa0a6 } .noisy { opacity: .55 }
svg { max-width: 100%; height: auto } h2 { margin-top: 2em } .wrong { color: #b00020; font-weight: bold }
"""


def page(sessions: Sequence[Session]) -> str:
    """The page as one file without anything outside of it."""
    parts = ["<!doctype html><meta charset=utf-8><title>benchmarks</title>", f"<style>{STYLE}</style><h1>Benchmarks</h1>"]
    parts.append("<p>A bar is the time of the best other library over ours, on a logarithmic scale; the black line is 1, where "
                 "both take equally long. Green bars reach their goal; pale ones scattered by more than 10 %. Then the part of "
                 "the machine's limit, the goal, and the milliseconds of the others.</p>")
    for session in sessions:
        parts += _session(session)
    return "\n".join(parts)


def _session(session: Session) -> list[str]:
    threads = session["threads"]
    versions = ", ".join(f"{name} {version}" for name, version in session["versions"].items())
    parts = [f"<h2>{html.escape(session['processor'])}, {threads} thread{'s' * (threads > 1)}</h2>",
             f"<p>{html.escape(versions)}</p>", roofline(session)]
    for key, row in ROWS.items():
        cases = [result for result in session["results"] if result["row"] == key]
        if cases:
            parts += [f"<h3>{html.escape(row.title)}</h3>", f"<table>{COLUMNS}", *map(_line, cases), "</table>"]
    problems = session["problems"].items()
    return parts + [f"<p class=wrong>{html.escape(name)}: {html.escape(problem)}</p>" for name, problem in problems]


def _line(result: Mapping[str, Any]) -> str:
    times, ours = result["times"], result["ours"]
    others = ", ".join(f"{name} {1e3 * time['median']:.3g}" for name, time in times.items() if name != ours)
    share = f"{100 * result['share']:.0f} % {result['bound']}" if result["share"] is not None else ""
    ratio = result["ratio"]
    wrong = "".join(f" <span class=wrong>wrong: {html.escape(name)}</span>" for name in result["wrong"])
    return (f"<tr class={'noisy' if result['noisy'] else 'steady'}><td>{html.escape(result['name'])}{wrong}</td>"
            f"<td class=n>{1e3 * times[ours]['median']:.3g} ms</td><td class=n>{'' if ratio is None else f'{ratio:.2f}'}</td>"
            f"<td class=bar>{_bar(ratio, result['met'])}</td><td class=n>{share}</td>"
            f"<td class=n>{html.escape(result['goal'])}</td><td class=others>{html.escape(others)}</td></tr>")


def _bar(ratio: float | None, met: bool | None) -> str:
    """From 1 / WIDEST to WIDEST, logarithmic."""
    if not ratio:
        return ""
    place = min(max((math.log(ratio) / math.log(WIDEST) + 1) / 2, 0.005), 1.0)
    colour = "none" if met is None else "yes" if met else "no"
    return f"<div class={colour} style='width:{100 * place:.1f}%'></div><i style='left:50%'></i>"
