"""Finds the map of indices over loops: detect_iter_map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.arith.iter_affine_map.cover import parts_by_iterator, parts_fit
from tedsl.arith.iter_affine_map.nodes import IterMark, IterSplitExpr, IterSumExpr
from tedsl.arith.iter_affine_map.sums import Sums
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import GE, GT, LE, LT, Add, Expr, FloorDiv, FloorMod, IntImm, Mul, SizeVar, Sub, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.visitor import post_order, uses, variables

_TURNED: dict[type[Expr], type[Expr]] = {LT: GT, LE: GE, GT: LT, GE: LE}  # a comparison with its sides exchanged, or negative


def detect_iter_map(indices: Sequence[Expr | int], input_iters: Mapping[Var | IterVar, Range], predicate: Expr | bool = True,
                    require_bijective: bool = False) -> list[IterSumExpr]:
    """Returns each index as a sum of parts of the iterators, where no part is used twice; [] where there is no such map.

    predicate: comparisons, joined by And, of indices with bounds; they hold for all iterations that are meant.
    require_bijective: every iteration has indices of its own, and all indices within their extents are met.
    Quotients and remainders are parts where the divisor divides the extent. Raises ArgumentTypeError for iterators without
    ranges.
    """
    search = Search.of("detect_iter_map", indices, input_iters, predicate)
    return search.maps(search.indices, require_bijective) or []


class Search:
    """The maps of indices over the same loops."""

    def __init__(self, indices: Sequence[Expr], iters: Mapping[Var, Range], predicate: Expr) -> None:
        self.indices, self.iters = indices, iters
        self.analyzer = Analyzer()
        self.sums = Sums(self.analyzer)
        sizes = {v for e in (*indices, predicate, *(r.extent for r in iters.values()), *(r.min for r in iters.values()))
                 if e is not None for v in variables(e)}
        self.analyzer.bind_sizes([v for v in sizes if isinstance(v, SizeVar) and v not in iters], 1)
        limits, self.conditions = self._limits_of_loops(predicate)
        self.starts = {var: self._start(var, rng, limits.get(var, [])) for var, rng in iters.items()}
        self.fits = all(self._limit(condition) for condition in self._few_iterators_first())

    @staticmethod
    def of(called: str, indices: Sequence[Any], iters: Mapping[Any, Any], predicate: Any) -> Search:
        """Returns a search after checks of the arguments of the function `called`."""
        if not isinstance(indices, Iterable) or isinstance(indices, str):
            raise ArgumentTypeError(f"{called}: the indices are {indices!r}, not a list of expressions",
                                    hint="write [x * 4 + y]")
        if not isinstance(iters, Mapping):
            raise ArgumentTypeError(f"{called}: input_iters is {iters!r}, not a dict", hint="write {x: tedsl.ir.Range(0, 8)}")
        ranges: dict[Var, Range] = {}
        for key, rng in iters.items():
            var = key.var if isinstance(key, IterVar) else key
            if not isinstance(var, Var) or not isinstance(rng, Range) or rng.extent is None:
                raise ArgumentTypeError(f"{called}: input_iters has {key!r}: {rng!r}, not a variable and its Range",
                                        hint="write {x: tedsl.ir.Range(0, 8)}")
            ranges[var] = rng
        return Search([build.as_expr(index) for index in indices], ranges, build.as_expr(predicate))

    # --- what the predicate says ------------------------------------------------------------------------------------

    def _limits_of_loops(self, predicate: Expr) -> tuple[dict[Var, list[Expr]], list[Expr]]:
        """Returns the conditions of single iterators, and the others that are not trivial."""
        single: dict[Var, list[Expr]] = {}
        others = []
        for part in conjuncts(self.analyzer.simplify(predicate)):
            if isinstance(part, IntImm) and part.value:
                continue
            below = [v for v in variables(part) if v in self.iters]
            alone = isinstance(part, (LT, LE, GT, GE)) and len(below) == 1 and below[0] in (part.a, part.b)
            if alone:
                single.setdefault(below[0], []).append(part)
            else:
                others.append(part)
        return single, others

    def _start(self, var: Var, rng: Range, limits: list[Expr]) -> IterSumExpr:
        """Returns the iterator of a loop over the values that the conditions of its variable leave."""
        first, end = rng.min, build.add(rng.min, rng.extent)
        for condition in limits:
            low, high = _ends(condition, lambda side: side is var)
            first = first if low is None else build.maximum(first, low)
            end = end if high is None else build.minimum(end, high)
        first = self.analyzer.simplify(first)
        extent = self.analyzer.simplify(build.sub(end, first))
        if build.as_int(extent) == 1:
            return IterSumExpr((), first)
        mark = IterMark(var if build.as_int(first) == 0 else build.sub(var, first), extent)
        one = build.const(1, extent.dtype)
        return IterSumExpr((IterSplitExpr(mark, one, extent, one),), first)

    def _few_iterators_first(self) -> list[Expr]:
        return sorted(self.conditions, key=lambda c: sum(v in self.iters for v in variables(c)))

    def _limit(self, condition: Expr) -> bool:
        """Adds the iterator over the values of a sum that a condition leaves; False for other conditions."""
        if not isinstance(condition, (LT, LE, GT, GE)):
            return False
        total = self.rewritten(build.sub(condition.a, condition.b))
        if total is None:
            return False
        if not total.args:
            return self.analyzer.can_prove(condition)
        kind: type[Expr] = type(condition)
        order = self.sums.chain(total.args) if len(total.args) > 1 else list(total.args)
        if order is not None and self.analyzer.can_prove(build.less(order[-1].scale, 0)):
            total = self.sums.scaled(total, build.const(-1, total.base.dtype))
            kind = _TURNED[kind]
        whole = self.sums.fused(IterSumExpr(total.args, build.const(0, total.base.dtype)))
        return whole is not None and self._narrow(whole, kind, build.sub(0, total.base))

    def _narrow(self, whole: IterSumExpr, kind: type[Expr], bound: Expr) -> bool:
        """Limits a single part by part*scale + base <kind> bound."""
        split, = whole.args
        rest = build.sub(bound, whole.base)
        if not self.sums.positive(split.scale):
            return False
        first, end = build.const(0, rest.dtype), split.extent
        if kind in (LT, LE):  # part <= floor((rest - strict) / scale)
            last = build.floordiv(build.sub(rest, int(kind is LT)), split.scale)
            end = build.minimum(end, build.add(last, 1))
        else:  # part >= ceil((rest + strict) / scale)
            least = build.sub(0, build.floordiv(build.sub(0, build.add(rest, int(kind is GT))), split.scale))
            first = build.maximum(first, least)
        first, extent = self.analyzer.simplify(first), self.analyzer.simplify(build.sub(end, first))
        if self.sums.same(extent, split.extent):
            return True
        one = split.replace(scale=build.const(1, rest.dtype))
        total = IterSumExpr((one,), build.const(0, rest.dtype))
        if split.source in self.sums.fused_marks and self.sums.same(split.extent, split.source.extent):
            total = split.source.source
        mark = IterMark(total.replace(base=self.analyzer.simplify(build.sub(0, first))), extent)
        self.sums.limited.append((total, mark, first))
        return True

    # --- the maps ---------------------------------------------------------------------------------------------------

    def maps(self, indices: Iterable[Expr], bijective: bool) -> list[IterSumExpr] | None:
        """Returns the maps of the indices; None where one is none, or their parts do not fit together."""
        if not self.fits:
            return None
        found = []
        for index in indices:
            total = self.rewritten(index)
            whole = None if total is None else self.sums.fused(total)
            if whole is None:
                return None
            found.append(whole)
        return found if self._fit(found, bijective) else None

    def _fit(self, found: list[IterSumExpr], bijective: bool) -> bool:
        parts = parts_by_iterator(found)
        if not all(mark in parts for _, mark, _ in self.sums.limited):
            return False  # what the predicate limits is not used as a whole
        if bijective:
            inputs = [split.source for start in self.starts.values() for split in start.args]
            if not all(mark in parts for mark in inputs):
                return False
        return all(parts_fit(self.sums, mark, splits, bijective) for mark, splits in parts.items())

    def rewritten(self, index: Expr) -> IterSumExpr | None:
        """Returns an index as a sum of parts of the iterators; None if it is none."""
        done: dict[Any, IterSumExpr | None] = {}
        for e in post_order(index):
            if isinstance(e, Expr):
                done[e] = self._of(e, done)
        return done[index]

    def _of(self, e: Expr, done: Mapping[Any, IterSumExpr | None]) -> IterSumExpr | None:
        if isinstance(e, Var) and e in self.starts:
            return self.starts[e]
        below = [done[child] for child in e.child_nodes() if isinstance(child, Expr)]
        if any(part is None for part in below):
            return None
        if not any(part is not None and part.args for part in below) and not uses(e, list(self.iters)):
            return self.sums.constant(e) if e.dtype.is_integer and e.dtype.lanes == 1 else None
        if isinstance(e, (Add, Sub, Mul, FloorDiv, FloorMod)):
            a, b = done[e.a], done[e.b]
            return None if a is None or b is None else self._arithmetic(e, a, b)
        return None

    def _arithmetic(self, e: Add | Sub | Mul | FloorDiv | FloorMod, a: IterSumExpr, b: IterSumExpr) -> IterSumExpr | None:
        if isinstance(e, (Add, Sub)):
            return self.sums.plus(a, b, 1 if isinstance(e, Add) else -1)
        if isinstance(e, Mul):
            by, factor = (a, b) if not b.args else (b, a)
            return None if factor.args else self.sums.scaled(by, factor.base)
        if b.args:
            return None
        if not a.args:  # iterators of one iteration
            kind = build.floordiv if isinstance(e, FloorDiv) else build.floormod
            return self.sums.constant(kind(a.base, b.base))
        return self.sums.floordiv(a, b.base) if isinstance(e, FloorDiv) else self.sums.floormod(a, b.base)


def _ends(condition: Any, iterates: Callable[[Expr], bool]) -> tuple[Expr | None, Expr | None]:
    """Returns the least value and the end (exclusive) that a comparison gives the side that iterates."""
    kind: type[Expr] = type(condition)
    value, bound = condition.a, condition.b
    if not iterates(value):
        kind, bound = _TURNED[kind], value
    if kind is LT:
        return None, bound
    if kind is LE:
        return None, build.add(bound, 1)
    return build.add(bound, 1) if kind is GT else bound, None
