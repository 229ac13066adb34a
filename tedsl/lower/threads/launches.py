"""The number of threads that each kernel launches.

    s[C].bind(i, threadIdx.x)          attr [threadIdx.x] "thread_extent" = 64 { C[threadIdx.x] = ... }
    s[AA].bind(j, threadIdx.x)         attr [threadIdx.x] "thread_extent" = 64 { if (threadIdx.x < 10) { AA[...] = ... } }

A kernel is what stands inside the outermost loop that is bound to launched threads (blockIdx, threadIdx). It launches as
many threads of a tag as the largest loop bound to it has iterations; a smaller one is guarded.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import variables
from tedsl.lower.plan import Launch, Loop, StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.schedule.causes import annotated
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.thread_ranks import is_shared_among, is_virtual, memory_owner, memory_rank, memory_scope, thread_rank

Kernel = tuple[StagePlan, int]  # the outermost loop that is bound to launched threads: of which stage, and its number


def launches_of(plans: Sequence[StagePlan], analyzer: Analyzer) -> dict[StagePlan, Launch]:
    """The launch that each stage on threads is part of. Refuses loops that do not fit."""
    bound: dict[Kernel, list[tuple[StagePlan, Loop]]] = {}
    for plan in plans:  # hosts come after their guests: a kernel is found from within
        for at in _bound(plan):
            bound.setdefault(_kernel_of(plan, at), []).append((plan, plan.loops[at]))
    launches = {kernel: _launch(kernel, loops, analyzer) for kernel, loops in bound.items()}
    for plan in plans:
        for at in _bound(plan):
            _check_binding(plan, at, analyzer)
    return {plan: launches[kernel] for plan in plans if (kernel := _kernel_around(plan)) is not None}


def _bound(plan: StagePlan) -> list[int]:
    """The numbers of the loops of `plan` that are launched threads."""
    return [at for at, loop in enumerate(plan.loops)
            if loop.attr.bind_thread is not None and not is_virtual(loop.attr.bind_thread.thread_tag)]


def _tag(loop: Loop) -> str:
    assert loop.attr.bind_thread is not None
    return loop.attr.bind_thread.thread_tag


def _kernel_of(plan: StagePlan, at: int) -> Kernel:
    """The outermost bound loop around loop `at` of `plan`, itself included."""
    kernel = plan, min(_bound(plan), default=at)
    for host, until in hosts(plan):
        bound = [k for k in _bound(host) if k <= until]
        if bound:
            kernel = host, bound[0]
    return kernel


def _kernel_around(plan: StagePlan) -> Kernel | None:
    """The kernel that `plan` is part of, even if none of its own loops is bound; None outside of kernels."""
    bound = _bound(plan)
    if not bound and not any(_bound(host) and _bound(host)[0] <= until for host, until in hosts(plan)):
        return None
    return _kernel_of(plan, bound[0] if bound else 0)


def _launch(kernel: Kernel, loops: Sequence[tuple[StagePlan, Loop]], analyzer: Analyzer) -> Launch:
    """The threads of a kernel in which `loops` are bound: for each tag as many as its largest loop has iterations."""
    axes: dict[str, list[IterVar]] = {}
    counts: dict[str, Expr] = {}
    for plan, loop in loops:
        _check_count(kernel, plan, loop)
        assert loop.attr.bind_thread is not None
        tag, thread = _tag(loop), loop.attr.bind_thread
        if thread not in axes.setdefault(tag, []):
            axes[tag].append(thread)
        count = loop.extent
        if loop.leaf.is_reduction and not analyzer.can_prove(build.greater_equal(count, 1)):
            count = build.maximum(count, 1)  # without any iteration the neutral element is still stored
        counts[tag] = _larger(plan, loop, count, counts.get(tag, count), analyzer)
    return Launch(*kernel, axes, counts)


def _larger(plan: StagePlan, loop: Loop, count: Expr, known: Expr, analyzer: Analyzer) -> Expr:
    """The larger of two numbers of threads: the `count` of `loop`, and `known` from other loops of the kernel."""
    if known is count or analyzer.can_prove(build.less_equal(count, known)):
        return known
    if analyzer.can_prove(build.less_equal(known, count)):
        return count
    refuse_to_run(LoweringError(
        f"loop {loop.leaf.name} of {plan.name} makes {shown(count)} threads of {_tag(loop)}; another loop of the same kernel "
        f"makes {shown(known)}, and neither is proved to be the larger number",
        hint="split both loops by the same constant and bind the inner loops", about=annotated(plan.stage, loop.leaf)))
    return build.maximum(count, known)


def _check_count(kernel: Kernel, plan: StagePlan, loop: Loop) -> None:
    """Refuses a number of threads that depends on loops inside the kernel: it must be known at the launch."""
    root, first = kernel
    inside = {inner.var: inner.leaf.name for host, until in (*hosts(plan), (plan, len(plan.loops) - 1))
              for k, inner in enumerate(host.loops[:until + 1])
              if inner.var is not None and not (host is root and k < first)}
    wrong = [inside[v] for v in variables(loop.extent) if v in inside]
    if wrong:
        raise LoweringError(f"loop {loop.leaf.name} of {plan.name} is bound to {_tag(loop)}, and how many iterations it has "
                            f"({shown(loop.extent)}) depends on the loop {wrong[0]} around it",
                            hint=f"split {loop.leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, loop.leaf))


def _check_binding(plan: StagePlan, at: int, analyzer: Analyzer) -> None:
    """Refuses an illegal binding of loop number `at`: to blocks inside a launch; to threads that do not share the memory that
    they compute (unless it is a reduction, whose result every thread gets, or "local" memory of which each thread computes and
    reads a part: `tedsl/passes/races/own_parts.py`); to an axis of which an enclosing loop has fewer threads.
    """
    loop = plan.loops[at]
    tag, scope = _tag(loop), memory_scope(plan.stage) or "global"
    if loop.leaf.is_reduction and tag.startswith("blockIdx"):
        refuse_to_run(LoweringError(
            f"{loop.leaf.name} is a reduction loop of {plan.name}: all its iterations write one element, and {tag} would race",
            hint=f"bind a loop over elements, or bind {loop.leaf.name} to threadIdx.x: threads of one block can combine their "
                 f"results; s.rfactor({plan.stage.tensor_written}, ...) makes it a loop over elements",
            about=annotated(plan.stage, loop.leaf)))
        return
    around = next((host for host, until in hosts(plan) if any(k <= until and _tag(host.loops[k]) == tag for k in _bound(host))),
                  None)
    launched = next(((host, host.loops[k]) for host, until in hosts(plan) for k in _bound(host) if k <= until), None)
    if launched is not None and tag.startswith("blockIdx"):
        so = "so is a loop" if around is not None else f"{launched[1].leaf.name}, to {_tag(launched[1])}, is a loop"
        refuse_to_run(LoweringError(
            f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and {so} of {(around or launched[0]).name} around it: "
            "blocks cannot wait for each other", hint=_without_blocks(plan, loop), about=annotated(plan.stage, loop.leaf)))
    if not loop.leaf.is_reduction and not is_shared_among(scope, tag) and not _computes_parts(plan, loop):
        owner = "one thread" if memory_rank(scope) > thread_rank("threadIdx.x") else "one block"
        kept = memory_owner(plan.stage)
        memory = "its memory" if kept is plan.stage else f"the memory of {kept.name} that it is computed into"
        refuse_to_run(LoweringError(
            f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and {memory}, of scope {scope!r}, belongs to {owner}: "
            "no other can compute a part of it",
            hint=f"leave loop {loop.leaf.name} unbound, or use memory that they share: "
                 f'{kept.written}.set_scope("{"shared" if tag.startswith("threadIdx") else "global"}")',
            about=annotated(plan.stage, loop.leaf)))
    if around is None:
        return
    if loop.leaf.is_reduction and not is_shared_among(scope, tag):
        _check_same_part(plan, loop, tag, scope)
    outer = next(bound for bound in around.loops if bound.attr.bind_thread is not None and _tag(bound) == tag)
    if not analyzer.can_prove(build.greater_equal(outer.extent, loop.extent)):
        refuse_to_run(LoweringError(
            f"loop {loop.leaf.name} of {plan.name} needs {shown(loop.extent)} threads of {tag}; inside of {around.name} there "
            f"are {shown(outer.extent)}", hint=f"split {loop.leaf.name} with factor={shown(outer.extent)} and bind the inner "
            "loop", about=annotated(plan.stage, loop.leaf)))


def _computes_parts(plan: StagePlan, loop: Loop) -> bool:
    """Tells whether each thread of a bound loop computes a part of its own memory, of which its readers may need no other."""
    return (not loop.leaf.is_reduction and _tag(loop).startswith("threadIdx") and memory_scope(plan.stage) == "local"
            and memory_owner(plan.stage) is plan.stage)


def parted_memory(plans: Sequence[StagePlan]) -> dict[str, tuple[str, ...]]:
    """The attribute of functions that names the memory of which each thread computes a part, for `own_parts.py` of
    passes/races; {} if there is none.
    """
    names = [plan.op.output(at).name for plan in plans if any(_computes_parts(plan, plan.loops[at]) for at in _bound(plan))
             for at in range(plan.op.num_outputs)]
    return {"tedsl.own_parts": tuple(dict.fromkeys(names))} if names else {}


def _without_blocks(plan: StagePlan, loop: Loop) -> str:
    """The hint for a loop bound to blocks inside a launch; a stage in the steps of a scan cannot be moved out of it."""
    unbound = f"leave loop {loop.leaf.name} unbound"
    scan = scans_of(plan.stage.schedule).steps.get(plan.stage)
    if scan is None:
        return f"{unbound}, or {plan.stage.written}.compute_root()"
    launched = any(thread.thread_tag.startswith("blockIdx") for thread in scan.env_threads)
    only = f", and give {scan.written}.env_threads axes of threadIdx only" if launched else ""
    return f"{unbound}, or bind it to a threadIdx axis{only}: the threads of one block wait for each other between the steps"


def _check_same_part(plan: StagePlan, loop: Loop, tag: str, scope: str) -> None:
    """Refuses a cross-thread reduction into memory of one thread whose threads compute different elements."""
    around = [(host, outer) for host, until in hosts(plan) for outer in host.loops[:until + 1]]
    own = {outer.var: f"loop {outer.leaf.name} of {host.name}" for host, outer in around
           if outer.var is not None and outer.attr.bind_thread is not None and outer.attr.bind_thread.thread_tag == tag}
    starts = [end for axis in plan.axes for end in (plan.mins[axis], plan.extents[axis])]
    differing = next((own[v] for start in starts for v in variables(start) if v in own), None)
    if differing is not None:
        refuse_to_run(LoweringError(
            f"loop {loop.leaf.name} of {plan.name} is bound to {tag}, and so is {differing}: each thread needs elements of "
            f"{plan.name} of its own, in memory of scope {scope!r}, and those that would combine their parts compute others",
            hint=f"leave loop {loop.leaf.name} unbound, so that each thread computes its elements alone; or let them compute "
                 f'all elements together, in memory that they share: {plan.stage.written}.set_scope("shared")',
            about=annotated(plan.stage, loop.leaf)))
