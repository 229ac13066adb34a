"""`solve_linear_equations` and `solve_linear_inequalities`, with TVM's names and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.arith.int_solver.constraints import IntConstraints, IntConstraintsTransform
from tedsl.arith.int_solver.equations import Equations
from tedsl.arith.int_solver.inequalities import Found, Ranges
from tedsl.arith.int_solver.linear import as_condition, equation_of, inequality_of, is_false
from tedsl.arith.interval import relax
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.substitute import substitute

Ends = dict[Var, tuple[Expr, Expr]]
UNSOLVABLE = IntConstraints((), {}, (IntImm(BOOL, 0),))


def solve_linear_equations(equations: Any, variables: Sequence[Any] | None = None,
                           ranges: Mapping[Any, Range] | None = None) -> IntConstraintsTransform:
    """Returns a system with fewer variables whose solutions are those of `equations`.

    equations: a list of conditions, of which the linear equations are solved and the others kept, or IntConstraints instead of
    all arguments. variables: those to solve for, none by default; other variables are symbols. ranges: of variables and of
    symbols.

    `result.src_to_dst` gives the variables in terms of those of `result.dst`, which are new, with `result.dst.ranges`;
    `result.dst.relations` must hold too. Without a solution that is the constant false, and there are no variables.

    Raises ArgumentTypeError for what is not a condition, a variable or a Range.
    """
    given = _constraints("solve_linear_equations", equations, variables, ranges)
    if not given.variables:
        return IntConstraintsTransform(given, given, {}, {})
    analyzer, ends = _knowing(given)
    known = analyzer.known
    parts = _parts(given)
    sums = [equation_of(known, part) for part in parts]
    solution = Equations(known, [s for s in sums if s is not None], given.variables)
    relations = [*solution.conditions, *[part for part, s in zip(parts, sums) if s is None]]
    dst = {var: Var(f"n{i}", var.dtype) for i, var in enumerate(solution.variables)}
    meaning = {new: solution.originals.get(var, var) for var, new in dst.items()}
    src_to_dst = {var: analyzer.simplify(substitute(solution.values.get(var, var), dst)) for var in given.variables}
    found = {new: span for new, what in meaning.items() if (span := _span(what, given, ends, analyzer)) is not None}
    relations += [part for var in given.variables if var in given.ranges for part in _within(var, given.ranges[var])]
    held = _kept([substitute(part, src_to_dst) for part in relations], given, found)
    if any(map(is_false, held)):
        return IntConstraintsTransform(given, UNSOLVABLE, {}, {})
    return IntConstraintsTransform(given, IntConstraints(tuple(meaning), found, held), src_to_dst, meaning)


def solve_linear_inequalities(equations: Any, variables: Sequence[Any] | None = None,
                              ranges: Mapping[Any, Range] | None = None,
                              deskew_range: bool = False) -> IntConstraints | IntConstraintsTransform:
    """Returns constraints with the same solutions as `equations` that give the variables ranges.

    equations, variables, ranges: as of `solve_linear_equations`. The range of a variable may depend on symbols and on variables
    after it. Its extent is the largest that it has: `relations` of the result are the conditions that must hold besides; they
    are the constant false, and there are no variables, if no solution exists. A variable without bounds has no range.

    deskew_range: new variables, whose ranges start at 0, as an IntConstraintsTransform; a variable of one value has none.

    Raises ArgumentTypeError for what is not a condition, a variable or a Range.
    """
    given = _constraints("solve_linear_inequalities", equations, variables, ranges)
    analyzer, ends = _knowing(given)
    gaps, others = _gaps(given, analyzer)
    search = Ranges(analyzer, gaps, ends)
    found = dict(zip(given.variables, search.in_order(given.variables)))
    relations = [as_condition(analyzer.known, gap, _dtype(given)) for gap in gaps] + others
    empty = any(not gap.terms and gap.const < 0 for gap in search.gaps) \
        or any(one is not None and build.as_int(one.extent) == 0 for one in found.values())
    if deskew_range:
        return IntConstraintsTransform(given, UNSOLVABLE, {}, {}) if empty else _deskewed(given, found, relations)
    spans = _spans(found, analyzer)
    held = _kept(relations, given, spans)
    if empty or any(map(is_false, held)):
        return UNSOLVABLE
    return IntConstraints(given.variables, spans, held)


def _spans(found: Mapping[Var, Found | None], analyzer: Analyzer) -> dict[Var, Range]:
    """Returns the ranges that were found, the last variable first, those of one value put into the others."""
    spans: dict[Var, Range] = {}
    single: dict[Var, Expr] = {}
    for var, one in reversed(list(found.items())):
        if one is None:
            continue
        first = analyzer.simplify(substitute(one.first, single))
        spans[var] = Range.from_min_extent(first, one.extent)
        if build.as_int(one.extent) == 1:
            single[var] = first
    return spans


def _deskewed(given: IntConstraints, found: Mapping[Var, Found | None], relations: Sequence[Expr]) -> IntConstraintsTransform:
    """Returns the constraints in variables that start at 0."""
    src_to_dst: dict[Var, Expr] = {}
    dst_to_src: dict[Var, Expr] = {}
    spans: dict[Var, Range] = {}
    analyzer, _ = _knowing(given)
    for var in reversed(given.variables):  # the range of one may depend on those after it
        one = found[var]
        if one is None:
            src_to_dst[var] = dst_to_src[var] = var
            continue
        first = analyzer.simplify(substitute(one.first, src_to_dst))
        if build.as_int(one.extent) == 1:
            src_to_dst[var] = first
            continue
        new = Var(f"{var.name}_new", var.dtype)
        spans[new] = Range.from_min_extent(build.const(0, var.dtype), one.extent)
        analyzer.bind(new, spans[new])
        src_to_dst[var] = analyzer.simplify(build.add(new, first))
        dst_to_src[new] = analyzer.simplify(build.sub(var, one.first))
    ordered = tuple(reversed(dst_to_src))
    held = _kept([substitute(part, src_to_dst) for part in relations], given, spans)
    if any(map(is_false, held)):
        return IntConstraintsTransform(given, UNSOLVABLE, {}, {})
    return IntConstraintsTransform(given, IntConstraints(ordered, spans, held), src_to_dst, dst_to_src)


# --- what is given ------------------------------------------------------------------------------------------------------------

def _constraints(where: str, equations: Any, variables: Any, ranges: Any) -> IntConstraints:
    """Returns the arguments as constraints, after their check."""
    if isinstance(equations, IntConstraints):
        if variables is not None or ranges is not None:
            raise ArgumentError(f"{where}: IntConstraints have their variables and ranges", hint="give them alone")
        return _constraints(where, equations.relations, equations.variables, equations.ranges)
    if isinstance(equations, Expr) or not isinstance(equations, Iterable):
        raise ArgumentTypeError(f"{where} takes a list of conditions, got {equations!r}", hint="write [te.var('x') + 1 == 5]")
    relations = tuple([build.as_expr(part) for part in equations])
    for relation in relations:
        if not relation.dtype.is_bool or relation.dtype.lanes != 1:
            raise ArgumentTypeError(f"{where}: {relation!r} is not a condition", hint="write x + y == 10, or x <= 5")
    if variables is not None and (isinstance(variables, (str, Expr)) or not isinstance(variables, Iterable)):
        raise ArgumentTypeError(f"{where}: the variables are {variables!r}, not a list", hint="write [x, y]")
    names = tuple([_variable(where, var) for var in variables or ()])
    if ranges is not None and not isinstance(ranges, Mapping):
        raise ArgumentTypeError(f"{where}: the ranges are {ranges!r}, not a mapping from variables",
                                hint="write {x: tedsl.ir.Range(0, 10)} for 0 to 9")
    spans = {_variable(where, var): span for var, span in (ranges or {}).items()}
    for var, span in spans.items():
        if not isinstance(span, Range) or span.extent is None:
            raise ArgumentTypeError(f"{where}: the range of {var.name} is {span!r}, not a Range",
                                    hint="write {x: tedsl.ir.Range(0, 10)} for 0 to 9")
    return IntConstraints(names, spans, relations)


def _variable(where: str, var: object) -> Var:
    name = var.var if isinstance(var, IterVar) else var
    if not isinstance(name, Var) or not name.dtype.is_int or name.dtype.bits < 32:
        raise ArgumentTypeError(f"{where}: {var!r} is not a variable of int32 or int64", hint='declare te.var("x")')
    return name


def _knowing(given: IntConstraints) -> tuple[Analyzer, Ends]:
    """Returns an analyzer that knows the ranges, and the ends of those."""
    analyzer = Analyzer()
    ends: Ends = {}
    for var, span in given.ranges.items():
        assert span.extent is not None
        analyzer.bind(var, span)
        ends[var] = span.min, analyzer.simplify(build.sub(build.add(span.min, span.extent), 1))
    return analyzer, ends


def _dtype(given: IntConstraints) -> Any:
    return max((var.dtype for var in given.variables), key=lambda dtype: dtype.bits, default=IntImm(BOOL, 0).dtype)


def _parts(given: IntConstraints) -> list[Expr]:
    return [part for relation in given.relations for part in conjuncts(relation)]


def _within(var: Var, span: Range) -> list[Expr]:
    assert span.extent is not None
    return [build.less_equal(span.min, var), build.less(var, build.add(span.min, span.extent))]


def _gaps(given: IntConstraints, analyzer: Analyzer) -> tuple[list[Sum], list[Expr]]:
    """Returns the sums that must be at least 0, and the conditions that are no such sums."""
    known = analyzer.known
    gaps: list[Sum] = []
    others: list[Expr] = []
    domains = [part for var in given.variables if var in given.ranges for part in _within(var, given.ranges[var])]
    for part in [*domains, *_parts(given)]:
        equation, gap = equation_of(known, part), inequality_of(known, part)
        if equation is not None:
            gaps += [equation, equation.times(-1)]
        elif gap is not None:
            gaps.append(gap)
        else:
            others.append(part)
    return gaps, others


# --- what is found ------------------------------------------------------------------------------------------------------------

def _span(what: Expr, given: IntConstraints, ends: Ends, analyzer: Analyzer) -> Range | None:
    """Returns the range of an expression of the given variables; None if it is not bounded."""
    if isinstance(what, Var):
        return given.ranges.get(what)
    low, high = relax(what, ends, analyzer)
    if low is None or high is None:
        return None
    return Range.from_min_extent(low, analyzer.simplify(build.add(build.sub(high, low), 1)))


def _kept(relations: Sequence[Expr], given: IntConstraints, spans: Mapping[Var, Range]) -> tuple[Expr, ...]:
    """Returns the relations, simplified, that do not follow from the ranges."""
    analyzer = Analyzer()
    symbols = {var: span for var, span in given.ranges.items() if not any(var is own for own in given.variables)}
    for var, span in (*symbols.items(), *spans.items()):
        analyzer.bind(var, span)
    kept: list[Expr] = []
    for relation in relations:
        for part in conjuncts(analyzer.simplify(relation)):
            if not (isinstance(part, IntImm) and part.value) and not any(analyzer.known.same(part, one) for one in kept):
                kept.append(part)
    return (IntImm(BOOL, 0),) if any(map(is_false, kept)) else tuple(kept)
