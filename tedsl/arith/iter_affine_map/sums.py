"""Arithmetic on sums of parts of iterators: sums, products with factors, quotients, remainders, and one part of several.

Quotients and remainders are of single parts; a sum of several becomes one by `fused` where the scale of each is the extent of
all below it: y*12 + x*4 + i for x in [0, 3), i in [0, 4) is one iterator over y's extent times 12.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.iter_affine_map.nodes import IterMark, IterSplitExpr, IterSumExpr
from tedsl.ir import build
from tedsl.ir.expr import Expr


class Sums:
    """Sums over the iterators of one map. Equal sums that are fused are one iterator."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.fused_marks: list[IterMark] = []
        self.limited: list[tuple[IterSumExpr, IterMark, Expr]] = []  # a fused sum, the iterator instead of it, its least value

    # --- factors ----------------------------------------------------------------------------------------------------

    def same(self, a: Expr, b: Expr) -> bool:
        """Tells whether two factors are proved equal."""
        x, y = build.as_int(a), build.as_int(b)
        if x is not None and y is not None:
            return x == y
        return a is b or self.analyzer.can_prove(build.equal(a, b))

    def times(self, a: Expr, b: Expr) -> Expr:
        return self.analyzer.simplify(build.mul(a, b))

    def quotient(self, a: Expr, b: Expr) -> Expr | None:
        """Returns a / b; None where b is not proved to divide a."""
        if not self.analyzer.can_prove(build.equal(build.floormod(a, b), 0)):
            return None
        return self.analyzer.simplify(build.floordiv(a, b))

    def positive(self, a: Expr) -> bool:
        return self.analyzer.can_prove(build.greater(a, 0))

    # --- sums -------------------------------------------------------------------------------------------------------

    def constant(self, value: Expr) -> IterSumExpr:
        return IterSumExpr((), self.analyzer.simplify(value))

    def plus(self, a: IterSumExpr, b: IterSumExpr, sign: int = 1) -> IterSumExpr:
        """Returns a + b or a - b; multiples of one part are added up."""
        args = list(a.args)
        for split in b.args:
            scale = self.times(split.scale, build.const(sign, split.scale.dtype))
            at = next((i for i, other in enumerate(args) if self._same_part(other, split)), None)
            if at is None:
                args.append(split.replace(scale=scale))
                continue
            scale = self.analyzer.simplify(build.add(args[at].scale, scale))
            args[at:at + 1] = [] if build.as_int(scale) == 0 else [args[at].replace(scale=scale)]
        join = build.add if sign == 1 else build.sub
        return IterSumExpr(tuple(args), self.analyzer.simplify(join(a.base, b.base)))

    def _same_part(self, a: IterSplitExpr, b: IterSplitExpr) -> bool:
        return a.source is b.source and self.same(a.lower_factor, b.lower_factor) and self.same(a.extent, b.extent)

    def scaled(self, a: IterSumExpr, by: Expr) -> IterSumExpr:
        """Returns a * by."""
        if build.as_int(by) == 0:
            return self.constant(by)
        return IterSumExpr(tuple(split.replace(scale=self.times(split.scale, by)) for split in a.args), self.times(a.base, by))

    # --- one part of several ----------------------------------------------------------------------------------------

    def fused(self, total: IterSumExpr) -> IterSumExpr | None:
        """Returns the sum as one part of an iterator, plus the base; None if its parts do not fit together."""
        total = self._with_limits(total)
        if len(total.args) <= 1:
            return total
        order = self.chain(total.args)
        if order is None:
            return None
        mark = self._mark(order)
        whole = IterSplitExpr(mark, build.const(1, mark.extent.dtype), mark.extent, order[-1].scale)
        return self._with_limits(IterSumExpr((whole,), total.base))

    def chain(self, args: Sequence[IterSplitExpr]) -> list[IterSplitExpr] | None:
        """Returns the parts by falling scale, each the extent of all below it times the lowest scale."""
        for lowest in args:
            order, expected = [lowest], self.times(lowest.scale, lowest.extent)
            while len(order) < len(args):
                above = next((s for s in args if all(s is not o for o in order) and self.same(s.scale, expected)), None)
                if above is None:
                    break
                order.append(above)
                expected = self.times(expected, above.extent)
            if len(order) == len(args):
                return order[::-1]
        return None

    def _mark(self, order: list[IterSplitExpr]) -> IterMark:
        """Returns the iterator over a chain of parts; the one that there is, if this sum has been fused before."""
        extent = build.const(1, order[0].extent.dtype)
        parts: list[IterSplitExpr] = []
        for split in reversed(order):
            parts.insert(0, split.replace(scale=extent))
            extent = self.times(extent, split.extent)
        for mark in self.fused_marks:
            if self._same_sum(mark.source.args, parts):
                return mark
        mark = IterMark(IterSumExpr(tuple(parts), build.const(0, extent.dtype)), extent)
        self.fused_marks.append(mark)
        return mark

    def _same_sum(self, a: Sequence[IterSplitExpr], b: Sequence[IterSplitExpr]) -> bool:
        return len(a) == len(b) and all(self._same_part(x, y) and self.same(x.scale, y.scale) for x, y in zip(a, b))

    def _with_limits(self, total: IterSumExpr) -> IterSumExpr:
        """Returns the sum with the iterators that a predicate limits instead of the sums that it speaks of."""
        for limited, mark, least in self.limited:
            found = self._occurs(limited.args, total.args)
            if found is None:
                continue
            factor, used = found
            rest = tuple(split for split in total.args if all(split is not u for u in used))
            whole = IterSplitExpr(mark, build.const(1, factor.dtype), mark.extent, factor)
            base = self.analyzer.simplify(build.add(total.base, self.times(least, factor)))
            total = IterSumExpr((*rest, whole), base)
        return total

    def _occurs(self, wanted: Sequence[IterSplitExpr],
                args: Sequence[IterSplitExpr]) -> tuple[Expr, list[IterSplitExpr]] | None:
        """Returns the factor by which a sum occurs among `args`, and its parts there; None if it does not."""
        used = [next((s for s in args if self._same_part(s, w)), None) for w in wanted]
        parts = [s for s in used if s is not None]
        if len(parts) < len(wanted) or not parts:
            return None
        factor = self.quotient(parts[-1].scale, wanted[-1].scale)
        if factor is None or not all(self.same(s.scale, self.times(w.scale, factor)) for s, w in zip(parts, wanted)):
            return None
        return factor, parts

    # --- quotients and remainders -----------------------------------------------------------------------------------

    def floordiv(self, a: IterSumExpr, by: Expr) -> IterSumExpr | None:
        """Returns a // by; None where it is no part of an iterator."""
        ready = self._for_division(a, by)
        if ready is None:
            return None
        split, by, base = ready
        scale = self.quotient(split.scale, by)
        if scale is not None:
            return self._part(split.replace(scale=scale), base)
        part = self._reduced(split, by)
        if part is None:
            return None
        one = build.const(1, by.dtype)
        split, by = part
        extent = self.quotient(split.extent, by)
        if extent is not None:
            lower = self.times(split.lower_factor, by)
            return self._part(split.replace(lower_factor=lower, extent=extent, scale=one), base)
        return self.constant(base) if self._within(split, by) else None

    def floormod(self, a: IterSumExpr, by: Expr) -> IterSumExpr | None:
        """Returns a % by; None where it is no part of an iterator."""
        ready = self._for_division(a, by)
        if ready is None:
            return None
        split, by, _ = ready
        zero = build.const(0, by.dtype)
        if self.quotient(split.scale, by) is not None:
            return self.constant(zero)
        part = self._reduced(split, by)
        if part is None:
            return None
        scale = split.scale
        split, by = part
        if self.quotient(split.extent, by) is not None:
            return self._part(split.replace(extent=by, scale=scale), zero)
        return self._part(split.replace(scale=scale), zero) if self._within(split, by) else None

    def _for_division(self, a: IterSumExpr, by: Expr) -> tuple[IterSplitExpr, Expr, Expr] | None:
        """Returns the single part of the dividend, the divisor, and the quotient of the base, which it divides."""
        whole = self.fused(a)
        if whole is None or len(whole.args) != 1 or not self.positive(by):
            return None
        base = self.quotient(whole.base, by)
        return None if base is None else (whole.args[0], by, base)

    def _reduced(self, split: IterSplitExpr, by: Expr) -> tuple[IterSplitExpr, Expr] | None:
        """Returns the part and the divisor, both divided by the scale of the part; None if it does not divide."""
        if not self.positive(split.scale):
            return None
        rest = self.quotient(by, split.scale)
        return None if rest is None else (split, rest)

    def _within(self, split: IterSplitExpr, by: Expr) -> bool:
        return self.analyzer.can_prove(build.less_equal(split.extent, by))

    def _part(self, split: IterSplitExpr, base: Expr) -> IterSumExpr:
        """Returns a part plus a base; a part of extent 1 is 0."""
        return self.constant(base) if build.as_int(split.extent) == 1 else IterSumExpr((split,), self.analyzer.simplify(base))
