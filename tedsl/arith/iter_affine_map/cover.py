"""Whether the parts of each iterator in a map are apart from each other, and whether they cover it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.arith.iter_affine_map.nodes import IterMark, IterSplitExpr, IterSumExpr
from tedsl.arith.iter_affine_map.sums import Sums
from tedsl.ir import build
from tedsl.ir.expr import Expr


def parts_by_iterator(maps: Iterable[IterSumExpr]) -> dict[IterMark, list[IterSplitExpr]]:
    """Returns the parts of each iterator below the maps; an iterator stands before those whose parts it sums."""
    found: dict[IterMark, list[IterSplitExpr]] = {}
    stack = [split for one in maps for split in one.args]
    while stack:
        split = stack.pop()
        mark = split.source
        if mark not in found and isinstance(mark.source, IterSumExpr):
            stack.extend(mark.source.args)
        found.setdefault(mark, []).append(split)
    return _outer_first(found)


def _outer_first(found: dict[IterMark, list[IterSplitExpr]]) -> dict[IterMark, list[IterSplitExpr]]:
    order: dict[IterMark, None] = {}  # children before parents
    stack: list[tuple[IterMark, bool]] = [(mark, False) for mark in found]
    while stack:
        mark, done = stack.pop()
        if mark in order:
            continue
        if done:
            order[mark] = None
            continue
        stack.append((mark, True))
        if isinstance(mark.source, IterSumExpr):
            stack.extend((split.source, False) for split in mark.source.args)
    return {mark: found[mark] for mark in reversed(order)}


def parts_fit(sums: Sums, mark: IterMark, splits: Sequence[IterSplitExpr], whole: bool) -> bool:
    """Tells whether the parts of an iterator do not overlap; whole: and cover it.

    Each begins where the one below it ends, at lower_factor * extent, or (not whole) at a multiple of that.
    """
    left = list(splits)
    end: Expr = build.const(1, mark.extent.dtype)
    while left:
        at = next((i for i, split in enumerate(left) if sums.same(split.lower_factor, end)), None)
        if at is None and not whole:
            at = next((i for i, split in enumerate(left) if sums.quotient(split.lower_factor, end) is not None), None)
        if at is None:
            return False
        split = left.pop(at)
        end = sums.times(split.lower_factor, split.extent)
    return sums.same(end, mark.extent) if whole else sums.quotient(mark.extent, end) is not None
