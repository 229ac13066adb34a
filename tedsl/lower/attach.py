"""Where each stage stands: one after the other at the root, or at the start of a loop body, inside the memory it needs.

    realize P(region) { P...; C... }        the memory of a stage lives as long as the body it is computed in
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.iters import Range
from tedsl.ir.stmt import Stmt, seq
from tedsl.lang.operation import ComputeOp
from tedsl.lower.arguments import Memory
from tedsl.lower.kinds import kind_of
from tedsl.lower.plan import StagePlan
from tedsl.lower.storage import check_argument, prefetching, produced, realized


def place_stages(plans: Sequence[StagePlan], memory: Memory, analyzer: Analyzer) -> Stmt:
    """The loops of all stages."""
    return _placed([plan for plan in plans if plan.host is None], None, memory, analyzer)


def _placed(plans: Sequence[StagePlan], body: Stmt | None, memory: Memory, analyzer: Analyzer) -> Stmt:
    """The loops of `plans` in order, then `body`, in the memory of `plans`."""
    stmt = seq(*[produced(plan, memory.outputs(plan), _nest(plan, memory, analyzer)) for plan in plans], body)
    for plan in reversed(plans):
        for index, buffer in reversed(list(enumerate(memory.outputs(plan)))):
            if memory.is_argument(buffer):
                check_argument(plan, buffer)
            else:
                stmt = realized(plan, buffer, _region(plan, index), stmt, analyzer)
    return stmt


def _region(plan: StagePlan, index: int) -> tuple[Range, ...]:
    """The part of output number `index` that is computed."""
    if isinstance(plan.op, ComputeOp):
        return tuple(Range.from_min_extent(plan.mins[axis], plan.padded.get(axis, plan.extents[axis])) for axis in plan.op.axis)
    return tuple(Range.from_min_extent(build.const(0, extent.dtype), extent) for extent in plan.op.shape_of(index))


def _nest(plan: StagePlan, memory: Memory, analyzer: Analyzer) -> Stmt:
    return kind_of(plan.op).statements(plan, memory.outputs(plan), memory, analyzer, _guests(plan, memory, analyzer))


def _guests(plan: StagePlan, memory: Memory, analyzer: Analyzer) -> Callable[[int, Stmt], Stmt]:
    def around(at: int, body: Stmt) -> Stmt:
        guests = plan.guests.get(at)
        return prefetching(plan, at, _placed(guests, body, memory, analyzer) if guests else body, memory)

    return around

