"""What was measured in several sittings or on several numbers of threads, together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report.table import HEADER, line, summary, worst
from benchmarks.run import Result

LONG = 1e-4  # seconds, from which a case is worth two threads


def joined(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sessions of several files of --json, one for each processor and number of threads; later results replace earlier
    ones of the same case, and the highest limits count.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for session in (session for file in files for session in file["sessions"]):
        key = session["processor"], session["threads"]
        if key not in found:
            found[key] = {**session, "results": [], "problems": {}, "limits": {}}
        known = found[key]
        known["limits"] = {name: max(rate, known["limits"].get(name, 0.0)) for name, rate in session["limits"].items()}
        fresh = {result["name"] for result in session["results"]}
        known["results"] = [result for result in known["results"] if result["name"] not in fresh] + list(session["results"])
        known["problems"] |= session["problems"]
    return [found[key] for key in sorted(found)]


def print_session(session: Mapping[str, Any]) -> None:
    """A session as a terminal shows it, the worst cases of each row first."""
    results = [Result.of_json(fields) for fields in session["results"]]
    print(f"\n{session['processor']}, {session['threads']} threads: " + ", ".join(
        f"{name} {rate / 1e9:.1f}" for name, rate in session["limits"].items()))
    print(HEADER)
    for result in sorted(results, key=lambda r: (r.row, r.ratio if r.ratio is not None else math.inf)):
        print(line(result))
    print("", *summary(results), *worst(results), sep="\n")
    for name, problem in session["problems"].items():
        print(f"{name}: {problem}")


def scaling(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """How much faster cases that multiply-adds bind are on the most threads than on one, beside what probes gain."""
    one, most = (pick(sessions, key=lambda session: session["threads"]) for pick in (min, max))
    if one["threads"] != 1 or most["threads"] == 1:
        return []
    before = {r["name"]: _seconds(r) for r in one["results"] if r["bound"] == "FMA" and _seconds(r) >= LONG}
    gains = {r["name"]: before[r["name"]] / _seconds(r) for r in most["results"] if r["name"] in before}
    if not gains:
        return []
    mean = math.exp(sum(map(math.log, gains.values())) / len(gains))
    low = min(gains, key=gains.__getitem__)
    real = most["limits"]["FMA"] / one["limits"]["FMA"]
    near = sum(gain >= 0.95 * real for gain in gains.values())
    return [f"{most['threads']} threads over 1: probes {real:.2f}, {len(gains)} cases of multiply-adds {mean:.2f}, "
            f"{near} of them at 95 % of the probes; least {gains[low]:.2f}: {low}"]


def _seconds(result: Mapping[str, Any]) -> float:
    seconds: float = result["times"][result["ours"]]["median"]
    return seconds
