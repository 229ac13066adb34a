"""Distribute the iterations of parallel loops cyclically over threads, as the pragma parallel_stride_pattern asks.

before:  attr "pragma_parallel_stride_pattern" { for (i: 0, n) "parallel" { body } }
after:   for (i.task: 0, 4) "parallel" { for (i.step: 0, (n - i.task + 3) // 4) { body of i = i.step*4 + i.task } }

A thread gets every fourth iteration instead of a quarter in one piece: even work where iterations grow longer. The pragmas
parallel_launch_point and parallel_barrier_when_finish need no code: threads wait for work between the parallel loops of a
region, and a parallel loop ends when all its iterations have.
"""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt, Evaluate, For, ForKind, Stmt, Store
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.passes.folding import fold_with
from tedsl.runtime.parallel import get_num_threads

PATTERN = "pragma_parallel_stride_pattern"


def stride_parallel(func: PrimFunc, *, tasks: int | None = None) -> PrimFunc:
    """Returns `func` with the marked parallel loops cut into `tasks` (None: the number of threads) strided parts."""
    if not contains(func.body, PATTERN):
        return func
    return func.with_body(_Strider(get_num_threads() if tasks is None else tasks)(func.body))


class _Strider(ScopedRewriter):
    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.marked = False

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case AttrStmt(attr_key=key, body=body) if key == PATTERN:
                outside, self.marked = self.marked, True
                done = self.stmt(body)
                self.marked = outside
                return done
            case For(kind=ForKind.PARALLEL):
                return self.strided(stmt) if self.marked else stmt  # one inside of it runs serially
            case _:
                return self.descend(stmt)

    def strided(self, loop: For) -> Stmt:
        count, of = build.as_int(loop.extent), loop.loop_var.dtype
        tasks = self.tasks if count is None else min(self.tasks, count)
        if tasks <= 1:
            return loop
        task, step = Var(f"{loop.loop_var.name}.task", of), Var(f"{loop.loop_var.name}.step", of)
        steps = build.floordiv(build.add(build.sub(loop.extent, task), tasks - 1), tasks)
        value = build.add(loop.min, build.add(build.mul(step, tasks), task))
        body = fold_with(loop.body, {loop.loop_var: value})
        inner = For(step, build.const(0, of), steps, ForKind.SERIAL, body)
        return loop.replace(loop_var=task, min=build.const(0, of), extent=build.const(tasks, of), body=inner)
