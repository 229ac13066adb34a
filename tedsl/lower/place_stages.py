"""Placement of the loops of all stages: in sequence at the root, or at the start of a loop body, inside their allocations.

    realize P(region) { P...; C... }        the memory of a stage lives as long as the body it is computed in
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import StringImm
from tedsl.ir.func import Accesses
from tedsl.ir.iters import Range
from tedsl.ir.source_line import READ_SOURCE, STAGE_SOURCE
from tedsl.ir.stmt import AttrStmt, IfThenElse, Stmt, seq
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.tensor import Tensor
from tedsl.lower.arguments import TensorBuffers
from tedsl.lower.kinds import kind_of
from tedsl.lower.plan import Guard, Program, StagePlan
from tedsl.lower.scan.step_regions import check_rows
from tedsl.lower.site import Site
from tedsl.lower.storage_attributes import check_argument, prefetching, produced, realized
from tedsl.lower.threads.around import bind_threads
from tedsl.lower.versions import memory_of, under_conditions
from tedsl.record import record
from tedsl.schedule.state import AttachType

Guards = Mapping[StagePlan, Sequence[Guard]]  # the conditions that the loops of each stage put on its statements


def place_stages(program: Program, memory: TensorBuffers, analyzer: Analyzer, *,
                 accesses: Accesses = Accesses.PROVED) -> tuple[Stmt, Guards]:
    """The loops of all stages; under attributes that say which stage they compute, if accesses are checked at run time."""
    placer = _Placer(program, memory, analyzer, accesses, {plan: [] for plan in program.plans})
    return placer.placed([plan for plan in program.plans if plan.host is None and plan.general is None], None), placer.guards


@record
class _Placer:
    program: Program
    memory: TensorBuffers
    analyzer: Analyzer
    accesses: Accesses
    guards: dict[StagePlan, list[Guard]]

    def placed(self, plans: Sequence[StagePlan], body: Stmt | None) -> Stmt:
        """The loops of `plans` in order, then `body`, in the memory of `plans`."""
        stmt = seq(*[produced(plan, self.program, self.memory.outputs(plan), self.versions(plan)) for plan in plans], body)
        for plan in reversed(plans):
            for index, buffer in reversed(list(enumerate(self.memory.outputs(plan)))):
                if self.memory.is_shared(plan, index):
                    check_rows(plan)
                    continue
                if self.memory.is_argument(buffer):
                    check_argument(plan, buffer)
                else:
                    stmt = realized(plan, buffer, _region(plan, index), stmt, self.analyzer)
        return stmt

    def versions(self, plan: StagePlan) -> Stmt:
        """The loops of a stage: the first version whose condition holds, else the general ones."""
        stmt = self.nest(plan)
        for version in reversed(self.program.versions.get(plan, ())):
            assert version.condition is not None
            with under_conditions(version, self.analyzer):
                special = replace(self, memory=memory_of(version, self.program, self.memory)).nest(version)
            known = build.as_int(version.condition)
            stmt = special if known == 1 else stmt if known == 0 else IfThenElse(version.condition, special, stmt)
        return stmt

    def nest(self, plan: StagePlan) -> Stmt:
        bind_threads(self.program.launches.get(plan), self.analyzer)
        buffers = self.memory.outputs(plan)
        stmt = kind_of(plan.op).statements(Site(plan, self.program, buffers, self.memory, self.analyzer,
                                                functools.partial(self.after_guests, plan), self.guards[plan].append))
        if not self.accesses.name_stages:
            return stmt
        for tensor, source in read_sources(plan):
            stmt = AttrStmt(self.memory(tensor), READ_SOURCE, StringImm(source), stmt)
        return AttrStmt(buffers[0], STAGE_SOURCE, StringImm(source_of(plan.name, plan.op)), stmt)

    def after_guests(self, plan: StagePlan, at: int, body: Stmt) -> Stmt:
        """`body` of loop number `at` after the stages that are computed there."""
        guests = self.program.guests_at(plan, at)
        return prefetching(plan, at, self.placed(guests, body) if guests else body, self.memory)


def source_of(name: str, op: Operation) -> str:
    """A stage and the source line of its formula, in words."""
    line = getattr(op, "source", None)
    return name + (f" ({line})" if line is not None else "")


def read_sources(plan: StagePlan) -> Iterator[tuple[Tensor, str]]:
    """The tensors that formulas inlined into `plan` read, each with a description of the stage whose formula reads it."""
    stages = plan.stage.schedule.stage_map
    readers: dict[Tensor, list[Operation]] = {}
    formulas, own = [plan.op], source_of(plan.name, plan.op)
    for op in formulas:  # grows
        for tensor in dict.fromkeys(op.input_tensors):
            stage = stages[tensor.op]
            if stage.attach_type not in (AttachType.INLINE, AttachType.INLINED):
                readers.setdefault(tensor, []).append(op)
            elif stage.op not in formulas:
                formulas.append(stage.op)
    for tensor, ops in readers.items():
        inlined = [source_of(op.name, op) for op in ops if op is not plan.op]
        if inlined:
            single = len(ops) == 1
            yield tensor, f"{inlined[0]}, inlined into {own}" if single else f"{own}, with {', '.join(inlined)} inlined"


def _region(plan: StagePlan, index: int) -> tuple[Range, ...]:
    """The part of output number `index` that is computed."""
    if isinstance(plan.op, ComputeOp):
        return tuple(Range.from_min_extent(plan.mins[axis], plan.padded.get(axis, plan.extents[axis])) for axis in plan.op.axis)
    return tuple(Range.from_min_extent(build.const(0, extent.dtype), extent) for extent in plan.op.shape_of(index))
