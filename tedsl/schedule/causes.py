"""Which directive is behind a fact: what errors of lowering and explanations point at.

Lowering knows what is wrong with which stage and loop, not who said so. It tags its error with a `Cause`; here the history
of the schedule is asked which directive made that so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import For
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.schedule.journal import Directive
from tedsl.schedule.record.history import Fields
from tedsl.schedule.relations import Relation
from tedsl.schedule.state import ScheduleState, StageState


@dataclass(frozen=True, eq=False)
class Cause:
    """What `fields` of `stage` say ("storage.rolling": that part of one); with `of`, the entry of that loop, or since when
    that relation is there."""

    stage: StageState
    fields: tuple[str, ...]
    of: IterVar | Relation | None = None


def attached(stage: StageState) -> Cause:
    """Where the stage is computed: compute_at, compute_inline, ..."""
    return Cause(stage, ("attach_type", "attach_stage", "attach_ivar"))


def annotated(stage: StageState, loop: IterVar) -> Cause:
    """What was said about one loop: vectorize, parallel, pragma, ..."""
    return Cause(stage, ("iter_var_attrs",), loop)


def related(stage: StageState, relation: Relation) -> Cause:
    """Who cut or fused: split, tile, fuse."""
    return Cause(stage, ("relations",), relation)


def said(stage: StageState, *fields: str) -> Cause:
    """Any other field of the stage: "scope", "store_predicate", "leaf_iter_vars", ..."""
    return Cause(stage, fields)


def directive_behind(state: ScheduleState, cause: object) -> Directive | None:
    """The directive that made `cause` so (a Cause, or the name of a loop); None if it was so from the start."""
    if isinstance(cause, str):
        cause = _of_name(state, cause)
    if not isinstance(cause, Cause):
        return None
    history, of, name = state.recorder.history, cause.of, cause.fields[0]
    if of is None:
        number = history.last_change(cause.stage, lambda fields: _flat(fields, cause.fields))
    elif isinstance(of, IterVar):
        number = history.last_change(cause.stage, lambda fields: (fields[name].get(of),))
    else:
        number = history.first(cause.stage, lambda fields: any(one is of for one in fields[name]))
    return None if number is None else state.recorder.directives[number - 1]


def _flat(fields: Fields, names: tuple[str, ...]) -> tuple[Any, ...]:
    values: list[Any] = []
    for name in names:
        first, *parts = name.split(".")
        value = functools.reduce(getattr, parts, fields[first])
        values += value if isinstance(value, list) else [value]
    return tuple(values)


def _of_name(state: ScheduleState, name: str) -> Cause | None:
    """What passes know by a name: the annotation of the one loop called so, a thread by its tag, an intrinsic by a buffer."""
    name = name.removesuffix(".init")
    found = [annotated(stage, loop) for stage in state.stages for loop in stage.leaf_iter_vars
             if loop.name == name and stage.annotation_of(loop) is not None]
    return found[0] if len(found) == 1 else _of_threads(state, name) or _of_intrinsic(state, name)


def _of_threads(state: ScheduleState, tag: str) -> Cause | None:
    """What put the last stage that runs on the threads `tag` there; the last stage stands for all."""
    for stage in reversed(state.with_versions()):
        for loop in stage.leaf_iter_vars:
            thread = stage.attr_of(loop).bind_thread
            if thread is not None and tag in (thread.thread_tag, thread.name):
                return annotated(stage, loop)
        if any(tag == thread.thread_tag for thread in stage.env_threads):
            return said(stage, "env_threads")
    return None


def _of_intrinsic(state: ScheduleState, name: str) -> Cause | None:
    """The one intrinsic that has a buffer of that name."""
    found = [annotated(stage, loop) for stage in state.with_versions() for loop in stage.leaf_iter_vars
             if any(buffer.name == name for buffer in getattr(stage.attr_of(loop).tensor_intrin, "buffers", ()))]
    return found[0] if len(found) == 1 else None


def _script_line(state: ScheduleState, name: object) -> str:
    """Where a hybrid script writes the loop of that name, parallel or the like; "" if none does."""
    found = [(stage.op, axis) for stage in state.stages if isinstance(stage.op, HybridOp)
             for axis in stage.op.axis if axis.name == name and stage.annotation_of(axis) is not None]
    if len({op for op, _ in found}) != 1:
        return ""
    op, axis = found[0]
    loops = [stmt for stmt in op.lines if isinstance(stmt, For) and stmt.loop_var is axis.var]
    return op.line_of(loops[0] if len(found) == len(loops) == 1 else None)


@contextmanager
def blaming(state: ScheduleState) -> Iterator[None]:
    """A LoweringError from inside the block names the directive of the journal that it comes from, or the line of a script."""
    try:
        yield
    except LoweringError as error:
        directive = directive_behind(state, error.about)
        origin = directive.origin if directive is not None else _script_line(state, error.about)
        if origin:
            error.blame(origin)
        error.about = None  # it holds the schedule, and an error may live long or travel between processes
        raise
