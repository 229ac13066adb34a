"""set_store_predicate: a condition under which a stage stores its elements."""

from __future__ import annotations

from typing import Any

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.walk.visitor import variables
from tedsl.schedule.state import StageState, describe, show


def set_store_predicate(stage: StageState, predicate: Any) -> None:
    """Stores the elements of `stage` only where `predicate` holds: in one of several threads that have the same value.

        B[i] = value   →   if threadIdx.x == 0: B[i] = value

    The condition is over thread axes, tx.var.equal(0). Each element must be stored by some thread, which lowering checks
    (`lower/threads/predicates.py`).
    """
    directive = f"set_store_predicate({show(predicate)})"
    stage.must_have_loops(directive)
    try:
        condition = None if isinstance(predicate, (int, float, str)) and not isinstance(predicate, bool) \
            else build.as_expr(predicate)
    except (TedslError, ValueError, TypeError):
        condition = None
    if condition is None or condition.dtype is not BOOL:
        raise stage.refuse(directive, f"the predicate is a condition, got {describe(predicate)}",
                           hint="for example tx.var.equal(0), where tx is the thread axis")
    loops = {loop.var: loop for loop in stage.all_iter_vars if loop not in stage.env_threads}
    own = next((loops[var] for var in variables(condition) if var in loops), None)
    if own is not None:
        raise stage.refuse(directive, f"{own.name} is a loop of {stage.name} and no thread: the elements that the condition "
                                      "excludes would be stored by nobody",
                           hint="a condition over a thread axis; one on elements belongs in the formula: te.if_then_else")
    stage.store_predicate = condition
