"""What lowering found out about a schedule, in words: extents, memory, places, and why each guard is still there.

    C: output
      for i.outer in 0..13
        (B is computed here)
        for i.inner in 0..8
          guard: i.outer*8 + i.inner < 100: 8 does not divide 100
            from s[C].split(s[C].op.axis[0], factor=8)  (prog.py:6)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Add, BinaryOp, Expr, FloorDiv, FloorMod, Mul, Sub, Var
from tedsl.ir.iters import IterVar
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.lower import lower_schedule
from tedsl.lower.plan import Guard, StagePlan
from tedsl.schedule.causes import Cause, attached, blaming, directive_behind, related, said
from tedsl.schedule.handles import Schedule
from tedsl.schedule.relations import Fuse, Rebase, Split
from tedsl.schedule.show import loop_text, place_text, schedule_text
from tedsl.schedule.state import AttachType, StageState


@dataclass(frozen=True)
class GuardReport:
    """A condition that stays in the loops, why, and the directives that made it needed."""

    condition: str
    reason: str
    origins: tuple[str, ...]

    def lines(self) -> list[str]:
        return [f"guard: {self.condition}: {self.reason}", *(f"  from {origin}" for origin in self.origins)]


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


def report(sch: Schedule) -> Report:
    """What lowering knows about `sch`. Inputs and outputs are taken to be the caller's arrays."""
    state = sch.state
    head = f"schedule of {', '.join(op.name for op in state.outputs)}"
    found: dict[StageState, tuple[StagePlan, list[Guard]]] = {}

    def observe(plans: Sequence[StagePlan], analyzer: Analyzer) -> None:
        found.update({plan.stage: (plan, [g for g in plan.guards if not analyzer.can_prove(g.condition)]) for plan in plans})

    try:
        with blaming(state):
            lower_schedule(sch, _arguments(sch), to_run=False, observe=observe)
    except TedslError as error:
        return Report(head, (), str(error), schedule_text(state))
    return Report(head, tuple([_stage(stage, *found.get(stage, (None, []))) for stage in state.with_versions()]))


def _arguments(sch: Schedule) -> list[Tensor | Var | Buffer]:
    """The inputs, then the outputs of a schedule. What stands for the state of a scan is no input."""
    states = {tensor.op for s in sch.state.stages if isinstance(s.op, ScanOp) for tensor in s.op.state_placeholder}
    inputs = [s.origin_op for s in sch.state.stages if s.is_placeholder and s.origin_op not in states]
    outputs = [op for op in sch.state.outputs if op not in inputs]
    return [op.output(i) for op in (*inputs, *outputs) for i in range(op.num_outputs)]


def _stage(stage: StageState, plan: StagePlan | None, guards: Sequence[Guard]) -> StageReport:
    behind = directive_behind(stage.schedule, attached(stage)) if stage.attach_type != AttachType.ROOT else None
    place = place_text(stage) + (f", from {behind.origin}" if behind is not None else "")
    name = stage.name
    if stage.condition is not None:
        name, place = f"{name} where {stage.condition!r}", "computed by other loops"
    if plan is None:
        return StageReport(name, place)
    loops = tuple([loop_text(stage, loop.leaf, loop.extent) for loop in plan.loops])
    guests = tuple([tuple([guest.name for guest in plan.guests.get(at, ())]) for at in range(len(loops))])
    return StageReport(name, place, _memory(plan), loops, guests,
                       tuple(dict.fromkeys(_guard(plan, guard) for guard in guards)))


