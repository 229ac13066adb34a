"""The schedule of `topi.schedules` as a sketch: the factors of its splits are decisions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tedsl.auto_scheduler.sketch.choices import Choices
from tedsl.errors import ArgumentError, TedslError
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.advice import advised_by
from tedsl.target.target import Target
from topi import schedules

_FACTOR = re.compile(r"\bfactor=(\d+)\)$")


def default_schedule(outs: Sequence[Tensor], target: Target) -> Schedule:
    """The schedule that topi chooses by its rules; that of the formulas where it has none."""
    try:
        with advised_by(), target:
            return schedules.schedule(list(outs), target)
    except TedslError:
        return create_schedule([out.op for out in outs])


class Default:
    """Schedules like the default one.

    lines: its journal as data, empty where that holds objects of this process.
    """

    def __init__(self, outs: Sequence[Tensor], target: Target) -> None:
        self.outs, self.schedule = outs, default_schedule(outs, target)
        try:
            self.data = json.loads(self.schedule.journal.to_json())
        except ArgumentError:
            self.data = {"directives": []}

    def changed(self, choices: Choices) -> Schedule:
        """The schedule with factors by `choices`. Raises TedslError where a directive refuses one."""
        lines = []
        for number, directive in enumerate(self.data["directives"]):
            found = _FACTOR.search(directive["text"]) if directive["directive"] == "split" else None
            if found is not None:
                factor = int(found[1])
                chosen = choices.one(f"split{number} factor", _near(factor))
                directive = directive | {"text": directive["text"][:found.start(1)] + f"{chosen})"}
            lines.append(directive)
        sch = create_schedule([out.op for out in self.outs])
        if lines:
            sch.replay(Journal.from_json(json.dumps(self.data | {"directives": lines})))
        return sch


def _near(factor: int) -> list[int]:
    """Factors of about that size."""
    parts = (1, 2, 3, 5, 6, 8, 12, 16)
    return sorted({factor, max(1, factor - 1), factor + 1, *(max(1, factor * part // 4) for part in parts)})
