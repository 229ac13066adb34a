"""Requirements on splits by a symbolic number, such as n // 4: it must be at least 1 in a call, or no loop would run.

They are checked before the loops, with the shapes, and only if they are not proved: not for constants, and not for n or
te.max(n // 4, 1) iterations of n. The number may be 0 in a call that has nothing to compute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Cast, Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp, Operation, root_axes
from tedsl.lang.reads import has_load
from tedsl.lower.checks import NO_DOMAINS, Requirement
from tedsl.lower.plan import Placement
from tedsl.lower.versions import runs_where
from tedsl.schedule.causes import directive_behind, related
from tedsl.schedule.record.formula import spelled
from tedsl.schedule.relations import Relation, Split, children_of, parents_of
from tedsl.schedule.state import ScheduleState, StageState


def count_requirements(schedule: ScheduleState, plans: Sequence[Placement], known: Collection[Var], analyzer: Analyzer) \
        -> list[Requirement]:
    """The requirements, checked at the call, that each symbolic factor and nparts is at least 1.

    known: the variables that a call gives values to.
    """
    requirements: list[Requirement] = []
    for stage in schedule.stages:
        for op, relations in stage.factored:
            requirements += _of_nest(stage, op, relations, NO_DOMAINS, [], known, analyzer)
    for plan in plans:
        if any(_count(relation) is not None for relation in plan.stage.relations):
            where = runs_where(plan)
            requirements += _of_nest(plan.stage, plan.op, plan.stage.relations, plan.domains, where, known, analyzer)
    return requirements


def _count(relation: Relation) -> Expr | None:
    """The factor or nparts of a split if it is not a constant; None for a constant and for other relations."""
    count = (relation.nparts if relation.factor is None else relation.factor) if isinstance(relation, Split) else None
    return None if count is None or build.as_int(count) is not None else count


def _of_nest(stage: StageState, op: Operation, relations: Sequence[Relation], domains: Mapping[IterVar, Range],
             where: Sequence[Expr], known: Collection[Var], analyzer: Analyzer) -> Iterator[Requirement]:
    """The requirements of the loops of `op` that `relations` define. They apply to calls in which `where` holds, which run this
    loop nest.
    """
    for relation in relations:
        count = _count(relation)
        if count is None or not isinstance(relation, Split) or any(v not in known for v in variables(count)):
            continue  # of a variable without value, the error is that of the loops
        extents = _extents(_axes(op, relations, relation.parent), domains, known)
        some, positive = [build.greater_equal(e, 1) for e in extents], build.greater_equal(count, 1)
        if _proved(positive, [*where, *some], analyzer):
            continue
        is_size = _proved(build.greater_equal(count, 0), where, analyzer)
        empty = reduce(build.logical_or, (build.less_equal(e, 0) for e in extents), build.const(False))
        if not is_size:
            empty = build.logical_and(build.equal(count, 0), empty)
        wanted = build.logical_or(empty, positive)
        for condition in where:
            wanted = build.logical_or(build.logical_not(condition), wanted)
        if not build.is_true(wanted):
            yield Requirement(wanted, _message(stage, relation, count, "0" if is_size else "0 or negative"))


def _axes(op: Operation, relations: Iterable[Relation], loop: IterVar) -> list[IterVar]:
    """The axes that must not be empty for `loop` to have iterations: the data axes, and those that `loop` is derived from."""
    made_of = {loop}
    for relation in reversed(list(relations)):
        if made_of.intersection(children_of(relation)):
            made_of.update(parents_of(relation))
    elements = () if op.axis_are_loops else getattr(op, "axis", ())
    return [axis for axis in root_axes(op) if axis in elements or axis in made_of]


def _extents(axes: Iterable[IterVar], domains: Mapping[IterVar, Range], known: Collection[Var]) -> list[Expr]:
    """The extents of those `axes` that depend on the arguments of a call alone."""
    doms = [domains.get(axis, axis.dom) for axis in axes]
    extents = [dom.extent for dom in doms if dom is not None and dom.extent is not None]
    return [e for e in extents if not has_load(e) and all(v in known for v in variables(e))]


def _proved(condition: Expr, facts: Iterable[Expr], analyzer: Analyzer) -> bool:
    with ExitStack() as scopes:
        for fact in facts:
            scopes.enter_context(analyzer.constraint_scope(fact))
        return analyzer.can_prove(condition)


def _message(stage: StageState, relation: Split, count: Expr, value: str) -> str:
    what = "nparts" if relation.factor is None else "factor"
    given = count.value if isinstance(count, Cast) else count
    text = spelled(given) or repr(given)
    text = text[1:-1] if text[0] == "(" and text[-1] == ")" else text  # (n // 4), as it is spelled inside of others
    number = text if given is count else f"{text} (as {count.dtype})"
    general = stage.version_of
    owner = general if general is not None and relation in general.relations else stage
    directive = directive_behind(stage.schedule, related(owner, relation))
    message = (f"the {what} {number} of split({relation.parent.name}) of {stage.name} is {value} in this call, and must be at "
               "least 1")
    hint = f"split by te.max({text}, 1)"
    if type(stage.op) is ComputeOp and relation in stage.relations:
        hint += f", or call {stage.written}.specialize for such calls before the split"
    return f"{message}\n  from: {directive.text}\n  hint: {hint}" if directive is not None else f"{message}\n  hint: {hint}"
