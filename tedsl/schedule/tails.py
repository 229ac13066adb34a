"""The tail of a split: how the last tile is handled where the factor does not divide the extent.

    guard          a condition in each iteration: `if io*f + ii < n`. The default, as in TVM: always correct, nothing computed
                   twice. Passes drop the condition where they can, partition the loop there, or turn it into a mask
    mask           one loop with masked vectors: no second loop, no branch per lane. A loop that is not vectorized has the guard
    partition      a main loop without conditions and a loop for the rest, also if the extent is constant
    shift_inwards  the last tile is moved inwards, so that it is full: it computes some elements again, to the same values.
                   An extent below the factor is one tile with a condition on the lane alone. With lines_of=A all tiles but
                   the first and the last begin where lines of memory of A begin: those before them end earlier, and the first
                   is moved inwards as the last one is
    round_up       full tiles, in memory that is enlarged for them; the additional elements are computed and never read.
                   Reads that would leave their tensors there give 0 instead

The results are the same. The last two affect the stage as a whole, and are refused where that is not possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, Reduce
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.lang.operation import ComputeOp
from tedsl.lang.tensor import Tensor
from tedsl.schedule.domains import extent_of, fitted
from tedsl.schedule.relations import (
    GUARD,
    ROUND_UP,
    SHIFT_INWARDS,
    TAILS,
    Fuse,
    Rebase,
    Relation,
    Split,
    children_of,
    parents_of,
)
from tedsl.schedule.state import StageState, describe


def check_tail(stage: StageState, loop: IterVar, part: Expr, tail: Any, directive: str) -> None:
    """Refuses an unknown tail, and a tail that this stage or loop cannot have."""
    if not isinstance(tail, str) or tail not in TAILS:
        raise stage.refuse(directive, f"there is no tail {describe(tail)}", hint=f"choose one of {', '.join(TAILS)}")
    if tail == GUARD:
        return
    if not isinstance(stage.op, ComputeOp):
        raise stage.refuse(directive, f"{stage.name} is not made by te.compute: its loops have guards only",
                           hint='leave tail="guard"')
    if tail == SHIFT_INWARDS:
        _check_recomputing(stage, loop, directive)
    if tail == ROUND_UP and not comes_out_even(stage, loop, part):
        _check_enlarging(stage, loop, part, directive)


def check_lines(stage: StageState, tensor: Any, factor: Expr | None, tail: str, directive: str) -> None:
    """Refuses to begin tiles at lines of `tensor` where it is none of the schedule, or the tiles are not of a constant size or
    may not be moved.
    """
    if not isinstance(tensor, Tensor) or tensor.op not in stage.schedule.stage_map:
        names = ", ".join(one.tensor_written for one in stage.schedule.stages)
        raise stage.refuse(directive, f"lines_of is a tensor of this schedule, got {describe(tensor)}"
                           f"{', which is of another one' if isinstance(tensor, Tensor) else ''}",
                           hint=f"tiles begin at lines of memory of a tensor that the loops read or write, one of {names}")
    if tail != SHIFT_INWARDS:
        raise stage.refuse(directive, f"tiles that begin at lines of {tensor.name} overlap at the ends of the loop, where they "
                           f'are moved inwards, and the tail is "{tail}"', hint=f'say tail="{SHIFT_INWARDS}" too')
    if factor is None:
        raise stage.refuse(directive, "nparts is given, and only tiles of a constant size can all begin at lines of "
                           f"{tensor.name}", hint="give a factor, for example the elements of a vector: factor=16")
    if build.as_int(factor) is None:
        raise stage.refuse(directive, f"the factor {shown(factor)} is not a constant, and only tiles of a constant size can "
                           f"all begin at lines of {tensor.name}", hint="give a whole number, for example factor=16")


def _check_recomputing(stage: StageState, loop: IterVar, directive: str) -> None:
    if loop.is_reduction or isinstance(stage.op.body[0], Reduce):  # type: ignore[attr-defined]
        raise stage.refuse(directive, f"{stage.name} is a reduction: a tile that is moved inwards would add up elements twice",
                           hint='use tail="guard", "mask" or "partition"' if loop.is_reduction else
                           'use tail="guard", "mask" or "partition"; or move the reduction to a stage of its own: '
                           f's.cache_write({stage.tensor_written}, "local"){stage.early}')


def _check_enlarging(stage: StageState, loop: IterVar, part: Expr, directive: str) -> None:
    other = 'use tail="guard", "mask" or "partition"'
    if loop.is_reduction:
        raise stage.refuse(directive, f"{loop.name} is a reduction loop: what it would read beyond its end would be added up",
                           hint=other)
    if stage.is_output:
        extent = extent_of(stage, loop)
        raise stage.refuse(directive, f"{stage.name} is an output, and its shape is the caller's: nothing proves that "
                           f"{shown(part)} divides {shown(extent)}",
                           hint=f'{other}; or s.cache_write({stage.tensor_written}, "local") computes in memory that can be '
                                f"enlarged{stage.early}")
    why = _why_inner(loop, stage.relations)
    if why:
        raise stage.refuse(directive, f"{loop.name} is {why}: beyond its end other elements of {stage.name} begin", hint=other)


def _why_inner(loop: IterVar, relations: Sequence[Relation]) -> str:
    """What `loop` is if its last iterations are in the middle of an axis ("a fused loop"); "" if they are the last ones of an
    axis.
    """
    at = loop
    for relation in reversed(relations):
        if not any(one is at for one in children_of(relation)):
            continue
        if isinstance(relation, Fuse):
            return "a fused loop"
        if isinstance(relation, Split) and relation.inner is at:
            return "the inner loop of a split"
        if isinstance(relation, (Split, Rebase)):
            at = parents_of(relation)[0]
    return ""


def comes_out_even(stage: StageState, loop: IterVar, part: Expr) -> bool:
    """Whether `part` is known to divide the extent of `loop`, for a stage that is computed whole."""
    extent = extent_of(stage, loop)
    return extent is not None and fitted(extent, build.cast(extent.dtype, part), Analyzer()).even


def must_not_recompute(stage: StageState, loop: IterVar, directive: str) -> None:
    """Refuses to run the tiles of a split on several threads if two of them compute the same elements."""
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.tail == SHIFT_INWARDS and loop in below(relation.outer, stage.relations):
            raise stage.refuse(
                directive, f'{loop.name} runs over the tiles of {relation.parent.name}, the last of which is moved inwards '
                '(tail="shift_inwards"): two threads would write the same elements',
                hint=f'split {relation.parent.name} with tail="guard", or share out another loop')


def must_have_plain_tails(stage: StageState, directive: str) -> None:
    """Refuses to create a new stage from loops whose tails or versions would be lost."""
    must_have_one_version(stage, directive)
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.tail != GUARD:
            raise stage.refuse(directive, f'{relation.parent.name} was split with tail="{relation.tail}", which would be lost',
                               hint=f"call {directive.split('(')[0]} first, then split the loops of both stages")


def must_have_one_version(stage: StageState, directive: str) -> None:
    """Refuses a directive that would lose the specialized versions."""
    if stage.versions:
        raise stage.refuse(directive, f"{stage.name} has a version of its own where {shown(stage.versions[0].condition)}, "
                           "which this would lose", hint=f"call {directive.split('(')[0]} first, then specialize")


def below(loop: IterVar, relations: Sequence[Relation]) -> set[IterVar]:
    """`loop` and all loops derived from it."""
    loops = {loop}
    for relation in relations:
        if any(parent in loops for parent in parents_of(relation)):
            loops.update(children_of(relation))
    return loops
