"""Checks of handwritten statements on threads: which memory a te.extern or a hybrid script may write.

    B = te.extern(...)    attr [threadIdx.x] "thread_extent" = 8 { B[threadIdx.x] = ... }     computed inside of other threads
    for j in range(8): l[j] = ...                                                             j is bound, l is "local"

A thread sees in memory of its own only what it wrote there itself. That suffices within one bound loop of a script, where each
iteration touches elements of its own; a loop outside of it that reads what other threads wrote is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import LAUNCH, AttrStmt, Stmt
from tedsl.ir.walk.accesses import accesses
from tedsl.ir.walk.contents import of_kinds
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lower.plan import Loop, StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.schedule.causes import annotated, attached
from tedsl.schedule.script_loops import axes_of
from tedsl.schedule.thread_ranks import is_shared_among, is_virtual


def check_launches(plan: StagePlan, body: Stmt, buffers: Sequence[Buffer]) -> None:
    """Refuses statements that launch threads and write memory that these threads do not share."""
    for node in of_kinds(body, AttrStmt):
        if not isinstance(node, AttrStmt) or node.attr_key != LAUNCH or not isinstance(node.node, IterVar):
            continue
        tag = node.node.thread_tag
        if build.as_int(node.value) == 1:
            continue
        if tag.startswith("blockIdx") and _in_kernel(plan):
            raise LoweringError(f"the statements of {plan.name} launch threads of {tag}, and {plan.name} is computed inside of "
                                "a kernel: blocks cannot wait for each other",
                                hint=f"compute it in a kernel of its own, {plan.stage.written}.compute_root()",
                                about=attached(plan.stage))
        wrong = next((buffer for buffer in buffers if not is_shared_among(buffer.scope(), tag)), None)
        if wrong is not None:
            shared = "shared" if tag.startswith("threadIdx") else "global"
            raise LoweringError(
                f"the statements of {plan.name} launch threads of {tag}, and the memory of {wrong.name}, of scope "
                f"{wrong.scope()!r}, belongs to {_owner(wrong.scope())}: each would have only the part that it computes itself",
                hint=f'{plan.stage.written}.set_scope("{shared}"): memory that they share; or '
                     f"{plan.stage.written}.compute_root()",
                about=attached(plan.stage))


def _owner(scope: str) -> str:
    return "one block" if is_shared_among(scope, "threadIdx.x") and is_shared_among(scope, "threadIdx.y") else "one thread"


def check_own_memory(plan: StagePlan) -> None:
    """Refuses a bound loop of a hybrid script if threads read elements that other threads wrote in memory they do not share."""
    op = plan.op
    assert isinstance(op, HybridOp)
    bound: dict[Var, list[Loop]] = {}  # for each loop of the script, those bound loops that are parts of it
    for loop in plan.loops:
        if loop.var is not None and _is_launched(loop):
            for axis in axes_of(plan.stage, loop.leaf):
                bound.setdefault(axis.var, []).append(loop)
    if not bound:
        return
    touched = list(accesses(op.body))
    around = {access: {loop.var for loop in access.loops} for access in touched}
    for write in touched:
        allocation = write.allocation()
        if not write.writes or allocation is None:
            continue
        buffer: Buffer = write.memory
        outside, scope = {loop.var for loop in allocation.loops()}, buffer.scope() or "global"
        of_a_block = _in_kernel(plan) or not outside.isdisjoint(bound)  # memory that a kernel allocates
        for var in around[write] - outside:
            read = any(other.memory is buffer and not other.writes and var not in around[other] for other in touched)
            for loop in bound.get(var, ()) if read else ():
                tag = _tag(loop)
                if not is_shared_among(scope, tag) or (of_a_block and tag.startswith("blockIdx")):
                    raise _read_by_others(plan, loop, buffer, scope)


def _is_launched(loop: Loop) -> bool:
    """Whether `loop` is bound to threads of a launch."""
    return loop.attr.bind_thread is not None and not is_virtual(loop.attr.bind_thread.thread_tag)


def _in_kernel(plan: StagePlan) -> bool:
    """Whether threads are launched around `plan`."""
    return any(_is_launched(loop) for host, until in hosts(plan) for loop in host.loops[:until + 1])


def _tag(loop: Loop) -> str:
    assert loop.attr.bind_thread is not None
    return loop.attr.bind_thread.thread_tag


def _read_by_others(plan: StagePlan, loop: Loop, buffer: Buffer, scope: str) -> LoweringError:
    tag = _tag(loop)
    blocks = tag.startswith("blockIdx")
    owner = "one block" if blocks else "one thread"
    hint = f"leave loop {loop.leaf.name} unbound" if blocks else \
        f'allocate {buffer.name} in the script with scope "shared", or leave loop {loop.leaf.name} unbound'
    return LoweringError(
        f"loop {loop.leaf.name} of {plan.name} is bound to {tag} and writes {buffer.name}, whose memory, of scope {scope!r}, "
        f"belongs to {owner}; {buffer.name} is read outside of that loop: there each has only the part that it wrote itself",
        hint=hint, about=annotated(plan.stage, loop.leaf))
