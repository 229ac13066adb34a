"""Whether two accesses to memory of a block may meet: one thread's element being another's, and at least one a store.

They do not if each thread keeps to elements of its own. Seen for indices that are sums: the threads' part tells threads
apart by at least the smallest factor (as digits do: 8*threadIdx.y + threadIdx.x of 8 threads each), and what is added to it
on either side differs by less than that.
"""

from __future__ import annotations

import itertools
from collections.abc import Set
from dataclasses import dataclass

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Load, Ramp, Var
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For
from tedsl.ir.walk.accesses import Access
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.guard_ranges import split_linear
from tedsl.passes.races.known_values import Values, value
from tedsl.passes.threads.gather_threads import Kernel

THREADS = 1024  # looked at, of a block


@dataclass(frozen=True, eq=False)
class _Place:
    """An index as the threads' part (a factor for each axis) and the rest."""

    factors: tuple[int, ...]
    rest: Expr


class Conflicts:
    """Answers for one kernel. `loop` tells of the loops in it."""

    def __init__(self, kernel: Kernel) -> None:
        self.threads = kernel.threads
        self.analyzer = Analyzer()
        self.loops: set[Var] = set()  # variables that differ from iteration to iteration
        self.lets: set[Var] = set()  # variables of which nothing is known
        self.blocks = {one.var for one in kernel.blocks}
        self.callers: set[Var] = set()  # memory that the kernel did not allocate
        self.apart: dict[str, bool] = {}  # of indices into it: whether threads have different ones
        for one in kernel.axes:
            self.analyzer.bind(one.var, Range.from_min_extent(IntImm(one.var.dtype, 0), one.count))

    def loop(self, loop: For) -> None:
        self.loops.add(loop.loop_var)
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def meet(self, one: Access, other: Access, fixed: Set[Var], carried: Var | None = None) -> bool:
        """Whether different threads may touch one element; in loops other than `fixed` they may be at different iterations.

        carried: only accesses of different iterations of that loop count.
        """
        if one.memory is not other.memory or not (one.writes or other.writes):
            return False
        if self._is_one_place(one, other):
            return False
        a, b = self._place(one.index), self._place(other.index)
        if a is None or b is None or a.factors != b.factors or not self.threads:
            return bool(self.threads)
        if self._is_one_numbering(a, b, fixed, carried):
            return False
        apart = self._distance(a.factors)
        return apart is None or not self._closer(a.rest, b.rest, apart, fixed)

    def _is_one_place(self, one: Access, other: Access) -> bool:
        """Whether both name an element of the caller's in the same words, and nothing shows that two threads mean the same one.

        Strides that a call decides, indices that are looked up and digits of a fused axis are of this kind, in sums that start
        at zero.
        """
        words = repr(one.index)
        if one.memory not in self.callers or one.index is None or words != repr(other.index):
            return False
        place = self._place(one.index)
        if place is not None and not any(v in self.lets for v in variables(place.rest)):
            return False
        if words not in self.apart:
            self.apart[words] = self._tells_apart(one.index)
        return self.apart[words]

    def _tells_apart(self, index: Expr) -> bool:
        """Whether the threads of a block have different values of `index`, or values that are not known."""
        values: Values = {var: 0 for var in variables(index) if var in self.loops or var in self.blocks}
        counts = [build.as_int(one.count) for one in self.threads]
        threads = itertools.islice(itertools.product(*[range(count or 1) for count in counts]), THREADS)
        found = [value(index, {**values, **{one.var: k for one, k in zip(self.threads, at)}}) for at in threads]
        return None in found or len(set(found)) == len(found)

    def _is_one_numbering(self, a: _Place, b: _Place, fixed: Set[Var], carried: Var | None) -> bool:
        """Whether both indices number threads and iterations alike, each pair with an element of its own.

        With `carried`, threads may share an element of one iteration of that loop: no barrier between iterations helps there.
        """
        digits = [(abs(c), build.as_int(one.count)) for c, one in zip(a.factors, self.threads)]
        first, second = self._digits(a.rest, fixed), self._digits(b.rest, fixed)
        if first is None or second is None or first[0] != second[0]:
            return False
        if build.as_int(self.analyzer.simplify(build.sub(first[1], second[1]))) != 0:
            return False
        if carried is not None:
            steps = [split_linear(place.rest, carried, self.analyzer) for place in (a, b)]
            if steps[0] is not None and steps[1] is not None and steps[0][0] == steps[1][0] != 0:
                digits = [digit for digit in digits if digit[0]]
        digits = sorted(digits + first[0], key=lambda d: d[0])
        return digits[0][0] > 0 and all(count is not None and above >= c * count
                                        for (c, count), (above, _) in itertools.pairwise(digits))

    def _digits(self, rest: Expr, fixed: Set[Var]) -> tuple[list[tuple[int, int | None]], Expr] | None:
        """`rest` as factors and counts of the loops that are not fixed, in order, and what is left."""
        found: list[tuple[int, int | None]] = []
        for var in variables(rest):
            if var in self.lets:
                return None
            if var in self.loops and var not in fixed:
                split, (low, high) = split_linear(rest, var, self.analyzer), self.analyzer.bounds(var)
                if split is None or split[0] <= 0 or low != 0 or high is None:
                    return None
                found.append((split[0], high + 1))
                rest = split[1]
        return sorted(found), rest

    def _place(self, index: Expr | None) -> _Place | None:
        if index is None:
            return None
        if isinstance(index, Ramp):
            lane = Var("lane", index.base.dtype)
            self.analyzer.bind(lane, Range.from_min_extent(IntImm(lane.dtype, 0), IntImm(lane.dtype, index.lanes)))
            self.loops.add(lane)
            index = build.add(index.base, build.mul(index.stride, lane))
        if index.dtype.lanes > 1 or any(isinstance(node, Load) for node in post_order(index)):
            return None
        factors = []
        for one in self.threads:
            split = split_linear(index, one.var, self.analyzer)
            if split is None:
                return None
            factors.append(split[0])
            index = split[1]
        return _Place(tuple(factors), index)

    def _distance(self, factors: tuple[int, ...]) -> int | None:
        """The least distance between the parts of two different threads; None if two may be equal."""
        digits = sorted(((abs(c), build.as_int(one.count)) for c, one in zip(factors, self.threads)), key=lambda d: d[0])
        for (c, count), (above, _) in itertools.pairwise(digits):
            if count is None or above < c * count:
                return None
        return digits[0][0] or None

    def _closer(self, a: Expr, b: Expr, apart: int, fixed: Set[Var]) -> bool:
        """Whether a and b differ by less than `apart` for all iterations of the loops that are not `fixed`."""
        own: dict[Var, Expr] = {}
        for var in {*variables(a), *variables(b)}:
            if var in self.lets:
                return False
            if var in self.loops and var not in fixed:
                own[var] = self._twin(var)
        low, high = self.analyzer.bounds(build.sub(substitute(b, own), a))
        return low is not None and high is not None and -apart < low and high < apart

    def _twin(self, var: Var) -> Var:
        twin = Var(var.name, var.dtype)
        low, high = self.analyzer.bounds(var)
        self.analyzer.bind(twin, (low, high))
        return twin
