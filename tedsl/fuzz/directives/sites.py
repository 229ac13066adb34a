"""Queries of a schedule for the stages and loops that a directive applies to."""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.attach import attach_path
from tedsl.schedule.domains import written_tiling
from tedsl.schedule.relations import GUARD, Split
from tedsl.schedule.state import AttachType, StageState

Found = str | list[tuple[str, str]] | None  # a directive, or several with what they are called, or none
SCOPES = ("local", "global", "shared")


def plain_loops(stage: StageState) -> list[int]:
    """The numbers of the loops that may be split, fused or reordered: no annotation, no pragma, and if there are several
    versions of the stage, nothing computed there.
    """
    held = {guest.attach_ivar for guest in stage.guests()} if stage.versions or stage.version_of is not None else ()
    return [at for at, leaf in enumerate(stage.leaf_iter_vars)
            if leaf not in held and stage.annotation_of(leaf) is None and not stage.attr_of(leaf).pragma_keys]


def free_loops(stage: StageState, *, elements: bool = False) -> list[int]:
    """The numbers of the loops that may be annotated. elements: without loops of a reduction."""
    return [at for at, leaf in enumerate(stage.leaf_iter_vars)
            if stage.annotation_of(leaf) is None and not (elements and leaf.is_reduction)]


def constant_extents(stage: StageState) -> dict[IterVar, int]:
    return {loop: n for loop, extent in written_tiling(stage).extents.items() if (n := build.as_int(extent)) is not None}


def operation(stage: StageState) -> ComputeOp:
    assert isinstance(stage.op, ComputeOp)
    return stage.op


def replaceable(stage: StageState) -> bool:
    """Whether cache_write or rfactor may give the stage another operation."""
    return stage.attach_type != AttachType.INLINE and not stage.guests() \
        and len(plain_loops(stage)) == len(stage.leaf_iter_vars) \
        and isinstance(stage.op, ComputeOp) and not stage.env_threads and stage.init_at is None \
        and all(relation.tail == GUARD for relation in stage.relations if isinstance(relation, Split))


def owns_memory(stage: StageState) -> bool:
    """Whether the function allocates the memory of the stage: it is neither an argument nor inlined."""
    return not stage.is_output and not stage.is_placeholder and stage.attach_type != AttachType.INLINE


def tags_around(stage: StageState) -> set[str]:
    """The tags of the threads that the loops of the stage, those around it and those of its guests are bound to."""
    stages = [stage, *(host for host, _ in attach_path(stage))]
    pending = list(stage.guests())
    while pending:
        stages.append(pending.pop())
        pending += stages[-1].guests()
    return set().union(*map(tags_of, stages))


def tags_of(stage: StageState) -> set[str]:
    """The tags of the threads that the loops of the stage itself are bound to."""
    return {bound.thread_tag for loop in stage.leaf_iter_vars if (bound := stage.attr_of(loop).bind_thread) is not None}
