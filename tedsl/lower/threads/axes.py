"""Loops that are bound to thread axes: their variables and how many iterations they may have.

    s[C].bind(i, threadIdx.x)          the variable of the loop i is that of threadIdx.x

Virtual threads are loops of their own, turned into copies of the code by a pass.
"""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import extent_of
from tedsl.lang.reads import has_load
from tedsl.lower.plan import Loop, Placement
from tedsl.schedule.causes import annotated
from tedsl.schedule.state import IterVarAttr
from tedsl.schedule.thread_ranks import is_virtual


def thread_loop(plan: Placement, leaf: IterVar, attr: IterVarAttr, extent: Expr, analyzer: Analyzer) -> Loop:
    """The loop `leaf` of `plan`, bound to a thread axis; refuses an extent that differs from that of the axis."""
    thread = attr.bind_thread
    assert thread is not None
    where = f"loop {leaf.name} of {plan.name} is bound to {thread.thread_tag}"
    if has_load(extent):
        raise LoweringError(f"{where}, and its extent is read from a tensor: threads are launched before anything is read",
                            hint=f"split {leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, leaf))
    own = {axis.var for axis in plan.axes}
    if any(v in own for v in variables(extent)):
        raise LoweringError(f"{where}, and its extent is {shown(extent)}, which differs from element to element: threads are "
                            "launched once for all of them", hint=f"split {leaf.name} by a constant and bind the inner loop",
                            about=annotated(plan.stage, leaf))
    if thread.dom is not None:
        _check_domain(plan, where, thread, leaf, extent, analyzer)
    if is_virtual(thread.thread_tag):
        if build.as_int(extent) is None:
            raise LoweringError(f"{where}, and its extent {shown(extent)} is not a constant: virtual threads are "
                                "copies of the code",
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


def _check_domain(plan: Placement, where: str, thread: IterVar, leaf: IterVar, extent: Expr, analyzer: Analyzer) -> None:
    assert thread.dom is not None
    count = extent_of(thread)
    if thread is leaf:
        return
    if build.as_int(thread.dom.min) != 0:
        raise LoweringError(f"{where}, whose range begins at {shown(thread.dom.min)}: threads are counted from 0",
                            hint=f'write te.thread_axis((0, n), "{thread.thread_tag}")',
                            about=annotated(plan.stage, leaf))
    if not analyzer.can_prove(build.equal(*build.match_operands(count, extent))):
        raise LoweringError(f"{where}, which has {shown(count)} threads; the loop has {shown(extent)} iterations",
                            hint=f"split {leaf.name} with factor={shown(count)} and bind the inner loop, or leave the range of "
                                 f'the axis out: te.thread_axis("{thread.thread_tag}")', about=annotated(plan.stage, leaf))
