"""Loops that are threads of a device: their variables, how many are launched, and whose memory spans them.

    s[C].bind(i, threadIdx.x)          attr [threadIdx.x] "thread_extent" = 64 { C[threadIdx.x] = ... }
    s[AA].bind(j, threadIdx.x)         attr [threadIdx.x] "thread_extent" = 64 { if (threadIdx.x < 10) { AA[...] = ... } }

A kernel is what stands inside the outermost loop that is bound to launched threads (blockIdx, threadIdx). It launches as
many threads of a tag as the largest loop bound to it has iterations; a smaller one is guarded. Virtual threads are loops
of their own, turned into copies of the code by a pass.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, StringImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import AttrStmt, Evaluate, IfThenElse, Stmt, is_no_op, seq
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import extent_of
from tedsl.lang.reads import has_load
from tedsl.lower.plan import Ends, Launch, Loop, StagePlan
from tedsl.schedule.causes import annotated
from tedsl.schedule.relations import Fuse, Rebase, Split
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import IterVarAttr
from tedsl.schedule.threads import is_shared_among, is_virtual, memory_owner, memory_rank, memory_scope, thread_rank


def thread_loop(plan: StagePlan, leaf: IterVar, attr: IterVarAttr, extent: Expr, analyzer: Analyzer) -> Loop:
    """The loop `leaf` of `plan`, bound to a thread axis; refuses an extent that is not that of the axis."""
    thread = attr.bind_thread
    assert thread is not None
    where = f"loop {leaf.name} of {plan.name} is bound to {thread.thread_tag}"
    if has_load(extent):
        raise LoweringError(f"{where}, and its extent is read from a tensor: threads are launched before anything is read",
                            hint=f"split {leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, leaf))
    own = {axis.var for axis in plan.axes}
    if any(v in own for v in variables(extent)):
        raise LoweringError(f"{where}, and its extent is {extent!r}, which differs from element to element: threads are "
                            "launched once for all of them", hint=f"split {leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, leaf))
    if thread.dom is not None:
        _check_domain(plan, where, thread, leaf, extent, analyzer)
    if is_virtual(thread.thread_tag):
        if build.as_int(extent) is None:
            raise LoweringError(f"{where}, and its extent {extent!r} is no constant: virtual threads are copies of the code",
                                hint=f"split {leaf.name} by a constant: nparts=2 gives two virtual threads",
                                about=annotated(plan.stage, leaf))
        var = Var(thread.name, thread.var.dtype)
    else:
        var = thread.var
    count = build.cast(var.dtype, extent)
    analyzer.bind(var, Range.from_min_extent(build.const(0, var.dtype), count))
    if build.as_int(extent) == 1:
        return Loop(leaf, attr, count, None, build.const(0, leaf.dtype))
    return Loop(leaf, attr, count, var, build.cast(leaf.dtype, var))


def _check_domain(plan: StagePlan, where: str, thread: IterVar, leaf: IterVar, extent: Expr, analyzer: Analyzer) -> None:
    assert thread.dom is not None
    count = extent_of(thread)
    if thread is leaf:
        return
    if build.as_int(thread.dom.min) != 0:
        raise LoweringError(f"{where}, whose range begins at {thread.dom.min!r}: threads are counted from 0",
                            hint=f'write te.thread_axis((0, n), "{thread.thread_tag}")',
                            about=annotated(plan.stage, leaf))
    if not analyzer.can_prove(build.equal(*build.match_operands(count, extent))):
        raise LoweringError(f"{where}, which has {count!r} threads; the loop has {extent!r} iterations",
                            hint=f"split {leaf.name} with factor={count!r} and bind the inner loop, or leave the range of "
                                 f'the axis out: te.thread_axis("{thread.thread_tag}")', about=annotated(plan.stage, leaf))


def forced_extents(plan: StagePlan) -> set[IterVar]:
    """The loops, and what they were made of, whose number of iterations is a number of threads: splits keep their factor
    even where the loop is shorter, as people write splits to get that many threads."""
    forced = {leaf for leaf in plan.stage.leaf_iter_vars if plan.stage.attr_of(leaf).bind_thread is not None}
    for relation in reversed(plan.stage.relations):
        match relation:
            case Split(parent=p, outer=o, inner=i) if o in forced or i in forced:
                forced.add(p)
            case Fuse(outer=o, inner=i, fused=f) if f in forced:
                forced |= {o, i}
            case Rebase(parent=p, rebased=r) if r in forced:
                forced.add(p)
    return forced


# --- memory that several threads share ------------------------------------------------------------------------------

def spans(plan: StagePlan, loop: Loop) -> bool:
    """Whether the memory of `plan` is that of all threads of `loop`, which stands around it."""
    thread = loop.attr.bind_thread
    return thread is not None and is_shared_among(memory_scope(plan.stage), thread.thread_tag)


def outer_threads(plan: StagePlan, reader: StagePlan) -> Mapping[Var, Ends]:
    """The ranges of the threads around `plan` that share its memory: it is computed for all of them together.

    Those of the host are left out if it is the `reader`: its loops are looked at before.
    """
    found: dict[Var, Ends] = {}
    inner = plan
    while inner.host is not None:
        for loop in inner.host.loops[:inner.position + 1] if inner.host is not reader else ():
            if loop.var is not None and spans(plan, loop):
                found[loop.var] = build.const(0, loop.var.dtype), build.sub(loop.extent, 1)
        inner = inner.host
    return found


def bind_outer_threads(plan: StagePlan, analyzer: Analyzer) -> None:
    """Tell `analyzer` the ranges of the threads around `plan`: other stages may have used the same axes with other ranges."""
    for host, until in hosts(plan):
        for loop in host.loops[:until + 1]:
            if loop.var is not None and loop.attr.bind_thread is not None:
                analyzer.bind(loop.var, Range.from_min_extent(build.const(0, loop.var.dtype), loop.extent))


# --- launches -------------------------------------------------------------------------------------------------------

def plan_launches(plans: Sequence[StagePlan], analyzer: Analyzer) -> None:
    """Find out how many threads each kernel launches, and note it at every bound loop. Refuses loops that do not fit."""
    launches: dict[tuple[StagePlan, int], Launch] = {}
    for plan in plans:  # hosts come after their guests: a kernel is found from within
        for at in _bound(plan):
            _join(launches, plan, at, analyzer)
    for plan in plans:
        for at in _bound(plan):
            launch = launches[_kernel_of(plan, at)]
            _check_binding(plan, at, analyzer)
            loop = plan.loops[at]
            plan.loops[at] = replace(loop, launched=launch.counts[_tag(loop)])
        plan.launch = next((launches[_kernel_of(plan, at)] for at in _bound(plan)), None) or _around(plan, launches)


def _bound(plan: StagePlan) -> list[int]:
    """The numbers of the loops of `plan` that are launched threads."""
    return [at for at, loop in enumerate(plan.loops)
            if loop.attr.bind_thread is not None and not is_virtual(loop.attr.bind_thread.thread_tag)]


def _tag(loop: Loop) -> str:
    assert loop.attr.bind_thread is not None
    return loop.attr.bind_thread.thread_tag


def _kernel_of(plan: StagePlan, at: int) -> tuple[StagePlan, int]:
    """The outermost bound loop around loop `at` of `plan`, itself included."""
    found = plan, min(_bound(plan), default=at)
    for host, until in hosts(plan):
        bound = [k for k in _bound(host) if k <= until]
        if bound:
            found = host, bound[0]
    return found


def hosts(plan: StagePlan) -> Iterator[tuple[StagePlan, int]]:
    """The stages around `plan` from the inside out, each with the number of the loop inside which the way goes on."""
    while plan.host is not None:
        yield plan.host, plan.position
        plan = plan.host


def _around(plan: StagePlan, launches: Mapping[tuple[StagePlan, int], Launch]) -> Launch | None:
    """The kernel around a stage that binds nothing itself."""
    if not any(_bound(host) and _bound(host)[0] <= until for host, until in hosts(plan)):
        return None
    return launches.get(_kernel_of(plan, 0))


def _join(launches: dict[tuple[StagePlan, int], Launch], plan: StagePlan, at: int, analyzer: Analyzer) -> None:
    """Add loop `at` of `plan` to the launch that it belongs to."""
    root, first = _kernel_of(plan, at)
    launch = launches.setdefault((root, first), Launch(root, first))
    loop = plan.loops[at]
    tag, count = _tag(loop), loop.extent
    if loop.leaf.is_reduction and not analyzer.can_prove(build.greater_equal(count, 1)):
        count = build.maximum(count, 1)  # without any iteration the neutral element is still stored
    _check_count(launch, plan, loop)
    assert loop.attr.bind_thread is not None
    axes = launch.axes.setdefault(tag, [])
    if loop.attr.bind_thread not in axes:
        axes.append(loop.attr.bind_thread)
    known = launch.counts.setdefault(tag, count)
    if known is count or analyzer.can_prove(build.less_equal(count, known)):
        return
    if not analyzer.can_prove(build.less_equal(known, count)):
        raise LoweringError(f"loop {loop.leaf.name} of {plan.name} makes {count!r} threads of {tag}; another loop of the same "
                            f"kernel makes {known!r}, and neither is proved to be the larger number",
                            hint="split both loops by the same constant and bind the inner loops",
                            about=annotated(plan.stage, loop.leaf))
    launch.counts[tag] = count


def _check_count(launch: Launch, plan: StagePlan, loop: Loop) -> None:
    """The number of threads is known where they are launched: outside of all loops of the kernel."""
    inside = {one.var: one.leaf.name for host, until in (*hosts(plan), (plan, len(plan.loops) - 1))
              for k, one in enumerate(host.loops[:until + 1])
              if one.var is not None and not (host is launch.root and k < launch.first)}
    wrong = [inside[v] for v in variables(loop.extent) if v in inside]
    if wrong:
        raise LoweringError(f"loop {loop.leaf.name} of {plan.name} is bound to {_tag(loop)}, and how many iterations it has "
                            f"({loop.extent!r}) depends on the loop {wrong[0]} around it",
                            hint=f"split {loop.leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, loop.leaf))


def _check_binding(plan: StagePlan, at: int, analyzer: Analyzer) -> None:
    """Threads that compute a stage together need memory that all of them see (the result of a reduction comes to each of
    them), and a loop inside of a loop over the same threads has no others."""
    loop = plan.loops[at]
    tag, scope = _tag(loop), memory_scope(plan.stage) or "global"
    around = next((host for host, until in hosts(plan) if any(k <= until and _tag(host.loops[k]) == tag for k in _bound(host))),
                  None)
    launched = next(((host, host.loops[k]) for host, until in hosts(plan) for k in _bound(host) if k <= until), None)
    if launched is not None and tag.startswith("blockIdx"):
        so = "so is a loop" if around is not None else f"{launched[1].leaf.name}, to {_tag(launched[1])}, is a loop"
        raise LoweringError(f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and {so} of "
                            f"{(around or launched[0]).name} around it: blocks cannot wait for each other",
                            hint=_without_blocks(plan, loop),
                            about=annotated(plan.stage, loop.leaf))
    if not loop.leaf.is_reduction and not is_shared_among(scope, tag):
        owner = "one thread" if memory_rank(scope) > thread_rank("threadIdx.x") else "one block"
        kept = memory_owner(plan.stage)
        memory = "its memory" if kept is plan.stage else f"the memory of {kept.name} that it is computed into"
        raise LoweringError(
            f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and {memory}, of scope {scope!r}, belongs to {owner}: "
            "no other can compute a part of it",
            hint=f"leave loop {loop.leaf.name} unbound, or use memory that they share: "
                 f'{kept.written}.set_scope("{"shared" if tag.startswith("threadIdx") else "global"}")',
            about=annotated(plan.stage, loop.leaf))
    if around is None:
        return
    if loop.leaf.is_reduction and not is_shared_among(scope, tag):
        _check_same_part(plan, loop, tag, scope)
    outer = next(one for one in around.loops if one.attr.bind_thread is not None and _tag(one) == tag)
    if not analyzer.can_prove(build.greater_equal(outer.extent, loop.extent)):
        raise LoweringError(f"loop {loop.leaf.name} of {plan.name} needs {loop.extent!r} threads of {tag}; inside of "
                            f"{around.name} there are {outer.extent!r}",
                            hint=f"split {loop.leaf.name} with factor={outer.extent!r} and bind the inner loop",
                            about=annotated(plan.stage, loop.leaf))


def _without_blocks(plan: StagePlan, loop: Loop) -> str:
    """What to do about blocks inside of a launch; a stage in the steps of a scan has no other place."""
    unbound = f"leave loop {loop.leaf.name} unbound"
    scan = scans_of(plan.stage.schedule).steps.get(plan.stage)
    if scan is None:
        return f"{unbound}, or {plan.stage.written}.compute_root()"
    launched = any(thread.thread_tag.startswith("blockIdx") for thread in scan.env_threads)
    only = f", and give {scan.written}.env_threads axes of threadIdx only" if launched else ""
    return f"{unbound}, or bind it to a threadIdx axis{only}: the threads of one block wait for each other between the steps"


def _check_same_part(plan: StagePlan, loop: Loop, tag: str, scope: str) -> None:
    """Threads that combine their partial results, each for memory of its own, compute the same elements."""
    own = {one.var: f"loop {one.leaf.name} of {host.name}" for host, until in hosts(plan) for one in host.loops[:until + 1]
           if one.var is not None and one.attr.bind_thread is not None and one.attr.bind_thread.thread_tag == tag}
    starts = [end for axis in plan.axes for end in (plan.mins[axis], plan.extents[axis])]
    found = next((own[v] for start in starts for v in variables(start) if v in own), None)
    if found is not None:
        raise LoweringError(
            f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and so is {found}: each thread needs elements of "
            f"{plan.name} of its own, in memory of scope {scope!r}, and those that would combine their parts compute others",
            hint=f"leave loop {loop.leaf.name} unbound, so that each thread computes its elements alone; or let them compute "
                 f'all elements together, in memory that they share: {plan.stage.written}.set_scope("shared")',
            about=annotated(plan.stage, loop.leaf))


# --- statements -----------------------------------------------------------------------------------------------------

def around_thread(loop: Loop, body: Stmt) -> Stmt:
    """`body` on the threads that `loop` is bound to; guarded if there are more of them than iterations."""
    if build.as_int(loop.extent) == 0:
        return seq()  # a launch has at least one thread, and there is nothing to do for it
    limit = exceeded(loop)
    return on_threads(loop, body if limit is None or is_no_op(body) else IfThenElse(build.likely(limit), body))


def on_threads(loop: Loop, body: Stmt) -> Stmt:
    """`body` on all the threads that `loop` is bound to."""
    thread = loop.attr.bind_thread
    assert thread is not None
    if is_no_op(body):
        return body
    if is_virtual(thread.thread_tag):
        return body if loop.var is None else AttrStmt(thread.replace(var=loop.var), "virtual_thread", loop.extent, body)
    return AttrStmt(thread, "thread_extent", loop.extent if loop.launched is None else loop.launched, body)


def exceeded(loop: Loop) -> Expr | None:
    """What holds for the threads that have an iteration of `loop`; None if each has one."""
    thread, count = loop.attr.bind_thread, loop.launched
    if thread is None or count is None or count is loop.extent or build.as_int(build.sub(count, loop.extent)) == 0:
        return None
    return build.less(thread.var, loop.extent)


def store_predicate(plan: StagePlan) -> Expr:
    """The store predicate of the stage; each virtual thread, which is a loop of its own, by the value of that loop."""
    condition = plan.stage.store_predicate
    assert condition is not None
    values = {one.attr.bind_thread.var: build.cast(one.attr.bind_thread.var.dtype, one.value)
              for host, until in (*hosts(plan), (plan, len(plan.loops) - 1)) for one in host.loops[:until + 1]
              if one.attr.bind_thread is not None and is_virtual(one.attr.bind_thread.thread_tag)}
    return substitute(condition, values) if values else condition


def between_steps(plan: StagePlan) -> Stmt | None:
    """Where the threads launched around a scan wait before each step: it reads rows that other threads have computed."""
    if all(thread.thread_tag.startswith("blockIdx") for thread in plan.stage.env_threads):
        return None
    return Evaluate(build.call("tir.tvm_storage_sync", StringImm("global"), dtype_="int32"))


def on_named_threads(plan: StagePlan, stmt: Stmt, within: Container[IterVar]) -> Stmt:
    """`stmt` on the threads that the store predicate of its stage names, and to which no loop around it is bound: of those of
    the stage only the loops `within`."""
    condition = plan.stage.store_predicate
    if condition is None:
        return stmt
    bound = {one.attr.bind_thread.var for host, until in (*hosts(plan), (plan, len(plan.loops) - 1))
             for one in host.loops[:until + 1]
             if one.attr.bind_thread is not None and (host is not plan or one.leaf in within)}
    launched = {axis.var: axis for axes in plan.launch.axes.values() for axis in axes} if plan.launch is not None else {}
    for var in variables(condition):
        if var in launched and var not in bound:
            axis = launched[var]
            assert plan.launch is not None
            stmt = AttrStmt(axis, "thread_extent", plan.launch.counts[axis.thread_tag], stmt)
    return stmt


def bind_threads(plan: StagePlan, analyzer: Analyzer) -> None:
    """Tell `analyzer` the ranges of the threads of the kernel of `plan`: another kernel may have used the same axes."""
    if plan.launch is not None:
        for tag, axes in plan.launch.axes.items():
            for axis in axes:
                analyzer.bind(axis.var, Range.from_min_extent(build.const(0, axis.var.dtype), plan.launch.counts[tag]))
