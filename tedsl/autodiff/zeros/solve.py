"""Solves the conditions of one term over the axes of its sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from tedsl.arith.affine import Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.inequality import factors
from tedsl.arith.int_solver.equations import Equations
from tedsl.arith.int_solver.inequalities import Found, Ranges
from tedsl.arith.int_solver.linear import (
    DoesNotFitError,
    as_condition,
    equation_of,
    expression,
    inequality_of,
    is_false,
    replaced,
)
from tedsl.arith.interval import relax
from tedsl.arith.splits import merge_splits
from tedsl.autodiff.zeros.quotients import Quotients
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import Expr, IntImm, ProducerLoad, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.lang.zeros.terms import Term, split
from tedsl.record import record

SYMBOLIC = 1 << 40  # the extent that a symbolic one counts for
SLACK = 1 << 10  # by how much indices may be multiplied where they are narrowed
MOST_CONDITIONS = 8  # more are not tested for following from one another

Ends = dict[Var, tuple[Expr, Expr]]


@record(eq=False)
class Solved:
    """The sum of `value` over `axes` (variables from 0 on, with their extents) where `guard` holds, else 0.

    guard: conditions on indices, without which `value` may read out of range.
    """

    axes: tuple[tuple[Var, Expr], ...]
    guard: tuple[Expr, ...]
    value: Expr

    @property
    def volume(self) -> int:
        """The iterations of the axes."""
        return volume([extent for _, extent in self.axes])


def solved(term: Term, axis: Sequence[IterVar], reduced: Sequence[IterVar]) -> Solved | None:
    """Returns the sum of `term` over the axes `reduced` as one over fewer of them, or smaller ones; None if none is found.

    A term that is zero everywhere has the condition false.
    """
    if not _fit(axis, reduced):
        return None
    try:
        return _System(axis, reduced).solve(term)
    except DoesNotFitError:
        return None


def _fit(axis: Sequence[IterVar], reduced: Sequence[IterVar]) -> bool:
    """Tells whether the indices of a result are representable in the narrowest dtype of the axes that are summed over: what
    those are solved for is written in their dtypes.
    """
    most = min(a.dtype.max_value or 0 for a in reduced)
    extents = [build.as_int(_extent(a)) for a in axis if (a.dtype.max_value or 0) > most]
    return all(extent is not None and extent <= most // SLACK for extent in extents)


def analyzer_of(axis: Sequence[IterVar]) -> Analyzer:
    """Returns an analyzer that knows the axes of a result: that they run, so that no factor of an extent is below 1."""
    analyzer = Analyzer()
    for a in axis:
        for part in factors(_extent(a)):
            if isinstance(part, Var):
                analyzer.bind(part, (1, None))
    for a in axis:
        assert a.dom is not None
        analyzer.bind(a, a.dom)
    return analyzer


def _extent(axis: IterVar) -> Expr:
    assert axis.dom is not None and axis.dom.extent is not None
    return axis.dom.extent


def volume(extents: Iterable[Expr]) -> int:
    """Returns the product of extents; symbolic ones count as large numbers."""
    return prod(map(_size, extents))


def _size(extent: Expr) -> int:
    number = build.as_int(extent)
    return SYMBOLIC if number is None else number


class _System:
    """The conditions of a term, sorted: equations and gaps (at least 0) between indices, and others."""

    def __init__(self, axis: Sequence[IterVar], reduced: Sequence[IterVar]) -> None:
        self.axis, self.reduced = axis, reduced
        self.analyzer = analyzer_of(axis)
        for a in reduced:
            assert a.dom is not None
            self.analyzer.bind(a, a.dom)
        self.known = self.analyzer.known
        self.ends: Ends = {a.var: _ends(a) for a in (*axis, *reduced)}
        self.sizes: dict[Var, int] = {a.var: _size(_extent(a)) for a in reduced}
        self.variables: list[Var] = [a.var for a in reduced]
        self.dtype = max((var.dtype for var in self.variables), key=lambda dtype: dtype.bits)
        self.equations: list[Sum] = []
        self.gaps: list[Sum] = []
        self.guards: list[Expr] = []
        self.others: list[Expr] = []

    def solve(self, term: Term) -> Solved | None:
        self.read(term.conditions)
        if any(map(is_false, self.guards)):
            return nothing(term.value)
        solution = Equations(self.known, self.equations, self.variables, self.sizes.__getitem__)
        for var, original in solution.originals.items():
            self.add_ends(var, original)
        values = solution.values
        gaps = [replaced(self.known, gap, values) for gap in (*self.domains(), *self.gaps)]
        found = Ranges(self.analyzer, gaps, self.ends).find(solution.variables)
        if found is None or not self.is_smaller(found):
            return None
        ranges = [expression(self.known, gap, self.dtype) for gap in gaps]
        guards = [substitute(guard, values) for guard in (*solution.conditions, *self.guards)]
        return self.result(found, values, ranges, guards, term.value)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, conditions: Iterable[Expr]) -> None:
        """Sorts the conditions, and replaces // and % in those between indices."""
        quotients = Quotients(self.known, self.variables)
        for condition in [part for given in conditions for part in split(self.analyzer.simplify(given))]:
            if _reads(condition):
                self.others.append(condition)
                continue
            plain = quotients(condition) if uses(condition, self.variables) else condition
            equation = equation_of(self.known, plain)
            gap = inequality_of(self.known, plain) if equation is None else None
            if equation is not None:
                self.equations.append(equation)
            elif gap is not None:
                self.gaps.append(gap)
            else:
                self.guards.append(condition)
        self.equations += quotients.equations
        self.gaps += quotients.gaps
        for var, meaning in quotients.made.items():
            self.variables.append(var)
            self.add_ends(var, meaning)
            self.sizes[var] = 2 * SYMBOLIC  # solved for first

    def add_ends(self, var: Var, meaning: Expr) -> None:
        """Finds the ends of a new variable that stands for an expression of others."""
        low, high = relax(meaning, self.ends, self.analyzer)
        if low is not None and high is not None:
            self.ends[var] = low, high
            self.analyzer.bind(var, (low, high))

    def domains(self) -> list[Sum]:
        gaps = []
        for a in self.reduced:
            low, high = (self.known.sum(end) for end in self.ends[a.var])
            var = self.known.sum(a.var)
            gaps += [var.plus(low, -1), high.plus(var, -1)]
        return gaps

    # --- the result ---------------------------------------------------------------------------------------------------

    def is_smaller(self, found: Sequence[Found]) -> bool:
        """Tells whether fewer axes are left, or one has fewer iterations than before."""
        left = [one for one in found if build.as_int(one.extent) != 1]
        before = sum(1 for size in self.sizes.values() if size not in (1, 2 * SYMBOLIC))
        return len(left) < before or any(_size(one.extent) < self.sizes.get(one.var, 0) for one in left)

    def result(self, found: Sequence[Found], values: Mapping[Var, Expr], gaps: list[Expr], guards: list[Expr],
               value: Expr) -> Solved:
        """Returns the sum in new variables for the ranges `found`, under the gaps and guards that are still needed."""
        analyzer = analyzer_of(self.axis)
        axes: list[tuple[Var, Expr]] = []
        of: dict[Var, Expr] = {}
        for one in reversed(found):  # the range of one may depend on those found after it
            first = substitute(one.first, of)
            if build.as_int(one.extent) == 1:
                of[one.var] = analyzer.simplify(first)
                continue
            index = Var(one.var.name, one.var.dtype)
            analyzer.bind(index, Range.from_min_extent(build.const(0, index.dtype), one.extent))
            axes.append((index, one.extent))
            of[one.var] = analyzer.simplify(build.add(first, index))
        of |= {var: analyzer.simplify(substitute(meaning, of)) for var, meaning in values.items()}
        guards = [*[_at_least_zero(analyzer, substitute(gap, of)) for gap in gaps], *[substitute(one, of) for one in guards]]
        guard = _needed(analyzer, guards)
        if any(map(is_false, guard)):
            return nothing(value)
        order = {a.name: i for i, a in enumerate(self.reduced)}
        axes.sort(key=lambda pair: order.get(pair[0].name, len(order)))
        with analyzer.constraint_scope(conjunction(guard)):
            inner = [analyzer.simplify(substitute(one, of)) for one in self.others]
            value = analyzer.simplify(substitute(value, of))
        if inner:
            value = build.if_then_else(conjunction(inner), value, build.const(0, value.dtype))
        return Solved(tuple(axes), tuple(guard), value)


