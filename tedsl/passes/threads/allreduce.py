"""A reduction across threads as loops over the values of all threads of a group.

before:  attr [sum] "reduce_scope" { tvm_thread_allreduce(1, L[0], condition, R, threadIdx.x) }     on threadIdx.y, threadIdx.x
after:   for (threadIdx.y) { R[threadIdx.y] = 0;  for (threadIdx.x) { if (condition) { R[threadIdx.y] += L[...] } } }

Every thread of the group reads the result R, of which there is one per group. It starts as the neutral element; the values are
combined in the order of the threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import CommReducer, Expr, Load, Var
from tedsl.ir.stmt import AttrStmt, Evaluate, IfThenElse, LetStmt, Stmt, Store, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.passes.threads.gather_threads import Thread, loops_over
from tedsl.passes.threads.meetings import reduction_parts
from tedsl.passes.threads.private import PrivateMemory


def across_threads(stmt: AttrStmt, threads: Sequence[Thread], private: PrivateMemory) -> Stmt:
    """The loops of the reduction `stmt` on the threads of a block."""
    combiner = stmt.node
    assert isinstance(stmt.body, Evaluate)
    if not isinstance(combiner, CommReducer):
        raise LoweringError("tvm_thread_allreduce stands under a \"reduce_scope\" that is not a reducer of te.comm_reducer")
    (*values, condition), results, reduced = reduction_parts(stmt.body)
    place = private.part(results[0])
    place = build.const(0, "int32") if place is None else place
    update = combined(combiner, [private(value) for value in values], results, place)
    if not build.is_true(condition):
        update = IfThenElse(private(condition), update)
    start = seq(*[Store(var, value, place) for var, value in zip(results, combiner.identity_element)])
    update = loops_over([thread for thread in threads if thread.var in reduced], update)
    return loops_over([thread for thread in threads if thread.var not in reduced], seq(start, update))


def combined(combiner: CommReducer, values: Sequence[Expr], results: Sequence[Var], place: Expr) -> Stmt:
    """Returns the statement that combines what stands at `place` of the memories `results` with `values`."""
    known: dict[Var, Expr] = {left: Load(value.dtype, var, place)
                              for left, value, var in zip(combiner.lhs, values, results)}
    known.update(zip(combiner.rhs, values))
    news = [substitute(result, known) for result in combiner.result]
    if len(news) == 1:
        return Store(results[0], news[0], place)
    names = [Var(f"{var.name}.new", new.dtype) for var, new in zip(results, news)]
    body = seq(*[Store(var, name, place) for var, name in zip(results, names)])
    for name, new in zip(reversed(names), reversed(news)):
        body = LetStmt(name, new, body)
    return body
