"""Divides maps by outer and inner loops: subspace_divide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tedsl.arith.iter_affine_map.detect import Search
from tedsl.arith.iter_affine_map.nodes import IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr
from tedsl.arith.iter_affine_map.sums import Sums
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.visitor import uses


def subspace_divide(bindings: Sequence[Expr | int], input_iters: Mapping[Var | IterVar, Range],
                    sub_iters: Sequence[Var | IterVar], predicate: Expr | bool = True,
                    require_bijective: bool = False) -> list[list[IterMark]]:
    """Returns [outer, inner] of each binding: binding == outer.source * inner.extent + inner.source, where the inner one uses
    `sub_iters` only and the outer one the other iterators; [] where a binding is no such map.

    The last entry holds, as extents, what the predicate says of the outer and of the inner iterators.

        z*12 + y*3 + x + c over x in [0, 3), sub_iters [x]  ->  [[z*4 + y, x + c], [True, True]]
    """
    if isinstance(sub_iters, str) or not isinstance(sub_iters, Iterable):
        raise ArgumentTypeError(f"subspace_divide: sub_iters are the inner iterators, a list of variables, not {sub_iters!r}",
                                hint="subspace_divide(bindings, {x: Range, y: Range}, [x])")
    search = Search.of("subspace_divide", bindings, input_iters, predicate)
    maps = search.maps(search.indices, require_bijective)
    if maps is None:
        return []
    division = _Division(search.sums, [v.var if isinstance(v, IterVar) else v for v in sub_iters])
    pairs = [division.of_sum(one) for one in maps]
    if any(pair is None for pair in pairs):
        return []
    for var, rng in search.iters.items():
        search.analyzer.bind(var, rng)
    nothing = IterSumExpr((), build.const(0))
    conditions = [IterMark(nothing, search.analyzer.simplify(part)) for part in (division.outer_holds, division.inner_holds)]
    return [[pair.outer, pair.inner] for pair in pairs if pair is not None] + [conditions]


class Pair(NamedTuple):
    """outer * inner.extent + inner; a side that does nothing has extent 1."""

    outer: IterMark
    inner: IterMark


class _Division:
    """Divides maps; collects the conditions under which the halves are those of the map."""

    def __init__(self, sums: Sums, inner: Collection[Var]) -> None:
        self.sums, self.inner = sums, inner
        self.outer_holds, self.inner_holds = build.true(), build.true()

    def of_sum(self, total: IterSumExpr) -> Pair | None:
        """Returns the halves of a map of one part. The base belongs to the inner half, if there is one."""
        if not total.args:
            return Pair(self._nothing(total.base), IterMark(total, build.const(1, total.base.dtype)))
        split, = total.args
        pair = self._of_split(split)
        if pair is None:
            return None
        outer, inner = (IterMark(self.sums.scaled(mark.source, split.scale), mark.extent) for mark in pair)
        base = IterSumExpr((), total.base)
        if self._one(inner):
            return Pair(IterMark(self.sums.plus(outer.source, base), outer.extent), inner)
        return Pair(outer, IterMark(self.sums.plus(inner.source, base), inner.extent))

    def _nothing(self, like: Expr) -> IterMark:
        return IterMark(IterSumExpr((), build.const(0, like.dtype)), build.const(1, like.dtype))

    def _one(self, mark: IterMark) -> bool:
        return build.as_int(mark.extent) == 1

    def _part(self, mark: IterMark, lower: Expr, extent: Expr) -> IterMark:
        """Returns mark // lower % extent as an iterator."""
        one = build.const(1, extent.dtype)
        if build.as_int(extent) == 1:
            return self._nothing(extent)
        if self.sums.same(extent, mark.extent) and isinstance(mark.source, IterSumExpr):
            return mark
        return IterMark(IterSumExpr((IterSplitExpr(mark, lower, extent, one),), build.const(0, extent.dtype)), extent)

    def _of_split(self, split: IterSplitExpr) -> Pair | None:
        """Returns the halves of a part, without its scale."""
        mark, lower, extent = split.source, split.lower_factor, split.extent
        if not isinstance(mark.source, IterSumExpr):
            part, nothing = self._part(mark, lower, extent), self._nothing(extent)
            return Pair(nothing, part) if uses(mark.source, self.inner) else Pair(part, nothing)
        pair = self._of_mark(mark)
        if pair is None:
            return None
        outer, inner = pair
        if self._one(inner):
            return Pair(self._part(outer, lower, extent), inner)
        if self._one(outer):
            return Pair(outer, self._part(inner, lower, extent))
        return self._across(pair, lower, extent)

    def _across(self, pair: Pair, lower: Expr, extent: Expr) -> Pair | None:
        """Returns the halves of a part of outer * inner.extent + inner that ends, or is cut, where the inner iterator ends."""
        sums, (outer, inner) = self.sums, pair
        end = sums.times(lower, extent)
        if sums.quotient(inner.extent, end) is not None:
            return Pair(self._nothing(extent), self._part(inner, lower, extent))
        above = sums.quotient(lower, inner.extent)
        if above is not None:
            return Pair(self._part(outer, above, extent), self._nothing(extent))
        below, rest = sums.quotient(inner.extent, lower), sums.quotient(end, inner.extent)
        if below is None or rest is None:
            return None
        return Pair(self._part(outer, build.const(1, extent.dtype), rest), self._part(inner, lower, below))

    def _of_mark(self, mark: IterMark) -> Pair | None:
        """Returns the halves of an iterator over a sum: everything inner stands below everything outer."""
        sums, like = self.sums, mark.extent
        outer, inner = self._nothing(like), self._nothing(like)
        for split in reversed(mark.source.args):
            pair = self._of_split(split)
            if pair is None or not (self._one(pair.inner) or self._one(outer)):
                return None
            inner, outer = self._above(pair.inner, inner), self._above(pair.outer, outer)
        if sums.same(sums.times(outer.extent, inner.extent), mark.extent):
            return Pair(outer, inner)
        return self._limited(mark, outer, inner)

    def _above(self, upper: IterMark, lower: IterMark) -> IterMark:
        """Returns the iterator upper * lower.extent + lower."""
        source = self.sums.plus(self.sums.scaled(upper.source, lower.extent), lower.source)
        return IterMark(source, self.sums.times(upper.extent, lower.extent))

    def _limited(self, mark: IterMark, outer: IterMark, inner: IterMark) -> Pair | None:
        """Returns the halves of an iterator over some of the values of its sum, all outer or all inner; adds the condition."""
        if not self._one(outer) and not self._one(inner):
            return None
        whole = outer if self._one(inner) else inner
        source = self.sums.plus(whole.source, IterSumExpr((), mark.source.base))
        value = normalize_iter_map_to_expr(source)
        holds = build.logical_and(build.greater_equal(value, 0), build.less(value, mark.extent))
        limited = IterMark(source, mark.extent)
        if whole is outer:
            self.outer_holds = build.logical_and(self.outer_holds, holds)
            return Pair(limited, inner)
        self.inner_holds = build.logical_and(self.inner_holds, holds)
        return Pair(outer, limited)