def nothing(value: Expr) -> Solved:
    """Returns a sum that is zero, of the dtype of `value`."""
    return Solved((), (IntImm(BOOL, 0),), build.const(0, value.dtype))


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """Returns the condition that all hold; true for none."""
    result = build.true()
    for condition in conditions:
        result = build.logical_and(result, condition)
    return result


def _at_least_zero(analyzer: Analyzer, gap: Expr) -> Expr:
    """Returns the condition gap >= 0."""
    known = analyzer.known
    return as_condition(known, merge_splits(known.sum(analyzer.simplify(gap)), known), gap.dtype)


def _needed(analyzer: Analyzer, conditions: Iterable[Expr]) -> list[Expr]:
    """Returns the conditions, simplified, that neither always hold nor follow from the others."""
    needed: list[Expr] = []
    for given in conditions:
        for condition in split(analyzer.simplify(given)):
            if not (isinstance(condition, IntImm) and condition.value) \
                    and not any(analyzer.known.same(condition, other) for other in needed):
                needed.append(condition)
    if not 1 < len(needed) <= MOST_CONDITIONS or any(map(is_false, needed)):
        return needed
    for condition in list(needed):
        rest = [other for other in needed if other is not condition]
        with analyzer.constraint_scope(conjunction(rest)):
            follows = analyzer.simplify(condition)
        if isinstance(follows, IntImm) and follows.value:
            needed = rest
    return needed


def _ends(axis: IterVar) -> tuple[Expr, Expr]:
    assert axis.dom is not None
    low = axis.dom.min
    return low, build.sub(build.add(low, _extent(axis)), 1)


def _reads(condition: Expr) -> bool:
    """Tells whether a condition depends on data."""
    return any(isinstance(node, ProducerLoad) for node in post_order(condition))
