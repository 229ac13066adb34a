"""The facts that lowering derives from a schedule, in words: extents, memory, places, and the reason of each guard.

    C: output
      for i.outer in 0..13
        (B is computed here)
        for i.inner in 0..8
          guard: i.outer*8 + i.inner < 100: 8 does not divide 100
            from s[C].split(s[C].op.axis[0], factor=8)  (prog.py:6)
"""

from __future__ import annotations

from dataclasses import field

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import TedslError
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.ir.script import shown
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.explained.guards import GuardReport, Owners, guard_reports
from tedsl.lower.explained.sizes import Allocated, Sizes, is_laid_out, memory_text
from tedsl.lower.lower import lower_schedule
from tedsl.lower.place_stages import Guards
from tedsl.lower.plan import Program, StagePlan
from tedsl.record import record
from tedsl.schedule.causes import attached, blaming, directive_behind
from tedsl.schedule.handles import Schedule
from tedsl.schedule.show import loop_text, place_text, schedule_text
from tedsl.schedule.state import AttachType, StageState


@record
class StageReport:
    """One stage: the place where it is computed and the directive for that, its memory, its loops, its guards."""

    name: str
    place: str
    memory: str = ""
    loops: tuple[str, ...] = ()
    guests: tuple[tuple[str, ...], ...] = ()
    guards: tuple[GuardReport, ...] = ()

    def lines(self) -> list[str]:
        lines = [f"{self.name}: {self.place}"]
        if self.memory:
            lines.append(f"  memory: {self.memory}")
        for depth, loop in enumerate(self.loops, 1):
            lines.append("  " * depth + loop)
            lines += ["  " * (depth + 1) + f"({guest} is computed here)" for guest in self.guests[depth - 1]]
        indent = "  " * (len(self.loops) + 1)
        return lines + [indent + line for guard in self.guards for line in guard.lines()]


@record
class Report:
    """All stages of a schedule, producers first; `problem` is the error with which lowering refused it."""

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

    allocated: gives the memory as the passes allocate it; called where they change it.
    """
    state = sch.state
    head = f"schedule of {', '.join(op.name for op in state.outputs)}"
    lowered: list[tuple[Program, Guards]] = []

    def observe(program: Program, guards: Guards, analyzer: Analyzer) -> None:
        needed = {plan: [guard for guard in guards[plan] if not analyzer.can_prove(guard.condition)] for plan in program.plans}
        lowered.append((program, needed))

    try:
        with blaming(state):
            func = lower_schedule(sch, _arguments(sch), to_run=False, observe=observe)
            sizes = allocated(func) if any(map(is_laid_out, lowered[0][0].plans)) else {}
    except TedslError as error:
        return Report(head, (), str(error), schedule_text(state))
    program, guards = lowered[0]
    plans = {plan.stage: plan for plan in program.plans}
    owners = {loop.var: plan.name for plan in plans.values() for loop in plan.loops if loop.var is not None}
    return Report(head, tuple([_stage(stage, plans.get(stage), program, guards, owners, sizes)
                               for stage in state.with_versions()]))


def _arguments(sch: Schedule) -> list[Tensor | Var | Buffer]:
    """The inputs, then the outputs of a schedule. State placeholders of scans are not inputs."""
    states = {tensor.op for s in sch.state.stages if isinstance(s.op, ScanOp) for tensor in s.op.state_placeholder}
    inputs = [s.origin_op for s in sch.state.stages if s.is_placeholder and s.origin_op not in states]
    outputs = [op for op in sch.state.outputs if op not in inputs]
    return [op.output(i) for op in (*inputs, *outputs) for i in range(op.num_outputs)]


def _stage(stage: StageState, plan: StagePlan | None, program: Program, guards: Guards, owners: Owners,
           sizes: Sizes) -> StageReport:
    behind = directive_behind(stage.schedule, attached(stage)) if stage.attach_type != AttachType.ROOT else None
    place = place_text(stage) + (f", from {behind.origin}" if behind is not None else "")
    name = stage.name
    if stage.condition is not None:
        name, place = f"{name} where {shown(stage.condition)}", "computed by other loops"
    if plan is None:
        return StageReport(name, place)
    loops = tuple([loop_text(stage, loop.leaf, loop.extent) for loop in plan.loops])
    guests = tuple([tuple([guest.name for guest in program.guests_at(plan, at)]) for at in range(len(loops))])
    return StageReport(name, place, memory_text(plan, sizes), loops, guests,
                       guard_reports(plan, program.launches.get(plan), guards[plan], owners))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
