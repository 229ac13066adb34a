"""Iterators, their parts and sums of parts, by TVM's names, and the expressions that they stand for."""

from __future__ import annotations

from typing import Any, ClassVar

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.node import Node, node, set_field


class IterMapExpr(Node):
    """The base of IterSplitExpr and IterSumExpr."""

    __slots__ = ()


@node
class IterMark(Node):
    """`source`, an expression or an IterSumExpr, as an iterator over 0, ..., extent - 1."""

    source: Any
    extent: Any
    children: ClassVar[tuple[str, ...]] = ("source", "extent")

    def __post_init__(self) -> None:
        if not isinstance(self.source, IterMapExpr):
            set_field(self, "source", _integer("source", self.source))
        set_field(self, "extent", build.as_expr(self.extent))
        if not (self.extent.dtype.is_integer or self.extent.dtype.is_bool):  # of a predicate: the condition itself
            raise ArgumentTypeError(f"extent is {self.extent!r} of {self.extent.dtype}, and iterators are integers",
                                    hint="give an int or an integer expression")

    def __str__(self) -> str:
        return f"IterMark({self.source}, extent={self.extent})"

    __repr__ = __str__


@node
class IterSplitExpr(IterMapExpr):
    """A part of an iterator: source // lower_factor % extent * scale."""

    source: IterMark
    lower_factor: Any
    extent: Any
    scale: Any
    children: ClassVar[tuple[str, ...]] = ("source", "lower_factor", "extent", "scale")

    def __post_init__(self) -> None:
        for field in ("lower_factor", "extent", "scale"):
            set_field(self, field, _integer(field, getattr(self, field)))

    def __str__(self) -> str:
        return f"IterSplit({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale})"

    __repr__ = __str__


@node
class IterSumExpr(IterMapExpr):
    """A sum of parts of iterators: sum(args) + base."""

    args: tuple[IterSplitExpr, ...]
    base: Any
    children: ClassVar[tuple[str, ...]] = ("args", "base")

    def __post_init__(self) -> None:
        set_field(self, "base", _integer("base", self.base))

    def __str__(self) -> str:
        return f"IterSum({list(self.args)}, base={self.base})"

    __repr__ = __str__


def _integer(field: str, value: object) -> Expr:
    expr = build.as_expr(value)
    if not expr.dtype.is_integer or expr.dtype.lanes != 1:
        raise ArgumentTypeError(f"{field} is {value!r} of {expr.dtype}, and iterators are integers",
                                hint="give an int or an integer expression")
    return expr


def normalize_iter_map_to_expr(expr: IterMapExpr) -> Expr:
    """Returns the expression that a map stands for.

    Raises ArgumentTypeError for what is no map.
    """
    if isinstance(expr, IterSplitExpr):
        return Analyzer().simplify(_of_split(expr))
    if isinstance(expr, IterSumExpr):
        return Analyzer().simplify(_of_sum(expr))
    raise ArgumentTypeError(f"normalize_iter_map_to_expr takes an IterSumExpr or an IterSplitExpr, got {expr!r}",
                            hint="give what detect_iter_map returns, one map at a time")


def _of_sum(total: IterSumExpr) -> Expr:
    value: Expr = total.base
    for split in reversed(total.args):
        value = build.add(_of_split(split), value)
    return value


def source_of(mark: IterMark) -> Expr:
    """Returns the expression of an iterator."""
    return _of_sum(mark.source) if isinstance(mark.source, IterSumExpr) else \
        _of_split(mark.source) if isinstance(mark.source, IterSplitExpr) else mark.source


def _of_split(split: IterSplitExpr) -> Expr:
    """The expression of a part, without the division or the remainder that changes nothing."""
    value, lower = source_of(split.source), split.lower_factor
    if not Analyzer().can_prove(build.equal(build.mul(lower, split.extent), split.source.extent)):
        value = build.floormod(value, build.mul(lower, split.extent))
    return build.mul(build.floordiv(value, lower), split.scale)
