"""Facts at a place: the ranges of variables, and what the enclosing conditions add.

`Bounds({x: (0, 7)})` is enough for a rule; the analyzer adds symbolic ranges, conditions and scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import gcd
from typing import Any

from tedsl.arith import ranges
from tedsl.arith.affine import Key, Sum
from tedsl.arith.canonical import Canonical
from tedsl.arith.ranges import EVERYTHING, Range
from tedsl.ir.calls.lines import most_past_line
from tedsl.ir.expr import (
    Add,
    BinaryOp,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tedsl.ir.ops import BITWISE_AND, CLZ, ELEMENTS_PAST_LINE, FABS, IF_THEN_ELSE, LIKELY, POPCOUNT, SHIFT_LEFT, SHIFT_RIGHT
from tedsl.ir.walk.visitor import variables

_BINARY: dict[type, Callable[[Range, Range], Range]] = {
    Add: ranges.add, Sub: lambda r, s: ranges.add(r, ranges.negate(s)), Mul: ranges.multiply,
    FloorDiv: ranges.floordiv, FloorMod: ranges.floormod, Div: ranges.truncdiv, Mod: ranges.truncmod,
    Min: ranges.minimum, Max: ranges.maximum,
}
Terms = frozenset[tuple[Expr, int]]


class Bounds(Canonical):
    """Answers questions about the ranges of integer expressions."""

    def __init__(self, known: Mapping[Var, Range] | None = None) -> None:
        super().__init__()
        self._of_var: dict[Var, Range] = dict(known or {})
        self._static: dict[Expr, Range] = {}  # ranges of terms from the ranges of variables alone
        self._here: dict[Expr, Range] = {}  # ranges of terms under the conditions of this place
        self.answers: dict[Key, bool] = {}  # what proofs found about sums, here (inequality.py)
        self.spent = 0  # steps of all proofs that failed (inequality.py)
        self.facts: dict[Terms, Range] = {}  # a linear combination of terms and the range that conditions give it
        self.combinations: dict[Terms, Sum] = {}  # the terms of facts in the order in which they were met
        self._pins: bool | None = None  # what `pins` returns, if it is known
        self._met: dict[Expr, int] = {}
        self.truths: dict[Expr, bool] = {}  # representatives of conditions that hold, or fail, here
        self.in_selects = False  # the condition of a Select counts in sides that read no memory
        self.extents: dict[Expr, Expr] = {}  # of loop variables: positive wherever the variable occurs
        self.residues: dict[Expr, tuple[int, int]] = {}  # of terms here: see modular.py
        self.rank: dict[Var, int] = {}  # of the variables in `symbolic`: the later bound, the higher
        self.symbolic: dict[Var, tuple[Expr | None, Expr | None]] = {}  # first and last value, as expressions

    # --- asking -----------------------------------------------------------------------------------------------------

    def range(self, expr: Expr) -> Range:
        """Returns the range of a scalar integer expression at this place."""
        return self.range_of(self.sum(expr))

    def range_of(self, s: Sum) -> Range:
        """Returns the range of a sum at this place."""
        if not s.terms:
            return s.const, s.const
        here = self._here
        for term in s.terms:
            if term not in here:
                self._settle(term, here, self.facts)
        result = _total(s, here)
        if self.facts and len(s.terms) > 1:
            result = ranges.intersect(result, ranges.add(_look_up(self.facts, s), (s.const, s.const)))
        return result

    def range_by_dtype(self, expr: Expr) -> Range:
        """Returns the range of a scalar integer expression whose variables without a range of their own, but for sizes, have
        that of their dtype.
        """
        memo: dict[Expr, Range] = {}
        for var in variables(expr):
            if type(var) is Var and var not in self._of_var and var.dtype.is_integer and var.dtype.bits < 64:
                whole = var.dtype.min_value, var.dtype.max_value
                memo[var] = ranges.intersect(whole, _look_up(self.facts, self.term_sum(var)))
        s = self.sum(expr)
        for term in s.terms:
            self._settle(term, memo, self.facts)
        return ranges.intersect(_total(s, memo), self.range_of(s))

    def static_range(self, s: Sum) -> Range:
        """Returns the range of a sum that follows from the ranges of variables alone, whatever the conditions around it."""
        memo = self._static
        for term in s.terms:
            if term not in memo:
                self._settle(term, memo, {})
        return _total(s, memo)

    def within(self, expr: Expr, low: int | None, high: int | None) -> bool:
        """Tells whether low <= expr <= high is proved."""
        return ranges.within(self.range(expr), (low, high))

    def nonzero(self, expr: Expr) -> bool:
        """Tells whether `expr` is proved not to be 0."""
        low, high = self.range(expr)
        return (low is not None and low > 0) or (high is not None and high < 0)

    def pins(self) -> bool:
        """Tells whether a condition of this place leaves a single value to the combination that it is about."""
        if self._pins is None:
            self._pins = any(low is not None and low == high
                             for low, high in [self.range_of(self.combinations[key]) for key in self.facts])
        return self._pins

    def has_single(self, names: Iterable[Any]) -> bool:
        """Tells whether one of the variables `names` has a single value by its own range."""
        of_var = self._of_var
        return any(low is not None and low == high for low, high in [of_var.get(name, EVERYTHING) for name in names])

    def has_met(self, var: Var) -> bool:
        """Tells whether an expression that uses `var` has been evaluated."""
        return var in self._values

    # --- ranges of terms --------------------------------------------------------------------------------------------

    def _settle(self, root: Expr, memo: dict[Expr, Range], facts: dict[Terms, Range]) -> None:
        """Fills `memo` for `root` and the terms below it, with an explicit stack."""
        stack = [root]
        while stack:
            term = stack[-1]
            if term in memo:
                stack.pop()
                continue
            below = [t for child in value_parts(term) for t in self.sum(child).terms if t not in memo]
            if below:
                stack.extend(below)
                continue
            stack.pop()
            term_range = self._term_range(term, memo)
            memo[term] = ranges.intersect(term_range, _look_up(facts, self.term_sum(term))) if facts else term_range

    def _term_range(self, term: Any, memo: dict[Expr, Range]) -> Range:
        """Returns the range of a term whose parts are in `memo`."""
        kind, dtype = type(term), term.dtype
        if kind is Var or kind is SizeVar:
            known = self._of_var.get(term)
            if known is None:
                known = EVERYTHING if term not in self.data else (dtype.min_value, dtype.max_value)
            return ranges.intersect(known, (0, None)) if kind is SizeVar else known
        parts = [_total(self.sum(child), memo) for child in value_parts(term)]
        if kind in _BINARY:
            result = _square(parts[0]) if kind is Mul and self.same(term.a, term.b) else _BINARY[kind](*parts)
        elif kind is Select or (kind is Call and term.op is IF_THEN_ELSE):
            result = ranges.union(*parts)
        elif kind is Let or (kind is Cast and parts):
            result = parts[0]
        elif kind is Cast and term.value.dtype.is_bool:
            result = (0, 1)
        elif kind is Call:
            result = _call_range(term, parts)
        else:
            result = EVERYTHING
        if term not in self.data:
            return result
        whole = dtype.min_value, dtype.max_value
        return result if ranges.within(result, whole) else whole  # beyond it, the value wraps

    # --- learning ---------------------------------------------------------------------------------------------------

    def set_range(self, var: Var, low: int | None, high: int | None) -> None:
        """Sets low <= var <= high from now on, and drops derived ranges if an expression with the variable was evaluated
        before.
        """
        self._of_var[var] = (low, high)
        self._pins = None
        if var in self._values:
            self._static, self._here, self.answers = {}, {}, {}

    def mark_like(self, var: Var, value: Expr) -> None:
        """Records that `var` is bound to `value`: it is data if the value is. (The variable keeps its value when memory
        changes.)
        """
        if value.dtype.is_integer and value.dtype.lanes == 1 and not self.is_index(self.sum(value)):
            self.data.add(var)

    def enter_let(self, let: Let) -> None:
        """Records the known range of the variable of a Let, for all uses of the variable."""
        super().enter_let(let)
        if let.value.dtype.is_integer and let.value.dtype.lanes == 1 and let.var not in self._of_var:
            self._of_var[let.var] = self.static_range(self.sum(let.value))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Context manager that drops, on exit, the facts learned inside."""
        saved = self._here, self.answers, self.facts, self.truths, self.residues
        self._here, self.answers, self._pins = {}, {}, None
        self.facts, self.truths, self.residues = dict(self.facts), dict(self.truths), dict(self.residues)
        try:
            yield
        finally:
            self._here, self.answers, self.facts, self.truths, self.residues = saved
            self._pins = None

    def order(self, factor: Expr) -> int:
        """Returns a sort key: expressions are numbered in the order of first use, which is the same in every run."""
        return self._met.setdefault(factor, len(self._met))

    def learn(self, s: Sum, low: int | None, high: int | None) -> None:
        """Adds the fact low <= s <= high at this place."""
        if not s.terms:
            return
        g = gcd(*s.terms.values())
        low = None if low is None else -((s.const - low) // g)  # ceil((low - const) / g)
        high = None if high is None else (high - s.const) // g
        combination = Sum({t: c // g for t, c in s.terms.items()})
        key = combination.key[0]
        self.combinations.setdefault(key, combination)
        known = _look_up(self.facts, combination)
        self.facts.pop(frozenset([(t, -c) for t, c in key]), None)
        self.facts[key] = ranges.intersect(known, (low, high))
        self._here, self.answers, self._pins = {}, {}, None


def _look_up(facts: dict[Terms, Range], s: Sum) -> Range:
    """Returns the range that the facts give for the terms of `s`, without its constant."""
    g = gcd(*s.terms.values())
    fact = facts.get(s.key[0] if g == 1 else frozenset([(t, c // g) for t, c in s.terms.items()]))
    if fact is None:
        fact = facts.get(frozenset([(t, -c // g) for t, c in s.terms.items()]))
        if fact is None:
            return EVERYTHING
        g = -g
    return ranges.scale(fact, g)


def _total(s: Sum, memo: dict[Expr, Range]) -> Range:
    low: int | None = s.const
    high: int | None = s.const
    for term, c in s.terms.items():
        bottom, top = memo[term]
        if c < 0:
            bottom, top = top, bottom
        low = None if low is None or bottom is None else low + bottom * c
        high = None if high is None or top is None else high + top * c
    return low, high


def value_parts(term: Any) -> tuple[Expr, ...]:
    """Returns the scalar integer operands on which the range of a term depends."""
    kind = type(term)
    if isinstance(term, BinaryOp):
        return (term.a, term.b) if term.dtype.is_integer else ()
    if kind is Select:
        return term.true_value, term.false_value
    if kind is Cast:
        return (term.value,) if term.value.dtype.is_integer else ()
    if kind is Let:
        return (term.body,)
    if kind is Call:
        if term.op is IF_THEN_ELSE:
            return term.args[1:]  # type: ignore[no-any-return]
        if term.op in (SHIFT_LEFT, SHIFT_RIGHT, BITWISE_AND, LIKELY) or (term.op is FABS and term.dtype.is_integer):
            return term.args  # type: ignore[no-any-return]
    return ()


def _square(r: Range) -> Range:
    low, high = ranges.multiply(r, r)
    return (max(low, 0) if low is not None else 0), high


def _call_range(term: Call, parts: list[Range]) -> Range:
    op = term.op
    if op in (SHIFT_LEFT, SHIFT_RIGHT):
        least, most = parts[1]
        if least is None or most is None or least < 0 or most >= term.dtype.bits:
            return EVERYTHING
        return (ranges.multiply if op is SHIFT_LEFT else ranges.floordiv)(parts[0], (1 << least, 1 << most))
    if op is BITWISE_AND:
        tops = [high for low, high in parts if low is not None and low >= 0]
        return (0, None if None in tops else min(tops)) if tops else EVERYTHING  # type: ignore[type-var]
    if op is FABS and parts:
        return ranges.maximum(ranges.maximum(parts[0], ranges.negate(parts[0])), (0, None))[0], \
            ranges.union(parts[0], ranges.negate(parts[0]))[1]
    if op in (POPCOUNT, CLZ):
        return 0, term.args[0].dtype.bits
    if op is ELEMENTS_PAST_LINE:
        return 0, most_past_line(term)
    return EVERYTHING
