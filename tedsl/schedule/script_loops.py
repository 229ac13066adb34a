"""Checks of directives on the loops of a hybrid script, whose statements the user wrote and whose order may matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.ir.iters import IterVar
from tedsl.lang.hybrid.nests import nest_of, why_dependent, why_ordered
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.schedule.relations import Fuse, Split
from tedsl.schedule.state import StageState


def axes_of(stage: StageState, loop: IterVar) -> list[IterVar]:
    """The loops of the script from which `loop` is derived."""
    axes, pending = [], [loop]
    while pending:
        var = pending.pop()
        relation = next((r for r in stage.relations if (isinstance(r, Split) and var in (r.outer, r.inner))
                         or (isinstance(r, Fuse) and var is r.fused)), None)
        if isinstance(relation, Split):
            pending.append(relation.parent)
        elif isinstance(relation, Fuse):
            pending += [relation.inner, relation.outer]
        else:
            axes.append(var)
    return list(dict.fromkeys(axes))


def check_new_loop(stage: StageState, made: str, directive: str) -> None:
    """Refuses additional loops around those of a script. made: what the directive would add, for the error."""
    if isinstance(stage.op, HybridOp):
        loops = ", ".join(loop.name for loop in stage.leaf_iter_vars)
        raise stage.refuse(directive, f"{stage.name} is a hybrid script, whose loops are those that are written in it: "
                           f"there is no place for {made}", hint=f"split and fuse its loops: {loops}" if loops
                           else "write a loop in the script")


def check_nest(stage: StageState, loops: Sequence[IterVar], directive: str) -> None:
    """Refuses loops of a script that are not directly inside one another."""
    if not isinstance(stage.op, HybridOp):
        return
    axes = [axis for loop in loops for axis in axes_of(stage, loop)]
    if len({nest_of(stage.op, axis).axes for axis in axes}) > 1:
        raise stage.refuse(directive, f"{', '.join(loop.name for loop in loops)} do not stand directly inside one another in "
                           "the script", hint="write the loops of the script without statements between them")


def check_order(stage: StageState, loops: Sequence[IterVar], after: Sequence[IterVar], directive: str) -> None:
    """Refuses a new order of the loops of a script where the order matters.

    loops: those that change places. after: all loops of the stage, in their new order.
    """
    if not isinstance(stage.op, HybridOp) or len(loops) < 2:
        return
    check_nest(stage, loops, directive)
    nest = nest_of(stage.op, axes_of(stage, loops[0])[0])
    made_of = {loop: {axis.var for axis in axes_of(stage, loop)} & {axis.var for axis in nest.axes} for loop in after}
    why = why_ordered(nest, [made_of[loop] for loop in stage.leaf_iter_vars], [made_of[loop] for loop in after])
    if why:
        raise stage.refuse(directive, f"the order of the loops matters: {why}", hint="write them in that order in the script")


def check_independent(stage: StageState, loops: Iterable[IterVar], directive: str) -> None:
    """Refuses loops of a script whose iterations cannot run at the same time."""
    if not isinstance(stage.op, HybridOp):
        return
    for loop in loops:
        for axis in axes_of(stage, loop):
            why = why_dependent(nest_of(stage.op, axis), axis.var)
            if why:
                raise stage.refuse(directive, f"its iterations may depend on one another: {why}",
                                   hint="choose a loop whose variable is an index of everything that is written inside")
