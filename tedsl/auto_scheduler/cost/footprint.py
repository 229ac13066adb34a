"""How many elements, and how far apart, an access touches while some of its loops run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir.expr import Add, Expr, FloorDiv, FloorMod, IntImm, Mul, Sub, Var

Span = tuple[int, int]  # the number of different values of an index, and the width of the range that they lie in
ONE: Span = (1, 1)


def span(index: Expr, extents: Mapping[Var, int]) -> Span:
    """The values of an index while the variables of `extents` run; other variables stand still."""
    match index:
        case Var():
            return (extents[index], extents[index]) if index in extents else ONE
        case IntImm():
            return ONE
        case Add(a=a, b=b) | Sub(a=a, b=b):
            (one, wide), (other, far) = span(a, extents), span(b, extents)
            width = wide + far - 1
            return min(one * other, width), width
        case Mul(a=a, b=IntImm(value=scale)) | Mul(a=IntImm(value=scale), b=a):
            count, width = span(a, extents)
            return count, (width - 1) * max(1, abs(scale)) + 1
        case FloorDiv(a=a, b=IntImm(value=scale)) if scale > 0:
            count, width = span(a, extents)
            width = (width - 1) // scale + 1
            return min(count, width), width
        case FloorMod(a=a, b=IntImm(value=scale)) if scale > 0:
            count, width = span(a, extents)
            return min(count, scale), min(width, scale)
    return _anywhere(index, extents)


def _anywhere(index: Expr, extents: Mapping[Var, int]) -> Span:
    """An index that is read from memory, or computed in another way: as many values as its variables have together."""
    count, stack, seen = 1, [index], set[int]()
    while stack:
        node: Any = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            count *= extents.get(node, 1) if isinstance(node, Var) else 1
            stack += [child for child in node.child_nodes() if isinstance(child, Expr)]
    return count, count


def touched(indices: tuple[Expr, ...], extents: Mapping[Var, int], line: int) -> tuple[int, int]:
    """The elements that an access touches, and the lines of memory; line: the elements of one."""
    count, lines = 1, 1
    for at, index in enumerate(indices):
        values, width = span(index, extents)
        count *= values
        if at == len(indices) - 1:
            values = min(values, (width - 1) // line + 1)
        lines *= values
    return count, lines
