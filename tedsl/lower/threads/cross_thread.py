"""A reduction whose loops are threads of a block: each thread has a part, and the parts are combined across the threads.

    attr [threadIdx.x] "thread_extent" = 16 {
      normal_reduce_temp0[0] = 0; for k.outer { normal_reduce_temp0[0] += A[k.outer*16 + threadIdx.x] }     if loops are left
      attr [comm_reducer(...)] "reduce_scope" = ... { tvm_thread_allreduce(1, value, condition, reduce_temp0, threadIdx.x) }
      if (threadIdx.x == 0) { B[0] = reduce_temp0[0] }                                     the store predicate of the stage
    }

Conditions never stand around the combination, which all threads of the block take part in: a thread without an iteration
brings the neutral element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE, dtype
from tedsl.ir.expr import Call, Expr, IntImm, Load, Reduce, Var, pointer_var
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import ALLREDUCE, REINTERPRET
from tedsl.ir.stmt import Allocate, AttrStmt, BufferStore, Evaluate, IfThenElse, LetStmt, Stmt, Store, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lower.compute import Translator
from tedsl.lower.plan import Loop, StagePlan
from tedsl.lower.site import Site
from tedsl.lower.threads.wrap import exceeded, on_threads
from tedsl.schedule.causes import annotated
from tedsl.schedule.relations import touched_by
from tedsl.schedule.thread_ranks import is_shared_among, memory_scope


def crosses_threads(plan: StagePlan) -> bool:
    """Whether a reduction loop of `plan` is bound to threads."""
    return any(_is_crossing(loop) for loop in plan.loops)


def _is_crossing(loop: Loop) -> bool:
    return loop.leaf.is_reduction and loop.attr.bind_thread is not None


def chooses_a_copy(plan: StagePlan, predicate: Expr) -> bool:
    """Whether a store predicate selects among threads that all hold the result, each in its own memory; then every thread
    stores its copy.
    """
    scope = memory_scope(plan.stage) or "global"
    own = {thread.var for thread in _combining(plan) if not is_shared_among(scope, thread.thread_tag)}
    return own.issuperset(variables(predicate))


def _combining(plan: StagePlan) -> list[IterVar]:
    """The thread axes across which partial results are combined, including those of loops of one iteration."""
    return [loop.attr.bind_thread for loop in plan.loops if loop.leaf.is_reduction and loop.attr.bind_thread is not None]


class Nested(Protocol):
    """The part of the interface of `nest.Nest` that this module uses."""

    site: Site
    plan: StagePlan
    translate: Translator

    def place(self, translate: Translator) -> tuple[Expr, ...]: ...
    def own_conditions(self) -> tuple[list[Expr], list[Expr]]: ...
    def inside(self, at: int, body: Stmt) -> Stmt: ...
    def iteration(self, at: int, body: Stmt) -> Stmt: ...


def cross_thread(nest: Nested, reduce: Reduce) -> Stmt:
    """The loops of a stage that reduces across threads."""
    plan, site, translate = nest.plan, nest.site, nest.translate
    _check(site, reduce)
    exists, predicate = nest.own_conditions()
    exists = [limit for loop in plan.loops if (limit := exceeded(loop, site.launch)) is not None] + exists
    within = [*exists, *([] if build.is_true(reduce.condition) else [translate(reduce.condition)])]
    serial = [at for at, loop in enumerate(plan.loops) if loop.leaf.is_reduction and not _is_crossing(loop)]
    sources = [translate(source) for source in reduce.source]
    results = [pointer_var(f"reduce_temp{i}", source.dtype, "local") for i, source in enumerate(sources)]
    partial: Stmt | None = None
    kept: list[Var] = []
    if serial:
        kept = [pointer_var(f"normal_reduce_temp{i}", source.dtype, "local") for i, source in enumerate(sources)]
        partial = _partial(nest, reduce, serial, kept, sources, within)
        sources = [_first(var, source) for var, source in zip(kept, sources)]
    combined = _allreduce(plan, reduce, sources, build.true() if serial else _all(within), results)
    stores: Stmt = seq(*[BufferStore(buffer, _first(var, source), nest.place(translate))
                         for buffer, var, source in zip(site.buffers, results, sources)])
    reduced = {var for loop in plan.loops if loop.leaf.is_reduction for var in variables(loop.value)}
    reduced |= {thread.var for thread in _combining(plan)}
    predicate = [condition for condition in predicate if not chooses_a_copy(plan, condition)]
    for condition in reversed([*(c for c in exists if reduced.isdisjoint(variables(c))), *predicate]):
        stores = IfThenElse(condition, stores)
    body = seq(partial, combined, stores)
    for var, source in reversed([*zip(kept, sources), *zip(results, sources)]):
        body = Allocate(var, source.dtype, (build.const(1, "int32"),), build.true(), body)
    for at in reversed(range(len(plan.loops))):
        if at not in serial:
            loop, body = plan.loops[at], site.after_guests(at, body)
            body = nest.inside(at, body) if loop.attr.bind_thread is None else on_threads(loop, body, site.launch)
    return body


def _check(site: Site, reduce: Reduce) -> None:
    plan = site.plan
    crossing = next(loop for loop in plan.loops if _is_crossing(loop))
    thread = crossing.attr.bind_thread
    assert thread is not None
    where = f"the reduction loop {crossing.leaf.name} of {plan.name} is bound to {thread.thread_tag}"
    about = annotated(plan.stage, crossing.leaf)
    if reduce.init:
        raise LoweringError(f"{where}, and its reduction starts from a value of its own (init), which every thread would count",
                            hint="reduce without init and combine with it in another te.compute", about=about)
    mixed = touched_by(plan.data_axes, plan.stage.relations)
    for loop in plan.loops:
        if loop.leaf.is_reduction and loop.leaf in mixed:
            raise LoweringError(f"{where}, and the loop {loop.leaf.name} runs over elements and over the reduction at once",
                                hint="fuse loops of one sort only", about=about)
    seen = False
    outside: str | None = None  # a serial loop of the reduction, which goes to the inside
    for at, loop in enumerate(plan.loops):
        if seen and not loop.leaf.is_reduction:
            raise LoweringError(f"{where}, and the loop {loop.leaf.name} over elements stands inside of it",
                                hint=f"reorder {loop.leaf.name} to the outside of {crossing.leaf.name}", about=about)
        seen = seen or _is_crossing(loop)
        serial = loop.leaf.is_reduction and not _is_crossing(loop)
        if site.guests_at(at) and outside is not None and not serial:
            raise LoweringError(f"{where}; each thread runs the loop {outside} by itself, and {site.guests_at(at)[0].name} is "
                                f"computed at {loop.leaf.name} inside of it",
                                hint=f"reorder {outside} to the inside of {loop.leaf.name}", about=about)
        outside = loop.leaf.name if serial and outside is None else outside


def _first(var: Var, like: Expr) -> Load:
    """The load of element 0 of the memory `var` of a thread."""
    return Load(like.dtype, var, build.const(0, "int32"))


def _all(conditions: Sequence[Expr]) -> Expr:
    conjunction = build.true()
    for condition in conditions:
        conjunction = build.logical_and(conjunction, condition)
    return conjunction


def _partial(nest: Nested, reduce: Reduce, serial: Sequence[int], kept: Sequence[Var], sources: Sequence[Expr],
             within: Sequence[Expr]) -> Stmt:
    """The loops with which one thread computes its partial results into the memory `kept`.

    serial: the numbers of its reduction loops; sources: the values to reduce; within: the guards of an iteration.
    """
    combiner, zero = reduce.combiner, build.const(0, "int32")
    values: dict[Var, Expr] = {left: _first(var, source) for left, var, source in zip(combiner.lhs, kept, sources)}
    values.update(zip(combiner.rhs, sources))
    news = [substitute(result, values) for result in combiner.result]
    if len(news) == 1:
        update: Stmt = Store(kept[0], news[0], zero)
    else:  # each new value may use all the old ones
        names = [Var(f"{nest.plan.op.name}.v{i}.new", new.dtype) for i, new in enumerate(news)]
        update = seq(*[Store(var, name, zero) for var, name in zip(kept, names)])
        for name, new in zip(reversed(names), reversed(news)):
            update = LetStmt(name, new, update)
    for condition in reversed(within):
        update = IfThenElse(build.likely(condition), update)
    for at in reversed(serial):
        update = nest.inside(at, nest.iteration(at, update))
    return seq(*[Store(var, value, zero) for var, value in zip(kept, combiner.identity_element)], update)


def _allreduce(plan: StagePlan, reduce: Reduce, sources: Sequence[Expr], condition: Expr, results: Sequence[Var]) -> Stmt:
    threads = [thread.var for thread in _combining(plan)]
    count = IntImm(dtype("uint32"), len(sources))
    call = Call(HANDLE, ALLREDUCE, (count, *sources, condition, *results, *threads))
    nothing = Call(HANDLE, REINTERPRET, (IntImm(dtype("uint64"), 0),))
    return AttrStmt(reduce.combiner, "reduce_scope", nothing, Evaluate(call))
