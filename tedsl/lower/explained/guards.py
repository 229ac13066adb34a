"""The guards that remain in the loops of a stage, with their reasons and the directives that caused them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import And, Call, Expr, Reduce, Var
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.script import script
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lower.checks import check_reads
from tedsl.lower.explained.words import told_apart
from tedsl.lower.plan import Guard, Launch, StagePlan
from tedsl.lower.threads.wrap import launched
from tedsl.record import record
from tedsl.schedule.causes import Cause, annotated, attached, directive_behind, kept, related, said
from tedsl.schedule.relations import ROUND_UP, Split

Owners = Mapping[Var, str]  # the stage of each loop
IN_FORMULA = {"rfactor": "the loop that rfactor took over has a tail",
              "cache_write": "a loop that cache_write took over has a tail",
              "transform_layout": "the layout has padding, which holds no elements"}


@record
class GuardReport:
    """A guard that remains in the loops, or a read whose index is clamped: the reason, and the directives that caused it."""

    condition: str
    reason: str
    origins: tuple[str, ...]
    kind: str = "guard"

    def lines(self) -> list[str]:
        return [f"{self.kind}: {self.condition}: {self.reason}", *(f"  from {origin}" for origin in self.origins)]


def guard_reports(plan: StagePlan, launch: Launch | None, guards: Sequence[Guard], owners: Owners) -> tuple[GuardReport, ...]:
    """Reports of all conditions of a stage: the `guards` of its statements, of threads, rolling buffers and its formula."""
    reports = [_guard(plan, guard, owners) for guard in guards]
    reports += [*_of_threads(plan, launch), *_of_memory(plan), *_in_formula(plan, owners), *_by_data(plan)]
    return tuple(dict.fromkeys(reports))


def _by_data(plan: StagePlan) -> Iterator[GuardReport]:
    """Reports of the reads of a formula whose index depends on data and is clamped."""
    if isinstance(plan.op, ComputeOp):
        for load in check_reads(plan.op, plan.domains).by_data:
            reason = (f"the index depends on data and is clamped to the nearest element of {load.producer.name}, unless "
                      'PassContext(config={"tir.data_index": ...}) says otherwise')
            yield GuardReport(script(load), reason, (), kind="clamped")


def _report(plan: StagePlan, condition: str, reason: str, causes: Sequence[Cause]) -> GuardReport:
    directives = [directive_behind(plan.stage.schedule, cause) for cause in causes]
    origins = dict.fromkeys(directive.origin for directive in directives if directive is not None)
    return GuardReport(condition, reason, tuple(origins))


def _guard(plan: StagePlan, guard: Guard, owners: Owners) -> GuardReport:
    causes: list[Cause]
    if guard.kind == "tile" and guard.of is not None:
        reason = "; ".join(dict.fromkeys(_uneven(plan, split) for split in guard.splits))
        causes = [related(plan.stage, split) for split in guard.splits]
    elif guard.kind == "tensor" and guard.of is not None and plan.host is not None:
        loop = plan.host.loops[plan.position].leaf
        reason = (f"what an iteration of {loop.name} of {plan.host.name} needs may reach beyond {plan.name} "
                  f"along {guard.of.name}")
        causes = [attached(plan.stage)]
    elif guard.kind == "short":
        reason = "where there are fewer iterations than one tile has, the tile is not full"
        causes = [related(plan.stage, split) for split in guard.splits]
    elif guard.kind == "read":
        reason = f"only for what is read: full tiles run beyond the end of {plan.name if guard.of is None else guard.of.name}"
        rounded = [relation for relation in plan.stage.relations if isinstance(relation, Split) and relation.tail == ROUND_UP]
        causes = [related(plan.stage, relation) for relation in rounded]
    else:
        reason, causes = "the schedule asks for it", [said(plan.stage, "store_predicate")]
    return _report(plan, script(told_apart(guard.condition, owners, plan.name)), reason, causes)


def _of_threads(plan: StagePlan, launch: Launch | None) -> Iterator[GuardReport]:
    """Reports of loops that are bound to more threads than they have iterations."""
    for loop in plan.loops:
        axis, count = loop.attr.bind_thread, launched(loop, launch)
        if axis is None or count is None or count is loop.extent:
            continue
        have, need = build.as_int(count), build.as_int(loop.extent)
        if have is None or have != need:
            yield _report(plan, f"{axis.name} < {script(loop.extent)}",
                          f"the kernel launches {script(count)} threads of {axis.thread_tag}, for another loop",
                          [annotated(plan.stage, loop.leaf, "bind_thread")])


def _of_memory(plan: StagePlan) -> Iterator[GuardReport]:
    """A report for a rolling buffer: elements kept from the previous iteration are not computed again."""
    if plan.stage.storage.rolling and plan.host is not None:
        loop = plan.host.loops[plan.position].leaf
        yield _report(plan, f"not computed by the iteration of {loop.name} before",
                      "what is kept in the rolling buffer is not computed again", [kept(plan.stage, "rolling")])


def _in_formula(plan: StagePlan, owners: Owners) -> Iterator[GuardReport]:
    """Reports of conditions that directives put into the formula: the tail of a split before rfactor or cache_write, the
    padding of a layout."""
    stage, recorder = plan.stage, plan.stage.schedule.recorder
    if not isinstance(stage.op, ComputeOp):
        return
    values = {axis.var: build.add(plan.mins[axis], plan.offsets[axis]) for axis in plan.axes if axis in plan.offsets}
    for number, directive in enumerate(recorder.directives):
        before, after = (recorder.history.fields(stage, at) for at in (number, number + 1))
        if after is None or directive.name not in IN_FORMULA:
            continue
        if before is None and directive.name == "cache_write":  # a new stage has the formula of the one it was made of
            stages = recorder.history.stages(number)
            before = next((said for other, said in stages if other.name == directive.stage), None)
        added = _conditions(after["op"]) - (0 if before is None else _conditions(before["op"]))
        if added > 0 and (condition := _outermost(stage.op, directive.name, added)) is not None:
            shown_as = told_apart(Analyzer().simplify(substitute(condition, values)), owners, plan.name)
            yield GuardReport(script(shown_as), IN_FORMULA[directive.name], (directive.origin,))


def _conditions(op: Operation) -> int:
    """The number of conditions around the formula of `op`."""
    body = op.body[0] if isinstance(op, ComputeOp) else None
    if isinstance(body, Reduce):
        return len(_parts(body.condition))
    count = 0
    while isinstance(body, Call) and body.op is IF_THEN_ELSE:
        count, body = count + 1, body.args[1]
    return count


def _outermost(op: ComputeOp, directive: str, added: int) -> Expr | None:
    """The conditions that a directive added around the formula, as one expression: for rfactor the first one marked likely,
    otherwise the last `added` ones. None if there are none.
    """
    body = op.body[0]
    whole = body.condition if isinstance(body, Reduce) else body.args[0] if _conditions(op) and isinstance(body, Call) else None
    if whole is None:
        return None
    likely = [node.args[0] for node in post_order(whole) if isinstance(node, Call) and node.op is LIKELY]
    if directive == "rfactor":
        return likely[0] if likely else None
    parts = [part for part in _parts(whole) if part not in likely and not isinstance(part, Call)]
    return functools.reduce(build.logical_and, parts[-added:]) if isinstance(body, Reduce) and parts else whole


def _parts(condition: Expr) -> list[Expr]:
    if isinstance(condition, And):
        return [*_parts(condition.a), *_parts(condition.b)]
    return [] if build.is_true(condition) else [condition]


def _uneven(plan: StagePlan, split: Split) -> str:
    """The reason why a split has more iterations than its parent."""
    part, extent = split.given, plan.extents[split.parent]
    if build.as_int(part) is not None and build.as_int(extent) is not None:
        if split.factor is None:
            return f"{script(part)} parts of {script(extent)} iterations are not all of one size"
        return f"{script(part)} does not divide {script(extent)}"
    return f"{script(part)} is not proved to divide {script(extent)}"
