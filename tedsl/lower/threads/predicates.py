"""The check that under the store predicate of a stage every element is still stored by some thread.

    for i in threadIdx.x: B[i]         if (threadIdx.x == 0): 15 of 16 elements of B would be stored by nobody
    for i: B[i], within threadIdx.x    if (threadIdx.x == 0): each thread has all of B, and one of them stores it

A thread is fixed if the elements, or the memory that they are stored in, are its own; the others all store the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.iters import Range
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.reads import has_load
from tedsl.lower.plan import Loop, Program, StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.lower.threads.cross_thread import chooses_a_copy, crosses_threads
from tedsl.lower.threads.wrap import store_predicate
from tedsl.record import record
from tedsl.schedule.causes import said
from tedsl.schedule.thread_ranks import is_shared_among, is_virtual, memory_scope

CHOICES = 64  # of the threads that all store the same: who may be the one that stores
POINTS = 4096  # threads to look at one by one


@record(eq=False)
class _Thread:
    """A thread axis in a store predicate: its variable, its number of threads, and whether it is fixed."""

    var: Var
    count: Expr
    fixed: str  # what belongs to one of these threads alone; "" if all of them store the same


def check_predicates(program: Program, analyzer: Analyzer) -> None:
    """Refuses store predicates over threads that their stage does not run on, and those that leave elements to nobody."""
    bound = {axis.var for plan in program.plans for loop in plan.loops if (axis := loop.attr.bind_thread) is not None}
    for plan in program.plans:
        if plan.stage.store_predicate is not None:
            condition = store_predicate(plan)
            threads = _threads_of(plan, condition, bound, program)
            if threads is not None and not (crosses_threads(plan) and chooses_a_copy(plan, condition)):
                _check_all_stored(plan, condition, threads, analyzer)


def _threads_of(plan: StagePlan, condition: Expr, bound: set[Var], program: Program) -> list[_Thread] | None:
    """The thread axes in `condition`; refuses other variables, and returns None where the loops are only read."""
    loops = [(host is plan, loop) for host, until in (*hosts(plan), (plan, len(plan.loops) - 1))
             for loop in host.loops[:until + 1] if loop.attr.bind_thread is not None]
    virtual = {loop.var: (own, loop) for own, loop in loops if loop.var is not None and is_virtual(_tag(loop))}
    launch = program.launches.get(plan)
    launched = {axis.var: axis.thread_tag for axes in launch.axes.values() for axis in axes} if launch is not None else {}
    kept_apart = not _read_alike(plan, program.plans)
    threads = []
    for var in dict.fromkeys(variables(condition)):
        if var in virtual:
            threads.append(_thread(plan, var, _tag(virtual[var][1]), virtual[var][1].extent, [virtual[var]], kept_apart))
        elif var in launched:
            assert launch is not None
            tag = launched[var]
            threads.append(_thread(plan, var, tag, launch.counts[tag], [l for l in loops if _tag(l[1]) == tag], kept_apart))
        else:
            refuse_to_run(LoweringError(
                f"the store predicate of {plan.name}, {shown(plan.stage.store_predicate)}, is about {var.name}: "
                + (f"{plan.name} does not run on these threads" if var in bound else "that is not a thread"),
                hint=f"bind a loop of {plan.name} to them, or leave the predicate out" if var in bound else
                "a condition over threads, tx.var.equal(0); one on elements belongs in the formula: te.if_then_else",
                about=said(plan.stage, "store_predicate")))
            return None
    return threads


def _tag(loop: Loop) -> str:
    assert loop.attr.bind_thread is not None
    return loop.attr.bind_thread.thread_tag


def _thread(plan: StagePlan, var: Var, tag: str, count: Expr, around: Sequence[tuple[bool, Loop]], kept_apart: bool) -> _Thread:
    mine = next((loop for own, loop in around if own and not loop.leaf.is_reduction and loop.leaf is not loop.attr.bind_thread),
                None)  # not the threads that the user launched around the stage: they do the same
    if mine is not None:
        return _Thread(var, mine.extent, f"its elements, by loop {mine.leaf.name}")
    scope = memory_scope(plan.stage) or "global"
    if kept_apart and not is_shared_among(scope, tag):
        return _Thread(var, around[0][1].extent if around else count, f"its memory, of scope {scope!r}")
    return _Thread(var, count, "")


def _read_alike(plan: StagePlan, plans: Sequence[StagePlan]) -> bool:
    """Whether every reader of the stage has the same predicate, so that the other threads do not need its values."""
    condition = plan.stage.store_predicate
    readers = [reader for reader in plans if any(read.tensor.op is plan.stage.op for read in reader.reads)]
    return bool(readers) and all((other := reader.stage.store_predicate) is not None and structural_equal(other, condition)
                                 for reader in readers)


def _check_all_stored(plan: StagePlan, condition: Expr, threads: Sequence[_Thread], analyzer: Analyzer) -> None:
    for thread in threads:
        analyzer.bind(thread.var, Range.from_min_extent(build.const(0, thread.var.dtype), thread.count))
    if analyzer.can_prove(condition):
        return
    free = [thread for thread in threads if not thread.fixed]
    if not has_load(condition):
        choices = product(*[_who_may_store(thread, condition) for thread in free])
        if any(_all_stored(condition, free, choice, analyzer) for choice in islice(choices, CHOICES)):
            return
        left_out = _left_out(condition, threads, analyzer)
        if left_out == "":
            return
    else:
        left_out = None
    of = "; ".join(f"{thread.var.name} has {thread.fixed}" for thread in threads if thread.fixed)
    example = "" if not left_out else f": no thread stores the elements of {left_out}" if of else ": it holds for no thread"
    refuse_to_run(LoweringError(
        f"the store predicate of {plan.name}, {shown(plan.stage.store_predicate)}, is not shown to leave every element to some "
        f"thread{example}" + (f" ({of})" if of else ""),
        hint="a predicate chooses one of several threads that all compute the same, as those of a reduction across threads; "
             "a condition on elements belongs in the formula: te.if_then_else", about=said(plan.stage, "store_predicate")))


def _who_may_store(thread: _Thread, condition: Expr) -> list[Expr]:
    """Thread numbers at which `condition` may hold, to be tried: the first, the last, and constants that occur in it."""
    named = [node.value for node in post_order(condition) if isinstance(node, IntImm) and node.dtype == thread.var.dtype]
    around = [value + step for value in named for step in (0, -1, 1)]
    first = [build.const(value, thread.var.dtype) for value in dict.fromkeys([0, *around]) if value >= 0]
    return [*first, build.cast(thread.var.dtype, build.sub(thread.count, 1))]


def _all_stored(condition: Expr, free: Sequence[_Thread], choice: Sequence[Expr], analyzer: Analyzer) -> bool:
    """Whether `condition` is proved with the `free` threads at `choice`, for every value of the fixed ones, and these threads
    exist.
    """
    there = all(build.as_int(value) == 0 or analyzer.can_prove(build.less(value, thread.count))
                for thread, value in zip(free, choice))
    return there and analyzer.can_prove(substitute(condition, {thread.var: value for thread, value in zip(free, choice)}))


def _left_out(condition: Expr, threads: Sequence[_Thread], analyzer: Analyzer) -> str | None:
    """Describes values of the fixed threads for which the condition never holds; "" if there are none; None if the threads are
    too many to try, or not constant in number.
    """
    counts = [build.as_int(thread.count) for thread in threads]
    points = 1
    for count in counts:
        if count is None:
            return None
        points *= count
    if points > POINTS:
        return None
    stored: dict[tuple[tuple[str, int], ...], bool] = {}
    for values in _values(threads, counts):
        known = {var: build.const(value, var.dtype) for var, value in values.items()}
        holds = build.as_int(analyzer.simplify(substitute(condition, known)))
        if holds is None:
            return None
        fixed = tuple((thread.var.name, values[thread.var]) for thread in threads if thread.fixed)
        stored[fixed] = stored.get(fixed, False) or bool(holds)
    missing = next((fixed for fixed, once in stored.items() if not once), None)
    if missing is None:
        return ""
    return ", ".join(f"{name} = {value}" for name, value in missing) or "no thread"


def _values(threads: Sequence[_Thread], counts: Sequence[int | None]) -> Iterator[Mapping[Var, int]]:
    for point in product(*[range(count or 0) for count in counts]):
        yield {thread.var: value for thread, value in zip(threads, point)}
