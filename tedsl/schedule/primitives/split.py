"""split: one loop becomes two."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.schedule.given_numbers import OF_A_CALL, why_many
from tedsl.schedule.primitives.marks import drop_marks
from tedsl.schedule.primitives.places.moved import guests_must_be_movable, move_guests
from tedsl.schedule.relations import GUARD, Split, derived
from tedsl.schedule.state import StageState, describe, show
from tedsl.schedule.tails import check_lines, check_tail


def split(stage: StageState, loop: Any, *, factor: Any = None, nparts: Any = None,
          tail: Any = GUARD, lines_of: Any = None) -> tuple[IterVar, IterVar]:
    """Turns `loop` into `outer, inner`: `factor` iterations of inner, or `nparts` of outer.

        for i in 0..n: body(i)   →   for io in 0..ceil(n / f): for ii in 0..f: body(io * f + ii)

    Where the product of the two is not the extent, lowering guards the body with `if io * f + ii < n`, or does what `tail`
    says. lines_of: a tensor at whose lines of memory the tiles begin. Stages that are computed at `loop` are computed at
    `inner` then. A `loop` that is parallel, vectorized or unrolled is so no longer, nor are the two: a warning says it.
    """
    given = ", ".join(f"{name}={show(value)}" for name, value in (("factor", factor), ("nparts", nparts)) if value is not None)
    given += "" if str(tail) == GUARD else f"{', ' if given else ''}tail={show(tail)}"
    given += "" if lines_of is None else f"{', ' if given else ''}lines_of={show(lines_of)}"
    directive = f"split({show(loop)}{', ' if given else ''}{given})"
    at = stage.position_of(loop, directive)
    if (factor is None) == (nparts is None):
        raise stage.refuse(directive, f"{'neither' if factor is None else 'both'} of factor and nparts given",
                           hint="give one: factor is the number of iterations of the inner loop, nparts of the outer")
    what, value = ("factor", factor) if nparts is None else ("nparts", nparts)
    count = positive_count(stage, directive, what, value, loop)
    stage.must_be_plain(loop, directive, "split first, then annotate the resulting loops", but_for_marks=True)
    guests_must_be_movable(stage, [loop], directive)
    check_tail(stage, loop, count, tail, directive)
    if lines_of is not None:
        check_lines(stage, lines_of, None if nparts is not None else count, tail, directive)
    drop_marks(stage, [loop], directive)
    outer, inner = derived(loop, ".outer"), derived(loop, ".inner")
    relation = Split(loop, outer, inner, count if nparts is None else None, count if factor is None else None, tail, lines_of)
    stage.leaf_iter_vars = (*stage.leaf_iter_vars[:at], outer, inner, *stage.leaf_iter_vars[at + 1:])
    stage.all_iter_vars += (outer, inner)
    stage.relations += (relation,)
    move_guests(stage, [loop], inner)
    return outer, inner


def positive_count(stage: StageState, directive: str, what: str, value: Any, loop: IterVar) -> Expr:
    """`value` as an integer of the dtype of `loop`; refuses values that are not integers, change during a call, or are below 1.

    A symbolic value is checked at each call (`lower/regions/counts.py`).
    """
    try:
        count = None if isinstance(value, (bool, str)) else build.as_expr(value)
    except ValueError:
        count = None
    if count is None or isinstance(value, IterVar) or not count.dtype.is_integer or count.dtype.lanes != 1:
        raise stage.refuse(directive, f"the {what} must be an integer, got {describe(value)}",
                           hint=f"write a whole number, for example {what}=8")
    why = why_many(count, stage.schedule)
    if why:
        raise stage.refuse(directive, why, hint=f"the {what} is {OF_A_CALL}; for example {what}=8")
    known = build.as_int(count)
    if known is not None and known < 1:
        raise stage.refuse(directive, f"the {what} must be at least 1, got {known}",
                           hint=f"{what}=1 leaves {loop.name} in one piece")
    if known is not None and loop.dtype.max_value is not None and known > loop.dtype.max_value:
        raise stage.refuse(directive, f"the {what} {known} does not fit the dtype {loop.dtype} of {loop.name}",
                           hint="use a smaller number, or an int64 shape")
    return build.cast(loop.dtype, count)
