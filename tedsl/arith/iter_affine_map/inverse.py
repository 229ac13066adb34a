"""The inverse of a bijective map: inverse_affine_iter_map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.iter_affine_map.cover import parts_by_iterator
from tedsl.arith.iter_affine_map.nodes import IterMark, IterSplitExpr, IterSumExpr
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Add, Expr, Sub, Var


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Expr | int]) -> Mapping[Var, Expr]:
    """Returns the value of each input iterator where the maps have the values `outputs`, one each.

    iter_map: what detect_iter_map(..., require_bijective=True) returns. Loops of one iteration are in no map, and not in the
    result. Raises ArgumentError for other numbers of outputs, ArgumentTypeError for what are no maps of single parts.
    """
    if not isinstance(iter_map, Sequence) or not isinstance(outputs, Sequence):
        raise ArgumentTypeError(f"inverse_affine_iter_map takes lists of maps and outputs, got {iter_map!r} and {outputs!r}",
                                hint="inverse_affine_iter_map(detect_iter_map([x * 4 + y], ...), [z])")
    if len(iter_map) != len(outputs):
        raise ArgumentError(f"inverse_affine_iter_map: {len(iter_map)} maps have {len(outputs)} outputs",
                            hint="give one output for each map")
    if not all(isinstance(one, IterSumExpr) and len(one.args) <= 1 for one in iter_map):
        raise ArgumentTypeError(f"inverse_affine_iter_map: {list(iter_map)!r} are not maps of single parts",
                                hint="give what detect_iter_map(..., require_bijective=True) returns")
    analyzer = Analyzer()
    values: dict[IterMark, Expr] = {}
    for one, output in zip(iter_map, outputs):
        if one.args:
            _put(values, one.args[0], _unscaled(build.sub(output, one.base), one.args[0]))
    inputs: dict[Var, Expr] = {}
    for mark in parts_by_iterator(iter_map):
        value = analyzer.simplify(values[mark])
        if isinstance(mark.source, IterSumExpr):
            _spread(values, mark, value)
        else:
            var, found = _solved(mark.source, value)
            inputs[var] = analyzer.simplify(found)
    return inputs


def _put(values: dict[IterMark, Expr], split: IterSplitExpr, part: Expr) -> None:
    """Adds the value of one part to the value of its iterator."""
    term = build.mul(part, split.lower_factor)
    before = values.get(split.source)
    values[split.source] = term if before is None else build.add(before, term)


def _unscaled(value: Expr, split: IterSplitExpr) -> Expr:
    scale = build.as_int(split.scale)
    return build.sub(0, value) if scale == -1 else build.floordiv(value, split.scale)


def _spread(values: dict[IterMark, Expr], mark: IterMark, value: Expr) -> None:
    """Gives each part of a sum its share of the value; the uppermost needs no remainder, since it ends with the iterator."""
    total: Any = mark.source
    value = build.sub(value, total.base)
    for position, split in enumerate(total.args):
        share = build.floordiv(value, split.scale)
        _put(values, split, share if position == 0 else build.floormod(share, split.extent))


def _solved(source: Expr, value: Expr) -> tuple[Var, Expr]:
    """Returns the variable of the source of an iterator, var or var - first, and its value."""
    if isinstance(source, Var):
        return source, value
    if isinstance(source, Sub) and isinstance(source.a, Var):
        return source.a, build.add(value, source.b)
    if isinstance(source, Add) and isinstance(source.a, Var):  # the first value is negative
        return source.a, build.sub(value, source.b)
    raise ArgumentTypeError(f"inverse_affine_iter_map: the iterator {source!r} is no variable",
                            hint="make maps by detect_iter_map over variables")
