"""Emits expressions nested too deep for recursion: with the same functions, driven by an explicit stack, operands first.

When a node is emitted, the values of its operands are known, so that its function does not recurse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.codegen.llvm.branch import before, is_cheap, steps_of
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.expr import bind
from tedsl.codegen.llvm.indices.values import is_index
from tedsl.ir.expr import Call, Cast, CompareOp, Expr, Let, Load, Ramp, Select, StringImm
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF, IF_THEN_ELSE
from tedsl.ir.walk.index_arithmetic import wraps

Task = tuple[Expr, bool] | Callable[[], Any]


def emit_deep(out: Emitter, root: Expr, as_index: bool) -> None:
    """Computes every subexpression of `root`, as data or as index arithmetic, and stores the values where `out.value` looks
    them up.
    """
    tasks: list[Task] = _operands(out, root, as_index)
    while tasks:
        task = tasks.pop()
        if callable(task):
            task()
            continue
        node, index = task
        memo: dict[Expr, Any] = out.index_memo if index else out.memo
        if node in memo:
            continue
        tasks.append(lambda node=node, index=index: out.index(node) if index else out.value(node))  # type: ignore[misc]
        tasks.extend(_operands(out, node, index))


def _operands(out: Emitter, e: Any, index: bool) -> list[Task]:
    """Lists the tasks that must be done before `e` is computed, in reverse order of execution."""
    if isinstance(e, Let):
        return [(e.body, index), lambda: bind(out, e.var, e.value), (e.value, is_index(out, e.value))]
    if index and isinstance(e, (Select, Call)):
        if not is_index(out, e):
            return [(e, False)]
        condition, *sides = e.child_nodes()
        chosen: list[Any] = [*((side, True) for side in reversed(sides)), (condition, False)]
        return chosen
    if index and type(e) in out.tables.index and not wraps(e) and not (isinstance(e, Cast) and not e.value.dtype.is_integer):
        tasks: list[Task] = [(child, True) for child in reversed(e.child_nodes())]
        return tasks
    if index:
        return [(e, False)]
    if isinstance(e, Load):
        return [(e.index, True), (e.predicate, False)] if e.predicate is not None else [(e.index, True)]
    if isinstance(e, CompareOp) and e.a.dtype.is_integer and is_index(out, e.a) and is_index(out, e.b):
        return [(e.b, True), (e.a, True)]
    if isinstance(e, Call) and e.op is IF_THEN_ELSE and not is_cheap(e):
        return _branch(out, e)
    if (isinstance(e, Call) and e.op is ADDRESS_OF) or isinstance(e, Ramp):
        return []
    if isinstance(e, Call) and e.op is ACCESS_PTR:
        return [(e.args[2], True)]
    rest: list[Task] = [(child, False) for child in reversed(e.child_nodes()) if not isinstance(child, StringImm)]
    return rest


def _branch(out: Emitter, e: Call) -> list[Task]:
    steps = steps_of(out, e)

    def finish() -> None:
        out.value(e.args[2])
        out.memo[e] = steps.finish()

    shared: list[Task] = [(choice, False) for choice in before(out, e)]
    return [finish, (e.args[2], False), steps.otherwise, (e.args[1], False), steps.start, *shared, (e.args[0], False)]
