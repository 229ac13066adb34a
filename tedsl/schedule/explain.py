"""A schedule explains itself: what lowering finds out about it, asked for where a user holds it.

Lowering stands above schedules, so it is imported when the question is asked; what draws pages, because few programs do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule


def explain(schedule: Schedule) -> str:
    """The loops of every stage with extents, places, memory and guards, as text."""
    from tedsl.driver import report

    return str(report(schedule))


def notebook(schedule: Schedule) -> str:
    """What a notebook shows for a schedule: the graph of its stages, its loops, its directives."""
    from tedsl.display.page import folded, fragment
    from tedsl.schedule.picture import picture

    directives = schedule.journal
    said = "\n".join(directive.origin for directive in directives)
    return fragment(repr(schedule), picture(schedule.state), folded("Loops, places, memory and guards", explain(schedule),
                                                                    is_open=True),
                    folded(f"Journal: {len(directives)} directive{'s' * (len(directives) != 1)}", said))
