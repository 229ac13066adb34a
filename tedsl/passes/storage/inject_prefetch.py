"""Prefetch the region that a later iteration reads, as `prefetch` asks.

before:  for (i: 0, n) { attr [A] "prefetch_scope" = 1 { for (j: 0, m) { B[i, j] = A[i, j] } } }
after:   for (i: 0, n) { prefetch(A, [i + 1:i + 2, 0:m]) { for (j: 0, m) { B[i, j] = A[i, j] } } }

A region that is not known (its position depends on data) is not prefetched, for prefetching is only a hint. Elements of an
argument that lie behind each other across its last dimensions, as a loop over both at once reads them, are part of a long row:

    prefetch(A, [0:1, m*i + 16*j:m*i + 16*j + 16])

Under "prefetch_spread_scope" the loops in the body do a part of it in each iteration (see `spread_prefetch`).

Around these attributes, "prefetch_into" of an output asks for its elements at these places instead, in order to write them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, flat_index
from tedsl.ir.expr import BufferLoad, Expr, Load
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import AttrStmt, For, Prefetch, Stmt, seq
from tedsl.ir.walk.accesses import Access, accesses
from tedsl.ir.walk.around import Binding, Loop
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import bind_launched
from tedsl.passes.storage.spread_prefetch import spread

SCOPE, SPREAD, INTO = "prefetch_scope", "prefetch_spread_scope", "prefetch_into"
Ends = tuple[Expr, Expr]  # lowest and highest value, both included


def inject_prefetch(func: PrimFunc) -> PrimFunc:
    """Returns `func` with a Prefetch at the start of each marked loop body."""
    return func.with_body(_Injector(func.buffers)(func.body)) if contains(func.body, SCOPE, SPREAD) else func


class _Injector(ScopedRewriter):
    """arguments: the buffers of the caller; the others need not lie in memory as they are declared."""

    def __init__(self, arguments: Collection[Buffer]) -> None:
        self.arguments = arguments
        self.loops: list[For] = []
        self.analyzer = Analyzer()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                if not _reads(stmt.extent):
                    self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
                self.loops.append(stmt)
                done = self.descend(stmt)
                self.loops.pop()
                return done
            case AttrStmt(attr_key=key, node=Buffer() as written, body=AttrStmt() as scope) if key == INTO:
                return self.injected(scope, written)
            case AttrStmt(attr_key=key, node=Buffer()) if key in (SCOPE, SPREAD):
                return self.injected(stmt, None)
            case _:
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)

    def injected(self, stmt: AttrStmt, written: Buffer | None) -> Stmt:
        """The body of `stmt`, which asks for a region, or for that of `written` at its places, with the prefetch in it."""
        body = self.stmt(stmt.body)
        region = self.region(stmt.node, stmt.body)
        if region is None or not self.loops:
            return body
        var = self.loops[-1].loop_var
        later = {var: build.add(var, build.cast(var.dtype, stmt.value))}
        ahead = tuple([_moved(part, later, self.analyzer) for part in region])
        if written is not None:
            return seq(Prefetch(written, ahead, 1), body)
        parted = spread(body, stmt.node, ahead) if stmt.attr_key == SPREAD else None
        return parted or seq(Prefetch(stmt.node, ahead), body)

    def region(self, buffer: Buffer, body: Stmt) -> list[Range] | None:
        """Returns the region of `buffer` that `body` reads; None if that is empty or unknown.

        Of an argument without strides, the smallest of those with some of the last dimensions as one row, if that is smaller.
        """
        rank = len(buffer.shape)
        joined = rank if buffer in self.arguments and not buffer.strides else 1
        best, fewest = None, None
        for last in range(1, joined + 1):
            region = self.region_of_rows(buffer, body, last)
            count = None if region is None else _count(region)
            if last == 1 or (count is not None and (fewest is None or count < fewest)):
                best, fewest = region, count
        return best

    def region_of_rows(self, buffer: Buffer, body: Stmt, last: int) -> list[Range] | None:
        """As `region`, with the `last` dimensions as one row, along the last of them."""
        regions = self.touched(buffer, body, last)
        if not regions:
            return None
        region = []
        for dim in range(len(regions[0])):
            low, high = regions[0][dim]
            for ends in regions[1:]:
                low, high = self.least(low, ends[dim][0]), self.greatest(high, ends[dim][1])
            region.append(Range.from_min_extent(low, self.analyzer.simplify(build.add(build.sub(high, low), 1))))
        begin = Range.from_min_extent(build.const(0, "int32"), build.const(1, "int32"))
        return [*region[:-1], *[begin] * (last - 1), *region[-1:]]  # an array without dimensions has none

    def touched(self, buffer: Buffer, body: Stmt, last: int) -> list[tuple[Ends, ...]] | None:
        """Returns, for each load of `buffer` in `body`, the interval of each index over the loops inside, of the `last` ones as
        one; None if one is unknown.
        """
        regions: dict[BufferLoad, tuple[Ends, ...]] = {}
        for access in accesses(body):
            if access.memory is buffer and not access.writes and access.node not in regions:
                region = self.reached(access, self.joined(buffer, access.indices, last))
                if region is None:
                    return None
                regions[access.node] = region
        return list(regions.values())

    def joined(self, buffer: Buffer, indices: tuple[Expr, ...], last: int) -> tuple[Expr, ...]:
        if last == 1:
            return indices
        first = len(indices) - last
        row = flat_index(indices[first:], buffer.shape[first:], ())
        return *indices[:first], self.analyzer.simplify(row)

    def reached(self, load: Access, indices: tuple[Expr, ...]) -> tuple[Ends, ...] | None:
        """Returns the interval of each of the `indices` of `load` over all iterations of the loops around it; None if one is
        unknown.
        """
        if any(_reads(index) or index.dtype.lanes > 1 for index in indices):
            return None
        region: tuple[Ends, ...] = tuple((index, index) for index in indices)
        for step in load.around:
            if isinstance(step, Binding) and any(step.var in variables(end) for ends in region for end in ends):
                return None
            if isinstance(step, Loop):
                if _reads(step.extent) or _reads(step.min):
                    return None
                ranges = {step.var: (step.min, build.sub(build.add(step.min, step.extent), 1))}
                known = [self.ends(ends, ranges) for ends in region]
                region = tuple(ends for ends in known if ends is not None)
                if len(region) < len(known):
                    return None
        return region

    def ends(self, pair: Ends, ranges: Mapping[Any, tuple[Expr, Expr]]) -> Ends | None:
        low = relax(pair[0], ranges, self.analyzer)[0]
        high = relax(pair[1], ranges, self.analyzer)[1]
        return None if low is None or high is None else (low, high)

    def least(self, a: Expr, b: Expr) -> Expr:
        return self.analyzer.simplify(build.minimum(a, b))

    def greatest(self, a: Expr, b: Expr) -> Expr:
        return self.analyzer.simplify(build.maximum(a, b))


def _count(region: list[Range]) -> int | None:
    """Returns the number of elements of `region`; None if it is not a constant."""
    count = 1
    for part in region:
        extent = build.as_int(part.extent)
        if extent is None:
            return None
        count *= extent
    return count


def _reads(expr: Expr) -> bool:
    return any(isinstance(node, (BufferLoad, Load)) for node in post_order(expr))


def _moved(part: Range, later: Mapping[Any, Expr], analyzer: Analyzer) -> Range:
    assert part.extent is not None
    return Range.from_min_extent(*(analyzer.simplify(substitute(e, later)) for e in (part.min, part.extent)))
