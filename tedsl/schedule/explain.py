"""A schedule explains itself: what lowering finds out about it, asked for where a user holds it.

Lowering stands above schedules, so it is imported when the question is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule


def explain(schedule: Schedule) -> str:
    """The loops of every stage with extents, places, memory and guards, as text."""
    from tedsl.driver import report

    return str(report(schedule))
