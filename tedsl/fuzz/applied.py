"""The text of a case run as a program: its tensors, and a schedule with its directives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl import te
from tedsl.errors import TedslError
from tedsl.fuzz import intrinsics
from tedsl.fuzz.case import Case
from tedsl.schedule.journal import Journal


class Changed(AssertionError):
    """A directive was refused, and the schedule is not what it was before."""


def declared(case: Case) -> dict[str, Any]:
    """The names that the lines of a case define, as tedsl's objects."""
    names: dict[str, Any] = {"te": te}
    for text in case.lines:
        exec(text, names)
    return names


def with_schedule(case: Case, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The names with a fresh schedule `s`, and what directives use besides: `loop(T, 2)` is loop number 2 of tensor T,
    `replayed(s)` a fresh schedule with the journal of `s`, which becomes JSON on the way."""
    names = dict(declared)

    def fresh() -> Any:
        return te.create_schedule([names[name].op for name in case.outputs])

    def replayed(s: Any) -> Any:
        made = fresh()
        journal = s.journal
        made.replay(Journal.from_json(journal.to_json()) if portable(journal) else journal)
        if str(made) != str(s):
            raise Changed(f"the replayed schedule is another one:\n{s}\n{made}")
        return made

    names.update(s=fresh(), replayed=replayed, intrinsics=intrinsics,
                 loop=lambda tensor, number: names["s"][tensor].leaf_iter_vars[number])
    return names


def portable(journal: Journal) -> bool:
    """Whether its texts say it all: an intrinsic is an object of the program."""
    return not any(directive.name == "tensorize" for directive in journal)


def scheduled(case: Case, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The names with the schedule applied; directives that are refused are left out."""
    names = with_schedule(case, declared(case) if given is None else given)
    for text in case.schedule:
        try:
            exec(text, names)
        except (TedslError, NameError, LookupError, AttributeError):  # what an earlier directive made is not there
            continue
    return names
