"""The counts and findings of a run of the fuzzer."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass, field
from typing import Any

from tedsl.fuzz.case import Case
from tedsl.fuzz.directives.table import DIRECTIVES
from tedsl.fuzz.scheduler import Scheduler

Counts = collections.Counter[Any]
SHARES = ("attached", "not dividing", "symbolic", "bound")  # of the accepted programs


@dataclass
class Finding:
    """A failing sequence: its number, the kind and details of the failure, and its script."""

    seed: int
    kind: str
    detail: str
    script: str = ""


@dataclass
class Report:
    """Counts of sequences, of directives and pairs of directives in accepted ones, and the findings."""

    counts: Counts = field(default_factory=collections.Counter)
    directives: Counts = field(default_factory=collections.Counter)  # in accepted programs, each once
    pairs: Counts = field(default_factory=collections.Counter)  # (a, b): b some time after a
    refused: Counts = field(default_factory=collections.Counter)  # directives that the schedule refused
    doubted: Counts = field(default_factory=collections.Counter)  # directives that lowering refused and that were taken back
    refusals: Counts = field(default_factory=collections.Counter)  # what lowering said
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Report) -> None:
        for name in ("counts", "directives", "pairs", "refused", "doubted", "refusals"):
            getattr(self, name).update(getattr(other, name))
        self.findings.extend(other.findings)

    def drawn(self, case: Case, scheduler: Scheduler) -> None:
        """Count a drawn sequence."""
        self.counts["directives"] += len(case.schedule) + len(scheduler.refused)
        self.counts["directives refused"] += len(scheduler.refused)
        self.refused.update(scheduler.refused)
        self.doubted.update(scheduler.doubted)

    def outcome(self, seed: int, case: Case, outcome: tuple[str, str] | None) -> None:
        """Count the outcome of a checked sequence, and keep a finding."""
        if outcome is None:
            self.counts["accepted"] += 1
            for name in SHARES:
                self.counts[name] += case.counts.get(name, 0)
            self.directives.update(set(case.kinds))
            self.pairs.update({(a, b) for at, a in enumerate(case.kinds) for b in case.kinds[at + 1:]})
        elif outcome[0] == "refused":
            self.counts["refused by lower"] += 1
            self.refusals[_reason(outcome[1])] += 1
        else:
            self.findings.append(Finding(seed, outcome[0], outcome[1], case.script()))

    # --- as text ---

    def text(self, every: bool = True) -> str:
        """The counts as text. every: also of each directive."""
        total, accepted, tried = (max(self.counts[name], 1) for name in ("sequences", "accepted", "directives"))
        lines = [f"{self.counts['sequences']} sequences, {len(self.findings)} findings",
                 f"  accepted {self.counts['accepted']} ({100 * accepted / total:.0f} %), "
                 f"refused by lower {self.counts['refused by lower']} ({100 * self.counts['refused by lower'] / total:.1f} %)",
                 f"  {self.counts['directives']} directives, refused {100 * self.counts['directives refused'] / tried:.1f} %",
                 "  of the accepted: " + ", ".join(f"{name} {self.counts[name]} ({100 * self.counts[name] / accepted:.0f} %)"
                                                for name in SHARES)]
        if every:
            lines += [f"  {name:22} in {self.directives[name]} programs, refused {self.refused[name]} times, "
                      f"by lowering {self.doubted[name]}"
                      for name in sorted({*names(), *self.directives})]
        lines += [f"  {self._pairs()}"]
        lines += [f"  lowering refused {n} times: {reason}" for reason, n in self.refusals.most_common(12)]
        return "\n".join(lines)

    def _pairs(self) -> str:
        wanted = [(a, b) for a in names() for b in names()]
        rarest = sorted(wanted, key=lambda pair: self.pairs[pair])[:5]
        below = sum(self.pairs[pair] < 100 for pair in wanted)
        return (f"{len(wanted)} ordered pairs of directives, {below} of them below 100 times; the rarest: "
                + ", ".join(f"{a} before {b} {self.pairs[a, b]} times" for a, b in rarest))

    def found(self) -> str:
        """The findings as text, grouped by kind."""
        kinds: dict[str, list[Finding]] = {}
        for finding in self.findings:
            kinds.setdefault(finding.kind, []).append(finding)
        return "\n".join(f"{len(group)} x {kind}: {[f.seed for f in group][:12]}\n  {group[0].detail[:600]}"
                         for kind, group in kinds.items())


def names() -> list[str]:
    """The directives, as they are counted."""
    return [propose.__name__ for propose in DIRECTIVES]


def _reason(words: str) -> str:
    """The first line without its names and numbers."""
    return re.sub(r"\b\w*[\d.]\w*\b(\.\w+)*", "_", words.splitlines()[0])[:110]
