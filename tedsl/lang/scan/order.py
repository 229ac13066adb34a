"""Checks, when te.scan is called, that each step reads earlier rows only.

Walks from the updates, which are computed in row t in step t, to the reads of the states, through the operations between them.
The region that such an operation computes in step t follows from the indices at which it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.arith.interval import relax
from tedsl.errors import ExpressionError
from tedsl.ir import build
from tedsl.ir.expr import GE, GT, LE, LT, Expr, ProducerLoad, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.around import Facts
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation, extent_of
from tedsl.lang.reads import guarded_loads, has_load, takes_its_ends
from tedsl.lang.tensor import Tensor

Ends = tuple[Expr, Expr]  # lowest and highest value, both included


def check_order(axis: IterVar, updates: Sequence[Tensor], states: Sequence[Tensor], where: str) -> None:
    """Raise ExpressionError where a step reads a row of a state that is not computed yet."""
    _Order(axis, updates, states, where).check()


def dependents(ops: Sequence[Operation], states: Sequence[Tensor]) -> list[Operation]:
    """Those of `ops`, producers first, that read one of `states`, directly or not."""
    readers: dict[Operation, None] = {}
    for op in ops:
        if any(tensor in states or tensor.op in readers for tensor in op.input_tensors):
            readers[op] = None
    return list(readers)


class _Order:
    def __init__(self, axis: IterVar, updates: Sequence[Tensor], states: Sequence[Tensor], where: str) -> None:
        self.step, self.updates, self.states, self.where = axis, updates, states, where
        self.regions: dict[Operation, list[Ends | None]] = {}  # of each operation, per axis, in step t; None: everything

    def check(self) -> None:
        members = dependents(producers_first([tensor.op for tensor in self.updates]), self.states)
        t = self.step.var
        for update in self.updates:
            self.regions[update.op] = [(t, t), *[None] * (update.ndim - 1)]
        for op in reversed(members):
            if type(op) is not ComputeOp:
                raise ExpressionError(f"{self.where}: {op.name} depends on the state and is not a plain te.compute: it "
                                      "cannot be computed step by step",
                                      hint="read in the steps only what te.compute makes of the state")
            place = Place(op, self.regions[op], self.step)
            for body in op.body if op.reduction is None else op.body[:1]:
                for load, facts in guarded_loads(body):
                    self.check_load(place, load, facts, members)

    def check_load(self, place: Place, load: ProducerLoad, facts: Facts | None, members: Sequence[Operation]) -> None:
        if load.producer in self.states:
            self.check_row(place, load, facts)
        elif load.producer in self.updates:
            if not place.proves(build.equal(load.indices[0], self.step.var), facts):
                self.refuse(place, load, "of which only the row of the step at hand exists",
                            f"read earlier rows from the state: {self.states[self.updates.index(load.producer)].name}[...]")
        elif load.producer.op in members:
            region = [place.reached(index) for index in load.indices]
            known = self.regions.get(load.producer.op)
            self.regions[load.producer.op] = region if known is None else list(map(place.union, known, region))

    def check_row(self, place: Place, load: ProducerLoad, facts: Facts | None) -> None:
        row, first = load.indices[0], self.step.dom
        assert first is not None
        name = place.step_name
        if not place.proves(build.less(row, self.step.var), facts):
            self.refuse(place, load, f"and in step {name} only the rows before {name} exist: {shown(row)} is not known to be "
                        f"less than {name}", f"read an earlier row, such as {load.producer.name}[{name} - 1, ...]; an "
                        f"index that depends on data is kept there by te.min(index, {name} - 1)")
        low = place.lowest(row)
        direct = any(update.op is place.op for update in self.updates)  # else it may be read under a condition: lowering asks
        if direct and facts is None and low is not None and low < 0 and takes_its_ends(row, [axis.var for axis in place.axes]):
            self.refuse(place, load, f"and in the first step, {shown(first.min)}, that is row {low}",
                        f"give init {(build.as_int(first.min) or 0) - low} rows, or read under a condition: te.if_then_else")

    def refuse(self, place: Place, load: ProducerLoad, problem: str, hint: str) -> None:
        raise ExpressionError(f"{self.where}: {place.op.name} reads {shown(load)}, {problem}", hint=hint)


class Place:
    """The known ranges of the axes in the formula of `op` when it is computed over `region` (the ends per axis, in terms of
    `step`).
    """

    def __init__(self, op: ComputeOp, region: Sequence[Ends | None], step: IterVar | None = None) -> None:
        self.step, self.op = step, op
        self.axes = (*op.axis, *op.reduce_axis)
        self.values: dict[Var, Expr] = {}  # axes that are one value in a step
        self.ends: dict[Var, Ends] = {}
        for axis, ends in zip(op.axis, region):
            if ends is not None and ends[0] is ends[1]:
                self.values[axis.var] = build.cast(axis.dtype, ends[0])
            self.ends[axis.var] = ends or _ends_of(axis)
        for axis in op.reduce_axis:
            self.ends[axis.var] = _ends_of(axis.map_children(lambda dom: substitute(dom, self.values)))

    @property
    def step_name(self) -> str:
        """The name of the step in the formula: that of the axis of `op` that equals `step`, if there is one."""
        assert self.step is not None
        return next((axis.name for axis in self.op.axis if self.values.get(axis.var) is self.step.var), self.step.name)

    @cached_property
    def analyzer(self) -> Analyzer:
        analyzer = Analyzer()
        for dim in (d for shape in (self.op.shape, *(t.shape for t in self.op.input_tensors)) for d in shape):
            if isinstance(dim, Var):
                analyzer.bind(dim, (0, None))
        if self.step is not None and self.step.dom is not None:
            analyzer.bind(self.step.var, self.step.dom)
        for var, (low, high) in self.ends.items():
            if var not in self.values and not has_load(low) and not has_load(high):
                analyzer.bind(var, Range.from_min_extent(low, build.add(build.sub(high, low), 1)))
        return analyzer

    def proves(self, condition: Expr, facts: Facts | None) -> bool:
        """Whether `condition` is proved where `facts` hold."""
        with ExitStack() as known:
            for fact in facts or ():
                if not has_load(fact):
                    known.enter_context(self.analyzer.constraint_scope(substitute(fact, self.values)))
            return self.analyzer.can_prove(substitute(condition, self.values))

    def lowest(self, index: Expr) -> int | None:
        return self.analyzer.bounds(substitute(index, self.values))[0]

    def reached(self, index: Expr, facts: Facts | None = None) -> Ends | None:
        """The lowest and highest value of `index` over the region, where `facts` hold; None if unknown."""
        index = substitute(index, self.values)
        if has_load(index):
            return None
        if not self.varies(index):
            return index, index
        low, high = relax(index, self.ends if facts is None else self.ends_where(facts), self.analyzer)
        if low is None or high is None or has_load(low) or has_load(high):
            return None
        for least, most in self.compared(index, facts or ()):
            if least is not None and not self.analyzer.can_prove(build.greater_equal(low, least)):
                low = least
            if most is not None and not self.analyzer.can_prove(build.less_equal(high, most)):
                high = most
        return _one_or_two(low, high)

    def compared(self, index: Expr, facts: Facts | Sequence[Expr]) -> Iterator[tuple[Expr | None, Expr | None]]:
        """The lower and upper bounds of `index`, one of several axes, that `facts` state of it or of it and a constant: the row
        t*2 + x - 1 is at least 0 where t*2 + x >= 1.
        """
        for part in (part for fact in facts if not has_load(fact) for part in conjuncts(substitute(fact, self.values))):
            if not isinstance(part, (LT, LE, GT, GE)):
                continue
            less, more = (part.a, part.b) if isinstance(part, (LT, LE)) else (part.b, part.a)
            between = int(isinstance(part, (LT, GT)))
            above, below = self.apart(index, more), self.apart(index, less)
            if above is not None and not self.varies(less):
                yield build.add(less, between + above), None
            if below is not None and not self.varies(more):
                yield None, build.add(more, below - between)

    def apart(self, index: Expr, other: Expr) -> int | None:
        """`index` minus `other` if that is a constant."""
        return build.as_int(self.analyzer.simplify(build.sub(index, other))) if other.dtype.is_integer else None

    def varies(self, e: Expr) -> bool:
        return any(v in self.ends for v in variables(e))

    def ends_where(self, facts: Facts) -> dict[Var, Ends]:
        """The bounds of the axes, tightened by the `facts` that compare with constants."""
        ends = dict(self.ends)
        with ExitStack() as known:
            for fact in facts:
                if not has_load(fact):
                    known.enter_context(self.analyzer.constraint_scope(substitute(fact, self.values)))
            for var, (low, high) in self.ends.items():
                least, most = self.analyzer.bounds(var)
                first, last = build.as_int(low), build.as_int(high)
                tighter_low = least is not None and first is not None and least > first
                tighter_high = most is not None and last is not None and most < last
                ends[var] = (build.const(least, low.dtype) if tighter_low else low,
                              build.const(most, high.dtype) if tighter_high else high)
        return ends

    def union(self, a: Ends | None, b: Ends | None) -> Ends | None:
        """The smallest range that contains both; None if unknown."""
        if a is None or b is None:
            return None
        low = a[0] if self.analyzer.can_prove(build.less_equal(a[0], b[0])) else \
            b[0] if self.analyzer.can_prove(build.less_equal(b[0], a[0])) else build.minimum(a[0], b[0])
        high = a[1] if self.analyzer.can_prove(build.greater_equal(a[1], b[1])) else \
            b[1] if self.analyzer.can_prove(build.greater_equal(b[1], a[1])) else build.maximum(a[1], b[1])
        return _one_or_two(low, high)


def _one_or_two(low: Expr, high: Expr) -> Ends:
    return low, low if structural_equal(low, high, map_free_vars=False) else high


def _ends_of(axis: IterVar) -> Ends:
    assert axis.dom is not None
    return axis.dom.min, build.sub(build.add(axis.dom.min, extent_of(axis)), 1)
