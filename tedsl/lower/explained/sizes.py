"""The memory of a stage, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import script
from tedsl.lang.scan.operation import ScanOp
from tedsl.lower.plan import StagePlan
from tedsl.lower.threads.around import hosts
from tedsl.schedule.memory_options import PLAIN
from tedsl.schedule.thread_ranks import is_virtual

Sizes = Mapping[str, Expr]  # of each buffer, the number of elements that are allocated
Allocated = Callable[[PrimFunc], Sizes]


def is_laid_out(plan: StagePlan) -> bool:
    """Whether passes allocate a different size for a stage than its region: because of double buffers, rolling buffers or
    padding.
    """
    threads = [loop.attr.bind_thread for host, until in hosts(plan) for loop in host.loops[:until + 1]]
    return plan.stage.storage is not PLAIN or any(axis is not None and is_virtual(axis.thread_tag) for axis in threads)


def memory_text(plan: StagePlan, allocated: Sizes) -> str:
    """The memory of a stage as a sentence: its sizes, dtype, elements and bytes, and for which loop it exists."""
    if plan.stage.is_output:
        return "the caller's array"
    scan = next((stage.name for stage in plan.stage.schedule.stages if isinstance(stage.op, ScanOp)
                 and any(t.op is plan.op for t in (*stage.op.init, *stage.op.update))), None)
    if scan is not None:
        return f"rows of {scan}"
    region = [plan.padded.get(axis, plan.extents[axis]) for axis in plan.data_axes]
    words = []
    for value in range(plan.op.num_outputs):
        sizes, dtype = region or list(plan.op.shape_of(value)), plan.op.dtype_of(value)
        whole = allocated.get(plan.op.output(value).name, _product(sizes)) if is_laid_out(plan) else _product(sizes)
        elements = build.as_int(whole)
        count = f", {script(whole)} elements" if is_laid_out(plan) else ""
        if elements is not None:
            count = f", {elements} element{'s' * (elements != 1)}, {elements * dtype.bytes} bytes"
        scope = f", in {plan.stage.scope} scope" if plan.stage.scope else ""
        words.append(f"{' x '.join(script(size) for size in sizes) or '1'} {dtype}{count}{scope}")
    if plan.host is not None:
        words[-1] += f", for each iteration of {plan.host.loops[plan.position].leaf.name} of {plan.host.name}"
    return "; ".join(words)


def _product(sizes: Iterable[Expr]) -> Expr:
    total: Expr = build.const(1, "int64")
    for size in sizes:
        total = build.mul(total, build.cast("int64", size))
    return total
