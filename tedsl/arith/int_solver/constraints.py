"""Systems of constraints and transformations between them, as programs see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.int_solver.inequalities import Bound, Ranges
from tedsl.arith.sets import condition_of, variables_of
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import Range
from tedsl.record import record


@record(eq=False)
class IntConstraints:
    """Integers `variables` within `ranges` (those that have one) for which all `relations` hold."""

    variables: Sequence[Var] = ()
    ranges: Mapping[Var, Range] = field(default_factory=dict)
    relations: Sequence[Expr] = ()

    def __post_init__(self) -> None:
        variables_of(self.variables, "IntConstraints")
        spans = self.ranges if isinstance(self.ranges, Mapping) else None
        if spans is None or not all(isinstance(span, Range) for span in spans.values()):
            raise ArgumentTypeError(f"IntConstraints: the ranges are {self.ranges!r}, not a mapping from variables to ranges",
                                    hint="write {x: tedsl.ir.Range(0, 10)} for 0 to 9")
        if isinstance(self.relations, (str, Expr)) or not isinstance(self.relations, Iterable):
            raise ArgumentTypeError(f"IntConstraints: the relations are {self.relations!r}, not a list of conditions",
                                    hint="write [x + y == 10, x <= 5]")
        for relation in self.relations:
            condition_of(relation, "IntConstraints")


@record(eq=False)
class IntConstraintsTransform:
    """Two systems with solutions that correspond one to one: src_to_dst gives the variables of `src` in terms of those of
    `dst`, dst_to_src the other way round.

        src: a + b == 0, a in [0, 9]      dst: n in [-9, 0]      src_to_dst: a = -n, b = n      dst_to_src: n = b
    """

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Mapping[Var, Expr]
    dst_to_src: Mapping[Var, Expr]

    def __post_init__(self) -> None:
        for system in (self.src, self.dst):
            if not isinstance(system, IntConstraints):
                raise ArgumentTypeError(f"IntConstraintsTransform goes from IntConstraints to IntConstraints, got {system!r}")
        for mapping in (self.src_to_dst, self.dst_to_src):
            if not isinstance(mapping, Mapping):
                raise ArgumentTypeError(f"IntConstraintsTransform: {mapping!r} does not say what each variable is",
                                        hint="write {x: n0 + 1}")


class IntGroupBounds:
    """Bounds of coef * var: at least each of `lower`, equal to each of `equal`, at most each of `upper`; coef is positive."""

    def __init__(self, coef: Any, lower: Sequence[Any], equal: Sequence[Any], upper: Sequence[Any]) -> None:
        self.coef = build.as_expr(coef)
        number = build.as_int(self.coef)
        if not self.coef.dtype.is_integer or (number is not None and number < 1):
            raise ArgumentTypeError(f"IntGroupBounds: the coefficient is a positive integer, not {coef!r}",
                                    hint="change the signs of the bounds, and lower for upper")
        if not all(isinstance(bounds, Sequence) for bounds in (lower, equal, upper)):
            raise ArgumentTypeError(f"IntGroupBounds takes lists of bounds, got {lower!r}, {equal!r} and {upper!r}",
                                    hint="IntGroupBounds(1, [0], [], [n - 1])")
        self.lower, self.equal, self.upper = (tuple([build.as_expr(bound) for bound in bounds])
                                              for bounds in (lower, equal, upper))
        for bound in (*self.lower, *self.equal, *self.upper):
            if not bound.dtype.is_integer:
                raise ArgumentTypeError(f"IntGroupBounds: the bound {bound!r} is {bound.dtype}, and bounds are integers",
                                        hint="IntGroupBounds(1, [0], [], [n - 1])")

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """Returns the bounds that say that a variable is in `rng`.

        Raises ArgumentTypeError for what is not a Range.
        """
        if not isinstance(rng, Range) or rng.extent is None:
            raise ArgumentTypeError(f"IntGroupBounds.from_range takes a Range, got {rng!r}", hint="write tedsl.ir.Range(0, 10)")
        return IntGroupBounds(build.const(1, rng.min.dtype), [rng.min], [], [build.sub(build.add(rng.min, rng.extent), 1)])

    def find_best_range(self) -> Range | None:
        """Returns the smallest range that one lower and one upper bound give the variable; None if there is none."""
        analyzer = Analyzer()
        coef, known = analyzer.known.sum(self.coef), analyzer.known
        var = Var("var", self.coef.dtype if self.coef.dtype.bits >= 32 else INT32)
        ends = [[Bound(coef, known.sum(bound)) for bound in (*side, *self.equal)] for side in (self.lower, self.upper)]
        search = Ranges(analyzer, [], {})
        choice = search.among(var, *ends)
        if choice is None:
            return None
        found = search.found(var, choice)
        return Range.from_min_extent(found.first, found.extent)

    def __repr__(self) -> str:
        return f"IntGroupBounds(coef={self.coef!r}, lower={self.lower!r}, equal={self.equal!r}, upper={self.upper!r})"
