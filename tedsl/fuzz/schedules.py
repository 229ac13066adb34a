"""Random directives, drawn on a live schedule: refused ones are counted, dropped, and must not change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl.fuzz.applied import declared
from tedsl.fuzz.case import Case
from tedsl.fuzz.directives.sites import tags_of
from tedsl.fuzz.directives.table import DIRECTIVES, RARE
from tedsl.fuzz.directives.wild import wild, wild_loops
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.build import as_int
from tedsl.schedule.domains import written_tiling
from tedsl.schedule.relations import Split
from tedsl.schedule.state import AttachType, StageState

LONGEST = 15  # directives
Propose = Callable[[Scheduler], Any]


def draw_directives(scheduler: Scheduler, table: Mapping[Propose, int] = DIRECTIVES, *, most: int = LONGEST,
                    illegal: int = 5) -> None:
    """Draw up to `most` directives of `table`, with some kinds more frequent in each sequence, so that rare ones combine.

    illegal: the percentage of those that should mostly be refused; with a `table` they are of its kinds.
    """
    draw = scheduler.draw
    rare = [propose for propose in RARE if propose in table]
    favourites = draw.sample(rare, 2) if len(rare) > 1 and draw.chance(30) else draw.sample(table, 3)
    weights = {propose: weight * (5 if propose in favourites else 1) for propose, weight in table.items()}
    for _ in range(draw.between(1, most)):
        if draw.chance(illegal):
            text = wild(scheduler) if table is DIRECTIVES else wild_loops(scheduler)
            if text is not None:
                scheduler.attempt("wild", text)
        else:
            _one_more(scheduler, weights)
    scheduler.settle()


def swarm(seed: int) -> dict[Propose, int]:
    """The directives of sequence `seed` when each sequence has a choice of its own of about half of them.

    Those that are left meet each other more often than among all: Groce et al., Swarm Testing, ISSTA 2012.
    """
    draw = Draw(f"swarm {seed}")
    return {propose: weight for propose, weight in DIRECTIVES.items() if draw.chance(50)} or dict(DIRECTIVES)


def _one_more(scheduler: Scheduler, weights: Mapping[Propose, int]) -> None:
    """Apply one more directive, if one of those drawn has a place."""
    for _ in range(6):
        propose = scheduler.draw.weighted(weights)
        proposal = propose(scheduler)
        if proposal is not None:
            for kind, text in proposal if isinstance(proposal, list) else [(propose.__name__, proposal)]:
                if not scheduler.attempt(kind, text):
                    break
            return


def measure(case: Case, s: Any) -> None:
    """Records in `case.counts` which properties the program and its schedule have, for the report."""
    stages = [stage.state for stage in s.stages]
    case.counts["attached"] = int(any(stage.attach_type == AttachType.SCOPE for stage in stages))
    case.counts["not dividing"] = int(any(_uneven(stage) for stage in stages))
    case.counts["bound"] = int(any("Idx" in tag for stage in stages for tag in tags_of(stage)))


def _uneven(stage: StageState) -> bool:
    """Whether a split of the stage is uneven, or may be for some size."""
    splits = [relation for relation in stage.relations if isinstance(relation, Split)]
    extents = written_tiling(stage).extents if splits else {}
    for relation in splits:
        extent = as_int(extents[relation.parent]) if relation.parent in extents else None
        by = as_int(relation.factor if relation.factor is not None else relation.nparts)
        if extent is None or (by and extent % by):
            return True
    return False


OPTIONS: dict[str, Callable[[Draw], Any]] = {
    "tir.LoopPartition": lambda draw: {"partition_const_loop": True} if draw.chance(20) else None,
    "tir.UnrollLoop": lambda draw: {"auto_max_step": draw.choice([4, 16]), "explicit_unroll": draw.chance(70)}
    if draw.chance(10) else None,
    "tir.disable_vectorize": lambda draw: draw.chance(4) or None,
    "tir.noalias": lambda draw: False if draw.chance(5) else None,
}


def draw_schedule(case: Case, draw: Draw, names: Mapping[str, Any] | None = None,
                  table: Mapping[Propose, int] = DIRECTIVES) -> Scheduler:
    """Adds a schedule, of the directives in `table`, and options to the case. names: its tensors if they are declared."""
    scheduler = Scheduler(case, draw, declared(case) if names is None else names)
    draw_directives(scheduler, table)
    if draw.chance(80):
        scheduler.repair()
    measure(case, scheduler.s)
    for option, choose in OPTIONS.items():
        value = choose(draw)
        if value is not None:
            case.config[option] = value
    case.simple_mode = draw.chance(10)
    return scheduler
