"""Statements put on the threads that their loops are bound to, guarded where there are more threads than iterations."""

from __future__ import annotations

from collections.abc import Container

from tedsl.ir import build
from tedsl.ir.expr import Expr, StringImm
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import LAUNCH, VIRTUAL, AttrStmt, Evaluate, IfThenElse, Stmt, is_no_op, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lower.plan import Launch, Loop, StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.schedule.thread_ranks import is_virtual


def around_thread(loop: Loop, body: Stmt, launch: Launch | None) -> Stmt:
    """`body` on the threads that `loop` is bound to; guarded if there are more of them than iterations."""
    if build.as_int(loop.extent) == 0:
        return seq()  # a launch has at least one thread, and there is nothing to do for it
    limit = exceeded(loop, launch)
    return on_threads(loop, body if limit is None or is_no_op(body) else IfThenElse(build.likely(limit), body), launch)


def on_threads(loop: Loop, body: Stmt, launch: Launch | None) -> Stmt:
    """`body` on all the threads that `loop` is bound to."""
    thread = loop.attr.bind_thread
    assert thread is not None
    if is_no_op(body):
        return body
    if is_virtual(thread.thread_tag):
        return body if loop.var is None else AttrStmt(thread.replace(var=loop.var), VIRTUAL, loop.extent, body)
    assert launch is not None
    return AttrStmt(thread, LAUNCH, launch.counts[thread.thread_tag], body)


def launched(loop: Loop, launch: Launch | None) -> Expr | None:
    """The number of threads in `launch` of the axis that `loop` is bound to; None if `loop` is not bound to launched
    threads.
    """
    thread = loop.attr.bind_thread
    return None if thread is None or launch is None or is_virtual(thread.thread_tag) else launch.counts[thread.thread_tag]


def exceeded(loop: Loop, launch: Launch | None) -> Expr | None:
    """The condition under which a thread of `launch` has an iteration of `loop`; None if every thread has one."""
    thread, count = loop.attr.bind_thread, launched(loop, launch)
    if thread is None or count is None or count is loop.extent or build.as_int(build.sub(count, loop.extent)) == 0:
        return None
    return build.less(thread.var, loop.extent)


def store_predicate(plan: StagePlan) -> Expr:
    """The store predicate of the stage, with virtual threads replaced by the variables of their loops."""
    condition = plan.stage.store_predicate
    assert condition is not None
    values = {loop.attr.bind_thread.var: build.cast(loop.attr.bind_thread.var.dtype, loop.value)
              for host, until in (*hosts(plan), (plan, len(plan.loops) - 1)) for loop in host.loops[:until + 1]
              if loop.attr.bind_thread is not None and is_virtual(loop.attr.bind_thread.thread_tag)}
    return substitute(condition, values) if values else condition


def between_steps(plan: StagePlan) -> Stmt | None:
    """The barrier before each step of a scan, which waits for rows computed by other threads; None if no threads are launched
    around the scan.
    """
    if all(thread.thread_tag.startswith("blockIdx") for thread in plan.stage.env_threads):
        return None
    return Evaluate(build.call("tir.tvm_storage_sync", StringImm("global"), dtype_="int32"))


def on_named_threads(plan: StagePlan, launch: Launch | None, stmt: Stmt, within: Container[IterVar]) -> Stmt:
    """`stmt` under launches of those thread axes in the stage's store predicate to which no enclosing loop is bound. Of the
    stage's own loops only those in `within` enclose `stmt`.
    """
    condition = plan.stage.store_predicate
    if condition is None:
        return stmt
    bound = {loop.attr.bind_thread.var for host, until in (*hosts(plan), (plan, len(plan.loops) - 1))
             for loop in host.loops[:until + 1]
             if loop.attr.bind_thread is not None and (host is not plan or loop.leaf in within)}
    if launch is None:
        return stmt
    axes = {axis.var: axis for axes in launch.axes.values() for axis in axes}
    for var in variables(condition):
        if var in axes and var not in bound:
            axis = axes[var]
            stmt = AttrStmt(axis, LAUNCH, launch.counts[axis.thread_tag], stmt)
    return stmt
