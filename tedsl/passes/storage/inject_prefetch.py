"""What a later iteration reads, as a region: what `prefetch` asks for.

before:  for (i: 0, n) { attr [A] "prefetch_scope" = 1 { for (j: 0, m) { B[i, j] = A[i, j] } } }
after:   for (i: 0, n) { prefetch(A, [i + 1:i + 2, 0:m]) { for (j: 0, m) { B[i, j] = A[i, j] } } }

A region that cannot be told (its place depends on data) is not asked for: this is a hint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, Load
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.stmt import AttrStmt, For, LetStmt, Prefetch, Stmt, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.attributes import has_attribute
from tedsl.passes.facts.threads import as_loop, bind_launched

SCOPE = "prefetch_scope"
Ends = tuple[Expr, Expr]  # lowest and highest value, both included


def inject_prefetch(func: PrimFunc) -> PrimFunc:
    """`func` with a Prefetch at the start of each marked loop body."""
    return func.with_body(_Injector()(func.body)) if has_attribute(func.body, SCOPE) else func


class _Injector(ScopedRewriter):
    def __init__(self) -> None:
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
            case AttrStmt(attr_key=key, node=Buffer() as buffer) if key == SCOPE:
                body = self.stmt(stmt.body)
                region = self.region(buffer, stmt.body)
                if region is None or not self.loops:
                    return body
                var = self.loops[-1].loop_var
                later = {var: build.add(var, build.cast(var.dtype, stmt.value))}
                return seq(Prefetch(buffer, tuple(_moved(part, later, self.analyzer) for part in region)), body)
            case _:
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)

    def region(self, buffer: Buffer, body: Stmt) -> list[Range] | None:
        """What `body` reads of `buffer`; None if that is nothing or unknown."""
        found = self.touched(buffer, body)
        if not found:
            return None
        region = []
        for dim in range(len(buffer.shape)):
            low, high = found[0][dim]
            for ends in found[1:]:
                low, high = self.least(low, ends[dim][0]), self.greatest(high, ends[dim][1])
            region.append(Range.from_min_extent(low, self.analyzer.simplify(build.add(build.sub(high, low), 1))))
        return region

    def touched(self, buffer: Buffer, node: Node) -> list[tuple[Ends, ...]] | None:
        """The ends of each dimension for each load below `node`, relaxed over the loops inside; None if unknown."""
        if isinstance(node, Expr):
            return self.loads(buffer, node)
        found: list[tuple[Ends, ...]] = []
        for child in node.child_nodes():
            inner = self.touched(buffer, child)
            if inner is None:
                return None
            found += inner
        loop = node if isinstance(node, For) else as_loop(node, blocks=True)
        if loop is not None:
            return self.relaxed(found, loop)
        if isinstance(node, LetStmt):
            used = any(v is node.var for ends in found for pair in ends for end in pair for v in variables(end))
            return None if used else found
        return found

    def loads(self, buffer: Buffer, expr: Expr) -> list[tuple[Ends, ...]] | None:
        loads = [n for n in post_order(expr) if isinstance(n, BufferLoad) and n.buffer is buffer]
        if any(_reads(index) or index.dtype.lanes > 1 for load in loads for index in load.indices):
            return None
        return [tuple((index, index) for index in load.indices) for load in loads]

    def relaxed(self, found: list[tuple[Ends, ...]], loop: For) -> list[tuple[Ends, ...]] | None:
        """`found` over all iterations of `loop`."""
        if found and (_reads(loop.extent) or _reads(loop.min)):
            return None
        ranges = {loop.loop_var: (loop.min, build.sub(build.add(loop.min, loop.extent), 1))}
        relaxed = [tuple(self.ends(pair, ranges) for pair in ends) for ends in found]
        known = [tuple(pair for pair in ends if pair is not None) for ends in relaxed]
        return known if all(len(a) == len(b) for a, b in zip(known, found)) else None

    def ends(self, pair: Ends, ranges: Mapping[Any, tuple[Expr, Expr]]) -> Ends | None:
        low = relax(pair[0], ranges, self.analyzer)[0]
        high = relax(pair[1], ranges, self.analyzer)[1]
        return None if low is None or high is None else (low, high)

    def least(self, a: Expr, b: Expr) -> Expr:
        return self.analyzer.simplify(build.minimum(a, b))

    def greatest(self, a: Expr, b: Expr) -> Expr:
        return self.analyzer.simplify(build.maximum(a, b))


def _reads(expr: Expr) -> bool:
    return any(isinstance(node, (BufferLoad, Load)) for node in post_order(expr))


def _moved(part: Range, later: Mapping[Any, Expr], analyzer: Analyzer) -> Range:
    assert part.extent is not None
    return Range.from_min_extent(*(analyzer.simplify(substitute(e, later)) for e in (part.min, part.extent)))
