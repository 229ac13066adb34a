"""Decides whether two accesses may touch one element at different points of some axes, with at least one of them a store.

    S[8*y + x]     threads y, x of 4 * 8: no two threads have the same element
    B[i*2 + k]     iterations i of a parallel loop, k in 0..2 inside: none; k in 0..3: i = 0, k = 2 and i = 1, k = 0 meet

The axes are those whose points run at once or in any order: the threads of a block, the blocks of a launch, the iterations of a
parallel loop, the lanes of a vector. The proof is for indices that are sums of a part in the axes and a rest: the parts of two
different points differ by at least the smallest factor (8*y + x with 8 values of x counts like digits), and the rests differ by
less than that; or the rests differ by more than the parts in the axes can.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence, Set

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Load, Var
from tedsl.ir.iters import Range
from tedsl.ir.text import key_text
from tedsl.ir.walk.accesses import Access
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.lanes import one_lane
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.guard_ranges import split_linear
from tedsl.passes.races.known_values import Values, value
from tedsl.record import record

POINTS = 1024  # looked at, of the axes


def may_meet(a: Access, b: Access, *, distinct: Axes, same: Set[Var] = frozenset(), carried: Var | None = None) -> bool:
    """Tells whether `a` at one point of the axes `distinct` and `b` at another may touch one element; False is a proof that
    they cannot.

    same: loops in which both accesses are at the same iteration; in others they may be at different ones. carried: accesses in
    the same iteration of this loop are not compared.
    """
    return a.memory is b.memory and (a.writes or b.writes) and distinct.meet(a.index, b.index, a.memory, same, carried)


@record(eq=False)
class _Sum:
    """An index as the sum of the axes times `factors` and a `rest` that is free of the axes."""

    factors: tuple[int, ...]
    rest: Expr


class Axes:
    """Axes whose points run at once or in any order, the last one fastest, and the known ranges of the variables inside.

    shared: other axes, at one and the same point of which both accesses are.
    """

    def __init__(self, axes: Sequence[Loop], shared: Iterable[Loop] = ()) -> None:
        self.axes = list(axes)
        self.shared = list(shared)
        self.analyzer = Analyzer()
        self.loops: set[Var] = set()  # variables that differ from iteration to iteration
        self.lets: set[Var] = set()  # variables of which nothing is known
        self.callers: set[Var] = set()  # memory that comes from outside
        self._apart: dict[str, bool] = {}  # of indices into it: whether the points have different ones
        self._texts: dict[Expr, str] = {}  # each access is compared with many
        self._sums: dict[Expr, _Sum | None] = {}
        for axis in (*self.shared, *self.axes):
            self.analyzer.bind(axis.var, Range.from_min_extent(axis.min, axis.extent))

    def loop(self, var: Var, low: Expr, extent: Expr) -> None:
        """Adds the range of the variable of a loop inside."""
        self.loops.add(var)
        self.analyzer.bind(var, Range.from_min_extent(low, extent))

    def meet(self, one: Expr | None, other: Expr | None, memory: Var, same: Set[Var], carried: Var | None) -> bool:
        """Returns the answer of `may_meet` for two indices into `memory`; an index None stands for any element."""
        if self._is_one_place(one, other, memory):
            return False
        a, b = self._sum(one), self._sum(other)
        if a is None or b is None or a.factors != b.factors or not self.axes:
            return bool(self.axes)
        if self._is_one_numbering(a, b, same, carried):
            return False
        low, high = self._difference(a.rest, b.rest, same)
        span = self._span(a.factors)
        if span is not None and ((low is not None and low > span) or (high is not None and high < -span)):
            return False
        apart = self._distance(a.factors)
        return apart is None or low is None or high is None or not (-apart < low and high < apart)

    def _is_one_place(self, one: Expr | None, other: Expr | None, memory: Var) -> bool:
        """Tells whether both indices are the same expression, into an array of the caller's, whose values are not known to
        coincide for two points: such accesses are assumed to be disjoint.

        Indices with strides that a call decides, indices read from data, and digits of a fused axis are of this kind.
        """
        if memory not in self.callers or one is None:
            return False
        words = self._text(one)
        if other is None or words != self._text(other):
            return False
        parts = self._sum(one)
        if parts is not None and not any(v in self.lets for v in variables(parts.rest)):
            return False
        if words not in self._apart:
            self._apart[words] = self._tells_apart(one)
        return self._apart[words]

    def _text(self, index: Expr) -> str:
        if index not in self._texts:
            self._texts[index] = key_text(index)
        return self._texts[index]

    def _tells_apart(self, index: Expr) -> bool:
        """Tells whether `index` has different values at different points, or values that are unknown."""
        around = self.loops.union(axis.var for axis in self.shared)
        values: Values = {var: 0 for var in variables(index) if var in around}
        counts = [build.as_int(axis.extent) for axis in self.axes]
        points = itertools.islice(itertools.product(*[range(count or 1) for count in counts]), POINTS)
        elements = [value(index, {**values, **{axis.var: k for axis, k in zip(self.axes, at)}}) for at in points]
        return None in elements or len(set(elements)) == len(elements)

    def _is_one_numbering(self, a: _Sum, b: _Sum, same: Set[Var], carried: Var | None) -> bool:
        """Tells whether both indices are the same one-to-one numbering of pairs of a point and an iteration of the loops
        inside.

        carried: points may share an element within one iteration of this loop, since a barrier between iterations would not
        help.
        """
        digits = [(abs(c), build.as_int(axis.extent)) for c, axis in zip(a.factors, self.axes)]
        first, second = self._digits(a.rest, same), self._digits(b.rest, same)
        if first is None or second is None or first[0] != second[0]:
            return False
        if build.as_int(self.analyzer.simplify(build.sub(first[1], second[1]))) != 0:
            return False
        if carried is not None:
            steps = [split_linear(part.rest, carried, self.analyzer) for part in (a, b)]
            if steps[0] is not None and steps[1] is not None and steps[0][0] == steps[1][0] != 0:
                digits = [digit for digit in digits if digit[0]]
        digits = sorted(digits + first[0], key=lambda d: d[0])
        return digits[0][0] > 0 and all(count is not None and above >= c * count
                                        for (c, count), (above, _) in itertools.pairwise(digits))

    def _digits(self, rest: Expr, same: Set[Var]) -> tuple[list[tuple[int, int | None]], Expr] | None:
        """Returns `rest` as a list of (factor, count) for the loops that are not in `same`, and the remaining expression; None
        if it is not linear in them.
        """
        digits: list[tuple[int, int | None]] = []
        for var in variables(rest):
            if var in self.lets:
                return None
            if var in self.loops and var not in same:
                split, (low, high) = split_linear(rest, var, self.analyzer), self.analyzer.bounds(var)
                if split is None or split[0] <= 0 or low != 0 or high is None:
                    return None
                digits.append((split[0], high + 1))
                rest = split[1]
        return sorted(digits), rest

    def _sum(self, index: Expr | None) -> _Sum | None:
        if index is None:
            return None
        if index not in self._sums:
            self._sums[index] = self._summed(index)
        return self._sums[index]

    def _summed(self, index: Expr) -> _Sum | None:
        rest: Expr | None = index
        if index.dtype.lanes > 1:
            lane = Var("lane", index.dtype.element)
            self.loop(lane, IntImm(lane.dtype, 0), IntImm(lane.dtype, index.dtype.lanes))
            rest = one_lane(index, lane)
        if rest is None or any(isinstance(node, Load) for node in post_order(rest)):
            return None
        factors = []
        for axis in self.axes:
            split = split_linear(rest, axis.var, self.analyzer)
            if split is None:
                return None
            factors.append(split[0])
            rest = split[1]
        return _Sum(tuple(factors), rest)

    def _distance(self, factors: tuple[int, ...]) -> int | None:
        """Returns the least distance between the sums of axes times `factors` at two different points; None if two may be
        equal.
        """
        digits = sorted(((abs(c), build.as_int(axis.extent)) for c, axis in zip(factors, self.axes)), key=lambda d: d[0])
        for (c, count), (above, _) in itertools.pairwise(digits):
            if count is None or above < c * count:
                return None
        return digits[0][0] or None

    def _span(self, factors: tuple[int, ...]) -> int | None:
        """Returns the largest distance between the sums of axes times `factors` at two points; None if it is not known."""
        counts = [build.as_int(axis.extent) for axis in self.axes]
        known = [abs(c) * max(count - 1, 0) for c, count in zip(factors, counts) if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _difference(self, a: Expr, b: Expr, same: Set[Var]) -> tuple[int | None, int | None]:
        """Returns the least and the largest value of b - a over all iterations of the loops that are not in `same`."""
        own: dict[Var, Expr] = {}
        for var in {*variables(a), *variables(b)}:
            if var in self.lets:
                return None, None
            if var in self.loops and var not in same:
                own[var] = self._twin(var)
        return self.analyzer.bounds(build.sub(substitute(b, own), a))

    def _twin(self, var: Var) -> Var:
        twin = Var(var.name, var.dtype)
        low, high = self.analyzer.bounds(var)
        self.analyzer.bind(twin, (low, high))
        return twin
