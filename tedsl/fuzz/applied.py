"""Execution of the text of a case: its tensors, and a schedule with its directives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl import te
from tedsl.errors import TedslError
from tedsl.fuzz import intrinsics
from tedsl.fuzz.case import Case
from tedsl.schedule.journal import Journal


class Changed(AssertionError):
    """Raised if a refused directive has changed the schedule, which must stay as it was."""


def declared(case: Case) -> dict[str, Any]:
    """The namespace after running the lines of a case with tedsl: name to object."""
    names: dict[str, Any] = {"te": te}
    for text in case.lines:
        exec(text, names)
    return names


def with_schedule(case: Case, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace with a fresh schedule `s` and the helpers of directives: `loop(T, 2)` is loop number 2 of tensor T,
    `replayed(s)` a fresh schedule with the journal of `s`, which becomes JSON on the way."""
    names = dict(declared)

    def fresh() -> Any:
        return te.create_schedule([names[name].op for name in case.outputs])

    def replayed(s: Any) -> Any:
        fresh_names = fresh()
        journal = s.journal
        fresh_names.replay(Journal.from_json(journal.to_json()) if portable(journal) else journal)
        if str(fresh_names) != str(s):
            raise Changed(f"the replayed schedule is another one:\n{s}\n{fresh_names}")
        return fresh_names

    names.update(s=fresh(), replayed=replayed, intrinsics=intrinsics,
                 loop=lambda tensor, number: names["s"][tensor].leaf_iter_vars[number])
    return names


def portable(journal: Journal) -> bool:
    """Whether the journal can be replayed from its text: tensorize cannot, since its intrinsic is an object of the program."""
    return not any(directive.name == "tensorize" for directive in journal)


def scheduled(case: Case, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The namespace with the schedule applied; refused directives are skipped."""
    names = with_schedule(case, declared(case) if given is None else given)
    for text in case.schedule:
        try:
            exec(text, names)
        except (TedslError, NameError, LookupError, AttributeError):  # what an earlier directive made is not there
            continue
    return names
