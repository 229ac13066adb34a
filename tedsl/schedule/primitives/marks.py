"""parallel, vectorize and unroll of one loop: which of them holds, and what becomes of them where the loop is replaced."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.source_line import user_level
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.relations import touched_by
from tedsl.schedule.state import ANNOTATIONS, MARKS, StageState

_SILENT = frozenset({IterType.UNROLLED, IterType.VECTORIZED})  # a vector is what is written for each of its lanes


def must_be_markable(stage: StageState, loop: Any, directive: str, *, marked: bool = True, bound: bool = True) -> int:
    """The position of `loop`. Refuses a variable that is not a loop now, a loop that is tensorized or one with another stage's,
    and one that is `marked` or `bound` to threads where these are False.
    """
    at = stage.position_of(loop, directive)
    stage.must_not_be_joined([loop], directive)
    attr = stage.attr_of(loop)
    taken = attr.iter_type not in (*MARKS, IterType.DATA_PAR) or (attr.iter_type in MARKS and not marked)
    if taken or (attr.bind_thread is not None and not bound):
        raise stage.refuse(directive, f"{loop.name} is already {stage.annotation_of(loop)}: a loop has one annotation",
                           hint=f"split {loop.name} before annotating, and annotate the two loops differently")
    return at


def for_elements(stage: StageState, loop: IterVar, verb: str) -> str:
    """The hint for a reduction loop that cannot be marked: rfactor, unless elements share the loop with the reduction."""
    if isinstance(stage.op, ComputeOp) and loop in touched_by(stage.op.axis, stage.relations):
        return f"{loop.name} runs over elements and over the reduction at once: {verb} a loop over elements alone, before " \
               "fuse joins them"
    return f"{verb} a loop over elements, or s.rfactor({stage.tensor_written}, {loop.name}) makes {loop.name} one{stage.early}"


def stays_bound(stage: StageState, loop: IterVar, directive: str) -> bool:
    """Whether `loop` is bound to threads, so that a mark changes nothing, as in TVM; a warning says so."""
    attr = stage.attr_of(loop)
    if attr.bind_thread is None:
        return False
    _warn(stage, directive, f"{loop.name} is {attr.describe()} and stays so, as in TVM: its iterations run as threads")
    return True


def mark(stage: StageState, loop: IterVar, kind: IterType, directive: str) -> None:
    """Marks `loop` as `kind`: the last mark of a loop holds, as in TVM."""
    before = stage.attr_of(loop).iter_type
    if before in MARKS and before is not kind and not {before, kind} <= _SILENT:
        _warn(stage, directive, f"{loop.name} was {ANNOTATIONS[before]} and is {ANNOTATIONS[kind]} now, as in TVM; "
                                f"{stage.handle}.split({loop.name}, ...) gives two loops, one for each")
    stage.set_attr(loop, iter_type=kind)


def mark_bound(stage: StageState, loop: IterVar, thread: IterVar, directive: str) -> None:
    """Binds `loop` to `thread`; it is parallel or vectorized no longer, as in TVM."""
    before = stage.attr_of(loop).iter_type
    if before in MARKS and before is not IterType.UNROLLED:
        _warn(stage, directive, f"{loop.name} was {ANNOTATIONS[before]} and is bound to {thread.thread_tag} now, as in TVM")
        stage.set_attr(loop, iter_type=IterType.DATA_PAR)
    stage.set_attr(loop, bind_thread=thread)


def drop_marks(stage: StageState, loops: Iterable[IterVar], directive: str) -> None:
    """Takes parallel, vectorize and unroll from `loops`, which `directive` replaces, with a warning for each."""
    marked = [(loop, kind) for loop in loops if (kind := stage.attr_of(loop).iter_type) in MARKS]
    for loop, kind in marked:
        again = f"call {MARKS[kind]} after {directive.partition('(')[0]}, on a new loop"
        _warn(stage, directive, f"{loop.name} was {ANNOTATIONS[kind]}, and what replaces it is not, as in TVM; {again}")
    for loop, _ in marked:
        stage.set_attr(loop, iter_type=IterType.DATA_PAR)


def _warn(stage: StageState, directive: str, text: str) -> None:
    warnings.warn(f"{directive} on stage {stage.name}: {text}", stacklevel=user_level())
