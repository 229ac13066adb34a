"""Which decisions distinguish the best trials from the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tedsl.record import record
from tedsl.tuning.trial import Trial

BEST = 10  # trials that are compared with the rest
_LEAST = 0.2  # by how much the shares of a value differ, at least


@record
class Difference:
    """A value of a decision that is more, or less, frequent among the best. best, rest: its shares there, from 0 to 1."""

    decision: str
    value: str
    best: float
    rest: float


@record
class Explanation:
    """What distinguishes the best trials. differences: the largest first. count: how many are the best; of: of how many."""

    differences: tuple[Difference, ...]
    count: int
    of: int

    def __str__(self) -> str:
        if not self.of:
            return "no decision is known to matter: nothing but the default schedule has a time"
        if not self.differences:
            return f"no decision distinguishes the best {self.count} of {self.of} trials from the rest"
        rows = [(f"{one.decision} = {one.value}", f"{100 * one.best:.0f} %", f"{100 * one.rest:.0f} %")
                for one in self.differences]
        head = ("decision", f"best {self.count}", f"other {self.of - self.count}")
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        return "\n".join("  ".join([row[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]])
                         for row in [head, *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tedsl.display.markup import element
        from tedsl.display.page import fragment

        rows = [element("tr", element("td", f"{one.decision} = {one.value}"), element("td", f"{100 * one.best:.0f} %"),
                        element("td", f"{100 * one.rest:.0f} %")) for one in self.differences]
        head = element("tr", *[element("th", text) for text in ("decision", f"best {self.count}",
                                                               f"other {self.of - self.count}")])
        return fragment(f"The best {self.count} of {self.of} trials", element("table", head, *rows))


def explained(trials: Sequence[Trial]) -> Explanation:
    """Compares the best trials, at most a third of all with a time and with decisions, with the others."""
    timed = [trial for trial in trials if trial.outcome.failure is None and trial.choices]
    ranked = sorted(timed, key=lambda trial: trial.cost)
    count = min(BEST, max(1, len(ranked) // 3))
    best, rest = ranked[:count], ranked[count:]
    if not rest:
        return Explanation((), len(best), len(ranked))
    found = []
    for decision in dict.fromkeys(name for trial in ranked for name in trial.choices):
        inside = Counter(trial.choices.get(decision, "") for trial in best)
        outside = Counter(trial.choices.get(decision, "") for trial in rest)
        told = {value: (inside[value] / len(best), outside[value] / len(rest)) for value in (*inside, *outside)}
        value = max(told, key=lambda value: (abs(told[value][0] - told[value][1]), told[value][0], value))
        shares = told[value]
        if abs(shares[0] - shares[1]) >= _LEAST:
            found.append(Difference(decision, value, *shares))
    found.sort(key=lambda one: -abs(one.best - one.rest))
    return Explanation(tuple(found), len(best), len(ranked))
