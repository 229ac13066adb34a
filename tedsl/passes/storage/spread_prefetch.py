"""Part a prefetch among the iterations of the loops beside it: each asks for a line or some, while the others compute.

before:  for (i: 0, n) { attr [A] "prefetch_spread_scope" = 1 { for (j: 0, 3) { for (k: 0, 64) { ... A[i, k] ... } } } }
after:   for (i: 0, n) { for (j: 0, 3) { prefetch(A, [i + 1:i + 2, 32*j:32*j + 1]) ... for (k: 0, 64) { ... } } }

The lines follow the nest of loops that does most of the work, down to the last loop with which it has no more iterations than
there are lines.
"""

from __future__ import annotations

import math

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For, ForKind, Prefetch, Stmt, seq
from tedsl.ir.walk.rewriter import ScopedRewriter

_LINE = 64  # bytes


def spread(body: Stmt, buffer: Buffer, region: tuple[Range, ...]) -> Stmt | None:
    """Returns `body` with prefetches of the lines of `region` in its loops; None if it has no loops for that, or their
    iterations or the region are not known.
    """
    extents = [build.as_int(part.extent) for part in region]
    sizes = [extent for extent in extents if extent is not None]
    if len(sizes) < len(extents) or not sizes or min(sizes) < 1:
        return None
    steps = _steps(buffer, sizes)
    counts = [-(-size // step) for size, step in zip(sizes, steps)]
    lines = math.prod(counts)
    index, iterations, at = build.const(0, "int32"), 1, body
    chosen: For | None = None
    while (loop := _busiest(at)) is not None:
        extent = build.as_int(loop.extent)
        if extent is None or iterations * extent > lines:
            break
        index = build.add(build.mul(index, extent), build.sub(loop.loop_var, loop.min))
        chosen, at, iterations = loop, loop.body, iterations * extent
    if chosen is None:
        return None
    each = -(-lines // iterations)
    asked = [_line(buffer, region, counts, steps, _position(index, each, one, iterations, lines)) for one in range(each)]
    made: Stmt = _Insertion(chosen, asked)(body)
    return made


def _steps(buffer: Buffer, sizes: list[int]) -> list[int]:
    """The elements of a line along each dimension; several rows, where these are whole and shorter than a line."""
    steps, left, at = [1] * len(sizes), max(1, _LINE // buffer.dtype.bytes), len(sizes) - 1
    while at > 0 and sizes[at] < left and sizes[at] == build.as_int(buffer.shape[at]) and left % sizes[at] == 0:
        steps[at], left, at = sizes[at], left // sizes[at], at - 1
    steps[at] = left
    return steps


def _position(index: Expr, each: int, one: int, iterations: int, lines: int) -> Expr:
    """The line that iteration `index` of all asks for, as number `one` of its own."""
    line = build.add(build.mul(index, each), one)
    return line if iterations * each <= lines else build.minimum(line, lines - 1)


def _line(buffer: Buffer, region: tuple[Range, ...], counts: list[int], steps: list[int], line: Expr) -> Stmt:
    bounds = []
    for part, count, step in reversed(list(zip(region, counts, steps))):
        place = build.const(0, line.dtype) if count == 1 else build.floormod(line, count)
        line = line if count == 1 else build.floordiv(line, count)
        bounds.append(Range.from_min_extent(build.add(part.min, build.mul(place, step)), build.const(1, "int32")))
    return Prefetch(buffer, tuple(reversed(bounds)))


def _busiest(stmt: Stmt) -> For | None:
    """The outermost serial loop in `stmt` that has the most iterations, with those of the loops inside."""
    return max(_outermost(stmt), key=_work, default=None)


def _work(loop: For) -> int:
    """The iterations of a loop and of the loops inside; one whose extent is not known counts as one."""
    return (build.as_int(loop.extent) or 1) * max(1, sum([_work(inner) for inner in _outermost(loop.body)]))


def _outermost(stmt: Stmt) -> list[For]:
    """The serial loops in `stmt` that are in no other loop."""
    found, stack = list[For](), [stmt]
    while stack:
        one = stack.pop()
        if not isinstance(one, For):
            stack += [child for child in reversed(one.child_nodes()) if isinstance(child, Stmt)]
        elif one.kind is ForKind.SERIAL:
            found.append(one)
    return found


class _Insertion(ScopedRewriter):
    """Puts statements at the beginning of the body of one loop."""

    def __init__(self, loop: For, first: list[Stmt]) -> None:
        self.loop, self.first = loop, first

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if stmt is self.loop:
            return self.loop.replace(body=seq(*self.first, self.loop.body))
        return self.descend(stmt)
