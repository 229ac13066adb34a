"""Values that increase from each iteration of nested loops to the next."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.linear import detect_linear_equation
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var


def increases(value: Expr, loops: Sequence[tuple[Var, Expr]], analyzer: Analyzer) -> bool:
    """Returns whether the integer `value` is proved to be larger in each iteration than in all before.

    loops: the variables and extents, outermost first, of loops that begin at 0; other variables stay as they are. The proof
    needs constant factors, constant extents of all but the outermost loop, and a value that does not wrap around.
    """
    linear = detect_linear_equation(value, [var for var, _ in loops])
    greatest, most = analyzer.bounds(value)[1] if linear else None, value.dtype.max_value
    if greatest is None or most is None or greatest > most:
        return False
    reach: int | None = 0  # by how much the value changes at most while the loops further inside run
    for (_, extent), factor in zip(reversed(loops), reversed(linear[:-1])):
        step, count = build.as_int(factor), build.as_int(extent)
        if step is None or reach is None or step <= reach:
            return False
        reach = None if count is None else reach + step * (max(count, 1) - 1)
    return True
