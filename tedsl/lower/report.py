"""What lowering found out about a schedule, in words: extents, memory, places, and why each guard is still there.

    C: output
      for i.outer in 0..13
        (B is computed here)
        for i.inner in 0..8
          guard: i.outer*8 + i.inner < 100: 8 does not divide 100
            from s[C].split(s[C].op.axis[0], factor=8)  (prog.py:6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import TedslError
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.explained.guards import GuardReport, Owners, guard_reports
from tedsl.lower.explained.memory import Allocated, Sizes, is_laid_out, memory_text
from tedsl.lower.lower import lower_schedule
from tedsl.lower.plan import Guard, StagePlan
from tedsl.schedule.causes import attached, blaming, directive_behind
from tedsl.schedule.handles import Schedule
from tedsl.schedule.show import loop_text, place_text, schedule_text
from tedsl.schedule.state import AttachType, StageState


@dataclass(frozen=True)
class StageReport:
    """One stage: where it is computed and who said so, its memory, its loops, its guards."""

    name: str
    place: str
    memory: str = ""
    loops: tuple[str, ...] = ()
    guests: tuple[tuple[str, ...], ...] = ()
    guards: tuple[GuardReport, ...] = ()

    def lines(self) -> list[str]:
        found = [f"{self.name}: {self.place}"]
        if self.memory:
            found.append(f"  memory: {self.memory}")
        for depth, loop in enumerate(self.loops, 1):
            found.append("  " * depth + loop)
            found += ["  " * (depth + 1) + f"({guest} is computed here)" for guest in self.guests[depth - 1]]
        indent = "  " * (len(self.loops) + 1)
        return found + [indent + line for guard in self.guards for line in guard.lines()]


@dataclass(frozen=True)
class Report:
    """All stages of a schedule, producers first; `problem` says why lowering refused it, and then no more is known."""

    head: str
    stages: tuple[StageReport, ...]
    problem: str = ""
    plain: str = field(default="", repr=False)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.plain}\nThis schedule cannot be lowered to loops as it stands:\n" + _indented(self.problem)
        return "\n".join([self.head, *("  " + line for stage in self.stages for line in stage.lines())])


def report(sch: Schedule, allocated: Allocated) -> Report:
    """What lowering knows about `sch`. Inputs and outputs are taken to be the caller's arrays.

    allocated: what passes make of the memory of the loops; asked where they change it.
    """
    state = sch.state
    head = f"schedule of {', '.join(op.name for op in state.outputs)}"
    found: dict[StageState, tuple[StagePlan, list[Guard]]] = {}

    def observe(plans: Sequence[StagePlan], analyzer: Analyzer) -> None:
        found.update({plan.stage: (plan, [g for g in plan.guards if not analyzer.can_prove(g.condition)]) for plan in plans})

    try:
        with blaming(state):
            func = lower_schedule(sch, _arguments(sch), to_run=False, observe=observe)
            sizes = allocated(func) if any(is_laid_out(plan) for plan, _ in found.values()) else {}
    except TedslError as error:
        return Report(head, (), str(error), schedule_text(state))
    owners = {loop.var: plan.name for plan, _ in found.values() for loop in plan.loops if loop.var is not None}
    stages = []
    for stage in state.with_versions():
        plan, guards = found.get(stage, (None, []))
        stages.append(_stage(stage, plan, guards, owners, sizes))
    return Report(head, tuple(stages))


def _arguments(sch: Schedule) -> list[Tensor | Var | Buffer]:
    """The inputs, then the outputs of a schedule. What stands for the state of a scan is no input."""
    states = {tensor.op for s in sch.state.stages if isinstance(s.op, ScanOp) for tensor in s.op.state_placeholder}
    inputs = [s.origin_op for s in sch.state.stages if s.is_placeholder and s.origin_op not in states]
    outputs = [op for op in sch.state.outputs if op not in inputs]
    return [op.output(i) for op in (*inputs, *outputs) for i in range(op.num_outputs)]


def _stage(stage: StageState, plan: StagePlan | None, guards: Sequence[Guard], owners: Owners, sizes: Sizes) -> StageReport:
    behind = directive_behind(stage.schedule, attached(stage)) if stage.attach_type != AttachType.ROOT else None
    place = place_text(stage) + (f", from {behind.origin}" if behind is not None else "")
    name = stage.name
    if stage.condition is not None:
        name, place = f"{name} where {stage.condition!r}", "computed by other loops"
    if plan is None:
        return StageReport(name, place)
    loops = tuple([loop_text(stage, loop.leaf, loop.extent) for loop in plan.loops])
    guests = tuple([tuple([guest.name for guest in plan.guests.get(at, ())]) for at in range(len(loops))])
    return StageReport(name, place, memory_text(plan, sizes), loops, guests, guard_reports(plan, guards, owners))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
