"""The interval that an index expression covers when loop variables range over symbolic intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tedsl.arith.affine import Sum
from tedsl.arith.inequality import nonnegative
from tedsl.ir import build
from tedsl.ir.expr import BinaryOp, Call, Expr, FloorDiv, FloorMod, Max, Min, Mul, Select, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.substitute import substitute

if TYPE_CHECKING:
    from tedsl.arith.analyzer import Analyzer

End = Sum | None
Ends = tuple[End, End]


def relax(expr: Expr, ranges: Mapping[Any, tuple[Any, Any]],
          analyzer: Analyzer) -> tuple[Expr | None, Expr | None]:
    """Returns the least and the greatest value of `expr` when each variable of `ranges` lies between its two ends (inclusive).

    Exact where each variable occurs in one affine place (a halo: i + dy for i in [i0, i0 + t - 1], dy in [0, 2] gives
    [i0, i0 + t + 1]); otherwise a cover. None for an end that cannot be found. Other variables stay symbols.
    """
    return Relaxation(ranges, analyzer).ends(expr)


class Relaxation:
    """The intervals of several expressions over the same ranges, with one memo."""

    def __init__(self, ranges: Mapping[Any, tuple[Any, Any]], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.known = analyzer.known
        self.of: dict[Expr, Ends] = {}
        self.ranged: set[Expr] = set()  # terms that are no single point
        self.points: dict[Any, Expr] = {}  # variables that have one value each
        for key, (low, high) in ranges.items():
            var = key.var if isinstance(key, IterVar) else key
            least = self._given(low, var)
            most = least if high is low else self._given(high, var)
            self.of[var] = least, most
            if least is None or most is None or (least is not most and least.key != most.key):
                self.ranged.add(var)
            else:
                self.points[var] = build.cast(var.dtype, build.as_expr(low, var.dtype))

    def _given(self, end: Any, var: Var) -> End:
        return None if end is None else self._sum(build.cast(var.dtype, build.as_expr(end, var.dtype)))

    def _sum(self, expr: Expr) -> Sum:
        return self.known.sum(self.analyzer.simplify(expr))

    def ends(self, expr: Expr) -> tuple[Expr | None, Expr | None]:
        """Returns the least and the greatest value of `expr`, as `relax` does."""
        s = self._sum(expr)
        self._settle(s)
        low, high = self._total(s)
        least = self._build(low, expr)
        return least, least if high is low else self._build(high, expr)

    def _build(self, end: End, like: Expr) -> Expr | None:
        expr = None if end is None else self.known.build(end, like.dtype)
        return None if expr is None else self.analyzer.simplify(expr)

    # --- terms ------------------------------------------------------------------------------------------------------

    def _settle(self, s: Sum) -> None:
        """Fills `of` for all terms below `s`, with an explicit stack."""
        stack = list(s.terms)
        while stack:
            term = stack[-1]
            if term in self.of:
                stack.pop()
                continue
            children = [c for c in _operands(term) if c.dtype.is_integer]
            below = [t for c in children for t in self.known.sum(c).terms if t not in self.of]
            if below:
                stack.extend(below)
                continue
            stack.pop()
            if not self._moves(term):
                fixed = substitute(term, self.points) if self.points else term
                point = self.known.term_sum(term) if fixed is term else self._sum(fixed)
                self.of[term] = point, point
            else:
                self.ranged.add(term)
                self.of[term] = self._term(term)

    def _moves(self, term: Expr) -> bool:
        """Tells whether a ranged variable occurs below `term`, conditions and loads included."""
        if not self.ranged:
            return False
        stack, seen = list(term.child_nodes()), set()
        while stack:
            node = stack.pop()
            if node in self.ranged:
                return True
            if node in seen or (node in self.of and node not in self.ranged and not isinstance(node, Var)):
                continue
            seen.add(node)
            stack.extend(node.child_nodes())
        return False

    def _total(self, s: Sum) -> Ends:
        low: End = Sum({}, s.const)
        high: End = low
        for term, c in s.terms.items():
            bottom, top = self.of[term]
            if c < 0:
                bottom, top = top, bottom
            is_point = low is high and bottom is top
            low = None if low is None or bottom is None else low.plus(bottom, c)
            high = low if is_point else None if high is None or top is None else high.plus(top, c)
        return low, high

    def _ends_of(self, expr: Expr) -> Ends:
        return self._total(self.known.sum(expr))

    def _term(self, term: Any) -> Ends:
        """Returns the ends of a term that varies and whose operands are settled."""
        kind = type(term)
        if term.dtype.bits < 32 or (kind is Mul and term.dtype.is_uint):  # it may wrap; so may the ends of its operands
            return self._constant_ends(term)
        if kind is Min or kind is Max:
            return self._min_max(kind, self._ends_of(term.a), self._ends_of(term.b), term)
        if kind is Mul:
            return self._product(self._ends_of(term.a), self._ends_of(term.b), term)
        if kind is FloorDiv or kind is FloorMod:
            by = self._ends_of(term.b)
            if by[0] is not None and by[1] is not None and by[0].key == by[1].key:
                return (self._quotient if kind is FloorDiv else self._remainder)(self._ends_of(term.a), by[0], term)
        if kind is Select or (kind is Call and term.op is IF_THEN_ELSE):
            x, y = (term.true_value, term.false_value) if kind is Select else term.args[1:]
            first, second = self._ends_of(x), self._ends_of(y)
            low, high = self._min_max(Min, first, second, term)[0], self._min_max(Max, first, second, term)[1]
            return low, high
        return self._constant_ends(term)

    def _constant_ends(self, term: Expr) -> Ends:
        """Returns the constant range of the term, unless that is only the range of a wide dtype."""
        low, high = self.known.range_of(self.known.term_sum(term))
        if term.dtype.bits >= 32 and (low, high) == (term.dtype.min_value, term.dtype.max_value):
            return None, None
        return None if low is None else Sum({}, low), None if high is None else Sum({}, high)

    def _combine(self, kind: type[BinaryOp], a: Sum, b: Sum, like: Expr) -> End:
        x, y = self.known.build(a, like.dtype), self.known.build(b, like.dtype)
        return None if x is None or y is None else self._sum(build.binary(kind, x, y))

    def _min_max(self, kind: type[BinaryOp], a: Ends, b: Ends, like: Expr) -> Ends:
        """Returns the ends of a min or max. For a min: the smaller low end and the smaller high end; if one high end is
        unknown, the other one.
        """
        ends: list[End] = []
        for x, y, needs_both in ((a[0], b[0], kind is Min), (a[1], b[1], kind is Max)):
            if x is None or y is None:
                ends.append(None if needs_both else (y if x is None else x))
            else:
                ends.append(self._combine(kind, x, y, like))
        return ends[0], ends[1]

    def _product(self, a: Ends, b: Ends, like: Expr) -> Ends:
        """Returns the ends of a product. If an operand has a single value, its sign decides; otherwise both must be
        nonnegative.
        """
        if b[0] is None or b[1] is None or b[0].key != b[1].key:
            a, b = b, a
        point = b[0]
        if point is not None and b[1] is not None and point.key == b[1].key:
            low = None if a[0] is None else self._combine(Mul, a[0], point, like)
            high = None if a[1] is None else self._combine(Mul, a[1], point, like)
            return self._by_sign(low, high, point, like)
        low = self._combine(Mul, a[0], b[0], like) if a[0] and b[0] else None
        high = self._combine(Mul, a[1], b[1], like) if a[1] and b[1] else None
        if a[0] is None or b[0] is None or not nonnegative(self.known, a[0]) or not nonnegative(self.known, b[0]):
            return self._constant_ends(like)
        return low, high

    def _by_sign(self, low: End, high: End, point: Sum, like: Expr) -> Ends:
        """Returns the ends under a monotonic function, which is rising if point >= 0 and falling if point <= 0."""
        if nonnegative(self.known, point):
            return low, high
        if nonnegative(self.known, point.times(-1)):
            return high, low
        if low is None or high is None:
            return None, None
        return self._combine(Min, low, high, like), self._combine(Max, low, high, like)

    def _quotient(self, a: Ends, by: Sum, like: Expr) -> Ends:
        low = None if a[0] is None else self._combine(FloorDiv, a[0], by, like)
        high = None if a[1] is None else self._combine(FloorDiv, a[1], by, like)
        return self._by_sign(low, high, by, like)

    def _remainder(self, a: Ends, by: Sum, like: Expr) -> Ends:
        """Returns the remainders of both ends if they lie in one block of `by`; otherwise [0, by - 1]."""
        low, high = a
        if low is not None and high is not None:
            first, last = self._combine(FloorDiv, low, by, like), self._combine(FloorDiv, high, by, like)
            if first is not None and last is not None and first.key == last.key and self._positive(by):
                return self._combine(FloorMod, low, by, like), self._combine(FloorMod, high, by, like)
        if not nonnegative(self.known, by):
            return self._constant_ends(like)
        top: End = by.shifted(-1)
        if not self._positive(by):
            top = self._combine(Max, by.shifted(-1), Sum({}, 0), like)
        if low is not None and high is not None and nonnegative(self.known, low) and top is not None \
                and nonnegative(self.known, top.plus(high, -1)):
            return low, high
        return Sum({}, 0), top

    def _positive(self, s: Sum) -> bool:
        return nonnegative(self.known, s.shifted(-1))


def _operands(term: Any) -> tuple[Expr, ...]:
    if isinstance(term, BinaryOp):
        return term.a, term.b
    if isinstance(term, Select):
        return term.true_value, term.false_value
    if isinstance(term, Call) and term.op is IF_THEN_ELSE:
        return term.args[1:]
    return ()
