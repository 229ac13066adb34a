"""Matches regions with the shapes of an intrinsic's tensors, whose symbols get values from the regions.

(1, 16, 64) has the shape (16, m) with m = 64: dimensions of one element may be left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.walk.substitute import substitute


class ShapeMatch:
    """Collects the values of the symbols in an intrinsic's shapes. symbols: initially those of its scalar parameters."""

    def __init__(self, analyzer: Analyzer, scalars: Mapping[Var, Expr] | None = None) -> None:
        self.analyzer = analyzer
        self.symbols: dict[Var, Expr] = dict(scalars or {})

    def dims(self, declared: Sequence[Expr], actual: Sequence[Expr]) -> tuple[int, ...] | None:
        """The number of the dimension of `actual` for each dimension of `declared`; None if the shapes do not fit.

        Matched from the last dimension on: a dimension of `actual` that matches none of `declared` must have extent 1.
        """
        dims: list[int] = []
        for position in reversed(range(len(actual))):
            if len(dims) < len(declared) and self.same(declared[len(declared) - 1 - len(dims)], actual[position]):
                dims.append(position)
            elif build.as_int(self.analyzer.simplify(actual[position])) != 1:
                return None
        return tuple(reversed(dims)) if len(dims) == len(declared) else None

    def same(self, declared: Expr, actual: Expr) -> bool:
        """Whether the extents are proved equal; a symbol without a value is bound to `actual`."""
        if isinstance(declared, Var) and declared not in self.symbols:
            self.symbols[declared] = build.cast(declared.dtype, actual)
            return True
        expected = self.value(declared)
        return expected is actual or build.as_int(self.analyzer.simplify(build.sub(expected, actual))) == 0

    def value(self, expr: Expr) -> Expr:
        """`expr` with the symbols replaced by their values."""
        return substitute(expr, self.symbols)