def _memory(plan: StagePlan) -> str:
    """How much of the stage exists at a time."""
    if plan.stage.is_output:
        return "the caller's array"
    scan = next((one.name for one in plan.stage.schedule.stages if isinstance(one.op, ScanOp)
                 and any(t.op is plan.op for t in (*one.op.init, *one.op.update))), None)
    if scan is not None:
        return f"rows of {scan}"
    region = [plan.padded.get(axis, plan.extents[axis]) for axis in plan.data_axes]
    words = []
    for value in range(plan.op.num_outputs):
        sizes, dtype = region or list(plan.op.shape_of(value)), plan.op.dtype_of(value)
        elements = build.as_int(_product(sizes))
        shape = " x ".join(_shown(size) for size in sizes) or "1"
        count = "" if elements is None else f", {elements} element{'s' * (elements != 1)}, {elements * dtype.bytes} bytes"
        words.append(f"{shape} {dtype}{count}")
    if plan.stage.scope:
        words[-1] += f", in {plan.stage.scope} scope"
    if plan.host is not None:
        words[-1] += f", for each iteration of {plan.host.loops[plan.position].leaf.name} of {plan.host.name}"
    return "; ".join(words)


def _product(sizes: Iterable[Expr]) -> Expr:
    total: Expr = build.const(1, "int64")
    for size in sizes:
        total = build.mul(total, build.cast("int64", size))
    return total


def _guard(plan: StagePlan, guard: Guard) -> GuardReport:
    state = plan.stage.schedule
    causes: list[Cause]
    if guard.kind == "tile" and guard.of is not None:
        splits = _uneven_splits(plan, guard.of)
        reason = "; ".join(dict.fromkeys(_uneven(plan, split) for split in splits)) or f"{guard.of.name} may run too far"
        causes = [related(plan.stage, split) for split in splits]
    elif guard.kind == "tensor" and guard.of is not None and plan.host is not None:
        loop = plan.host.loops[plan.position].leaf
        reason = (f"what an iteration of {loop.name} of {plan.host.name} needs may reach beyond {plan.name} "
                  f"along {guard.of.name}")
        causes = [attached(plan.stage)]
    elif guard.kind == "short":
        reason, causes = "where there are fewer iterations than one tile has, the tile is not full", []
    else:
        reason, causes = "the schedule asks for it", [said(plan.stage, "store_predicate")]
    origins = [found.origin for cause in causes if (found := directive_behind(state, cause)) is not None]
    return GuardReport(_shown(guard.condition), reason, tuple(dict.fromkeys(origins)))


def _uneven_splits(plan: StagePlan, compared: IterVar) -> list[Split]:
    """The splits that let `compared` run beyond its extent: its own, and those of its outer part."""
    reached, found = {compared}, []
    for relation in plan.stage.relations:
        match relation:
            case Split(parent=p, outer=o) if p in reached:
                reached.add(o)
                if p not in plan.exact:
                    found.append(relation)
            case Rebase(parent=p, rebased=r) if p in reached:
                reached.add(r)
            case Fuse(outer=o, fused=f) if o in reached:
                reached.add(f)
    return found


def _uneven(plan: StagePlan, split: Split) -> str:
    """Why the iterations of a split are more than those of its parent."""
    part = split.factor if split.factor is not None else split.nparts
    assert part is not None
    extent = plan.extents[split.parent]
    if build.as_int(part) is not None and build.as_int(extent) is not None:
        if split.factor is None:
            return f"{_shown(part)} parts of {_shown(extent)} iterations are not all of one size"
        return f"{_shown(part)} does not divide {_shown(extent)}"
    return f"nothing says that {_shown(part)} divides {_shown(extent)}"


INFIX: dict[type, tuple[str, int]] = {  # how an operator is written, and how tightly it binds
    LT: (" < ", 1), LE: (" <= ", 1), GT: (" > ", 1), GE: (" >= ", 1), EQ: (" == ", 1), NE: (" != ", 1),
    Add: (" + ", 2), Sub: (" - ", 2), Mul: ("*", 3), FloorDiv: ("//", 3), FloorMod: ("%", 3)}


def _shown(e: Expr, outside: int = 0) -> str:
    """An expression as a sentence shows it: with no more parentheses than it needs."""
    number = build.as_int(e)
    if number is not None:
        return str(number)
    if not isinstance(e, BinaryOp) or type(e) not in INFIX:
        return repr(e)
    sign, binds = INFIX[type(e)]
    text = f"{_shown(e.a, binds)}{sign}{_shown(e.b, binds + 1)}"
    return f"({text})" if binds < outside else text


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
