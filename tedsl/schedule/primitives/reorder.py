"""reorder: another nesting of the same loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir.iters import IterVar
from tedsl.schedule.attach import misplaced
from tedsl.schedule.primitives.reductions.decompose_reduction import check_init_place
from tedsl.schedule.primitives.reductions.skip_zeros import check_skips
from tedsl.schedule.scan.checks import must_keep_steps_in_order
from tedsl.schedule.script_loops import check_order
from tedsl.schedule.state import StageState, find, show
from tedsl.schedule.vector_guests import must_fit_in_lanes


def reorder(stage: StageState, order: Sequence[Any]) -> None:
    """Nests the loops of `order`, outermost first, in the positions that they occupy together; the other loops keep theirs.

    for i: for j: for k: body   → reorder(k, i) →   for k: for j: for i: body
    """
    directive = f"reorder({', '.join(map(show, order))})"
    stage.must_have_loops(directive)
    places = [stage.position_of(loop, directive) for loop in order]
    for at, loop in enumerate(order):
        if find(order[:at], loop) is not None:
            raise stage.refuse(directive, f"{loop.name} is named twice", hint="name each loop once")
    stage.must_not_be_joined(order, directive)
    moved = list(stage.leaf_iter_vars)
    for place, loop in zip(sorted(places), order):
        moved[place] = loop
    after = tuple(moved)
    if any(a is not b for a, b in zip(after, stage.leaf_iter_vars)):
        check_order(stage, order, after, directive)
    check_init_place(stage, directive, after)
    check_skips(stage, directive, after)
    must_keep_steps_in_order(stage, after, directive)
    if stage.guests():
        _check_guests(stage, directive, after)
    stage.leaf_iter_vars = after


def _check_guests(stage: StageState, directive: str, after: tuple[IterVar, ...]) -> None:
    """Refuses an order in which a stage computed at a loop of this one would no longer precede its readers."""
    must_fit_in_lanes(stage, after, directive)
    before = stage.leaf_iter_vars
    known = {(m.producer, m.consumer) for m in misplaced(stage.schedule)}
    stage.leaf_iter_vars = after
    try:
        broken = [m for m in misplaced(stage.schedule) if (m.producer, m.consumer) not in known]
    finally:
        stage.leaf_iter_vars = before
    if broken:
        producer, loop = broken[0].producer, broken[0].producer.attach_ivar
        assert loop is not None
        raise stage.refuse(directive, f"afterwards {broken[0].reason}",
                           hint=f"{producer.name} is computed at {loop.name}: attach it at a loop further out first")
