"""Explanations of a schedule for its user, from the facts that lowering derives.

Lowering is a layer above schedules, so it is imported when a function here is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tedsl.display.page import folded, folded_code, fragment
from tedsl.display.text import Text
from tedsl.ir.script import shown
from tedsl.schedule.picture import picture
from tedsl.schedule.show import stage_text

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule
    from tedsl.schedule.stage import Stage


def explain(schedule: Schedule) -> Text:
    """The loops of every stage with extents, places, memory and guards, as text."""
    from tedsl.driver import report

    return Text(str(report(schedule)), f"{schedule!r}, explained")


def schedule_page(schedule: Schedule) -> str:
    """The HTML that a notebook shows for a schedule: the graph of its stages, its loops, its directives."""
    journal = schedule.journal
    return fragment(repr(schedule), picture(schedule.state),
                    folded("Loops, places, memory and guards", explain(schedule), is_open=True),
                    folded_code(journal.title, journal.commented()))


def stage_page(stage: Stage) -> str:
    """The HTML that a notebook shows for a stage: its loops, and the directives that were called on it."""
    text = stage.state.handle
    called = [one for one in stage.schedule.journal if one.stage == stage.name and one.call.startswith(f"{text}.")]
    said = "\n".join(one.commented for one in called)
    where = "" if stage.state.condition is None else f" where {shown(stage.state.condition)}"
    return fragment(f"Stage {stage.name}{where}", folded("Its place and loops", stage_text(stage.state), is_open=True),
                    folded_code(f"{len(called)} directive{'s' * (len(called) != 1)} on it", said))
