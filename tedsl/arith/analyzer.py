"""The Analyzer: what is known about variables at a place, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.arith.conditions import conjuncts, learn
from tedsl.arith.interval import relax
from tedsl.arith.modular import residue_of
from tedsl.arith.prove import nonnegative_by_sympy
from tedsl.arith.ranges import intersect
from tedsl.arith.rules.logic import at_least_zero
from tedsl.arith.sets import ConstIntBound as ConstIntBound
from tedsl.arith.sets import IntervalSet, condition_of, intervals_of, variable_of
from tedsl.arith.sets import ModularSet as ModularSet
from tedsl.arith.simplify import known_variables, simplify
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, INT32
from tedsl.ir.expr import Expr, IntImm, Let, Reduce, Select, SizeVar, StringImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.substitute import own_lets, renamed, substitute
from tedsl.ir.walk.visitor import LEAVES


class Analyzer:
    """Simplifies and proves. `bind` sets the range or value of a variable; `constraint_scope` adds a condition inside a `with`.

    A variable is bound once, wherever it is used. That its loop runs at all (extent > 0) is known only for expressions in which
    the variable itself occurs; elsewhere inside the loop add `with constraint_scope(extent > 0)`.
    """

    def __init__(self) -> None:
        self.known = Bounds()
        self._done: dict[Expr, Expr] = {}
        self._values: dict[Var, Expr] = {}  # of variables that simplify replaces
        self._axes: dict[Var, Range] = {}  # of reductions, which are bound as long as nothing else binds them

    # --- learning ---------------------------------------------------------------------------------------------------

    def bind(self, var: Var | IterVar, expr: Range | Expr | int | tuple[Expr | int | None, Expr | int | None]) -> None:
        """Binds `var` to a Range, to the expression that it equals, or to a pair of bounds (inclusive; None: unbounded).

        `simplify` replaces a variable by the expression that it equals, unless that reads memory. Raises ArgumentTypeError for
        anything that is not a variable, or a tuple that is not a pair.
        """
        name = var.var if isinstance(var, IterVar) else var
        if not isinstance(name, Var):
            raise ArgumentTypeError(f"bind: {name!r} is not a variable", hint='x = te.var("x"); analyzer.bind(x, (0, 9))')
        if isinstance(expr, tuple) and len(expr) != 2:
            raise ArgumentTypeError(f"bind: {expr!r} is not a pair of bounds", hint="write (least, greatest); None: no bound")
        if self._axes.get(name) is not expr:
            self._axes.pop(name, None)
        met = self.known.has_met(name)
        self._values.pop(name, None)
        self.known.symbolic.pop(name, None)
        self.known.extents.pop(name, None)
        self.known.residues.pop(name, None)
        if isinstance(expr, Range):
            assert expr.extent is not None
            self._bind_extent(name, expr.min, expr.extent)
        elif isinstance(expr, tuple):
            self._bind_ends(name, *(None if end is None else build.as_expr(end, name.dtype) for end in expr))
        else:
            value = build.as_expr(expr, name.dtype)
            if value.dtype.is_handle is not name.dtype.is_handle:
                raise ArgumentTypeError(f"bind: {expr!r} is no value of {name.name}, which is {name.dtype}",
                                        hint="bind a range, a pair of bounds, or an expression")
            self._bind_value(name, value)
            if value.dtype is name.dtype and value.dtype.is_integer and not self.known.reads_memory(value):
                self._values[name] = self.simplify(value)
        if met:  # otherwise no result remembered depends on it
            self._done.clear()

    def bind_let(self, var: Var, value: Expr) -> None:
        """Says what a let binds `var` to. `simplify` keeps the variable, and knows its value."""
        self.bind(var, value)
        self._values.pop(var, None)

    def bind_sizes(self, extents: Iterable[Expr], at_least: int) -> None:
        """Binds each extent that is itself a variable to values of at least `at_least`."""
        for extent in extents:
            if isinstance(extent, Var) and not (at_least == 0 and isinstance(extent, SizeVar)):
                self.bind(extent, (at_least, None))

    def _bind_extent(self, var: Var, first: Expr, extent: Expr) -> None:
        first, extent = self.simplify(first), self.simplify(extent)
        self.known.extents[var] = extent
        if type(first) is IntImm and type(extent) is IntImm:
            self.known.set_range(var, first.value, first.value + extent.value - 1)
            return
        last = self.simplify(build.sub(build.add(first, extent), 1))
        self._bind_ends(var, first, last)

    def _bind_ends(self, var: Var, low: Expr | None, high: Expr | None) -> None:
        known = self.known
        least = None if low is None else known.range(low)[0]
        most = None if high is None else known.range(high)[1]
        if not (low is None or build.as_int(low) is not None) or not (high is None or build.as_int(high) is not None):
            known.symbolic[var] = low, high
            known.rank[var] = len(known.rank)
        known.set_range(var, least, most)

    def _bind_value(self, var: Var, value: Expr) -> None:
        value = self._simple(value)
        if not value.dtype.is_integer or value.dtype.lanes != 1:
            return
        self.known.mark_like(var, value)
        if self.known.is_index(self.known.sum(value)):
            self.known.residues[var] = residue_of(self.known, self.known.sum(value))
        if not self.known.reads_memory(value):
            self._bind_ends(var, value, value)
        else:
            self.known.set_range(var, *self.known.range(value))

    @contextmanager
    def constraint_scope(self, constraint: Expr) -> Iterator[Analyzer]:
        """Context in which `constraint` holds. A condition on loaded values is ignored, for memory may change inside."""
        condition = self._simple(condition_of(constraint, "constraint_scope"))
        saved = self._done
        with self.known.scope():
            for part in conjuncts(condition):
                learn(self.known, part)
            self._done = known_variables(self.known)
            try:
                yield self
            finally:
                self._done = saved

    # --- asking -----------------------------------------------------------------------------------------------------

    def simplify(self, expr: Expr, steps: int = 2) -> Expr:
        """Returns the simplest form found of `expr`; the same object if nothing changed."""
        if not isinstance(expr, Expr):
            expr = _number(expr)
        if type(steps) is not int:
            raise ArgumentTypeError(f"simplify: the number of steps is an int, not {steps!r}")
        if self._values:
            expr = substitute(expr, self._values)
        simplified = self._done.get(expr)
        if simplified is not None:
            return simplified
        if type(expr) in LEAVES:
            return expr
        if contains(expr, Reduce):
            self._bind_reductions(expr)
        if not contains(expr, Let):
            return simplify(expr, self.known, self._done)
        own, given = own_lets(expr)
        simplified = simplify(own, self.known, self._done)
        return expr if simplified is own else renamed(simplified, given)

    def _bind_reductions(self, expr: Expr) -> None:
        """Binds the axes of reductions to their ranges. The values that a reduction combines are data, which wraps."""
        for reduction in of_kinds(expr, Reduce):
            if not isinstance(reduction, Reduce):
                continue
            of = reduction.combiner
            self.known.data.update(var for var in (*of.lhs, *of.rhs) if var.dtype.is_integer and var.dtype.lanes == 1)
            for axis in reduction.axis:
                dom = axis.dom
                if dom is not None and dom.extent is not None and self._axes.get(axis.var) is not dom:
                    self._axes[axis.var] = dom
                    self.bind(axis.var, dom)

    def _simple(self, value: object) -> Expr:
        """Returns the simplest form found of a value of which a question is asked. What it binds has variables of its own."""
        expr = build.as_expr(value, INT32)
        return self.simplify(own_lets(expr)[0] if contains(expr, Let) else expr)

    def can_prove(self, condition: Expr | bool) -> bool:
        """Tells whether `condition` is proved for all values that the variables may have here. False: not proved, or false."""
        simple = self._simple(condition_of(condition, "can_prove"))
        if isinstance(simple, IntImm):
            return simple.value != 0
        return all(self._holds(part) for part in conjuncts(simple))

    def _holds(self, part: Expr) -> bool:
        """Tells whether sympy proves one undecided comparison."""
        if part.dtype.lanes != 1:
            return False
        gap = at_least_zero(self.known, part)
        return gap is not None and nonnegative_by_sympy(self.known, gap)

    def bounds(self, expr: Expr) -> tuple[int | None, int | None]:
        """Returns the least and the greatest value of a scalar integer expression; None where no bound is known."""
        return self.known.range(self._simple(expr))

    def modular(self, expr: Expr) -> ModularSet:
        """Returns the ModularSet of a scalar integer expression: all its values are `base` plus a multiple of `coeff`."""
        return ModularSet(*residue_of(self.known, self.known.sum(self._simple(expr))))

    def can_prove_equal(self, lhs: Expr, rhs: Expr) -> bool:
        """Tells whether the two integers are proved equal for all values that the variables may have here."""
        return self.can_prove(build.equal(lhs, rhs))

    # --- the names of TVM -------------------------------------------------------------------------------------------

    def rewrite_simplify(self, expr: Expr) -> Expr:
        """Returns the same as `canonical_simplify`: there is one simplifier."""
        return self.canonical_simplify(expr)

    def canonical_simplify(self, expr: Expr) -> Expr:
        """Returns what `simplify` does, and simplifies each side of a Select that reads no memory by its condition."""
        if not contains(expr := _number(expr), Select):
            return self.simplify(expr)
        done, self._done, self.known.in_selects = self._done, known_variables(self.known), True
        try:
            return self.simplify(expr)
        finally:
            self._done, self.known.in_selects = done, False

    def const_int_bound(self, expr: Expr) -> ConstIntBound:
        """Returns the least and the greatest value of an integer or bool expression.

        A variable without a range has that of its dtype; a size, and int64, no bound. Raises ArgumentTypeError for floats and
        vectors.
        """
        value = build.as_expr(expr)
        if value.dtype is BOOL:
            held = self._simple(value)
            return ConstIntBound(held.value, held.value) if isinstance(held, IntImm) else ConstIntBound(0, 1)
        return ConstIntBound.of(self.known.range_by_dtype(self._simple(_integer(value))))

    def modular_set(self, expr: Expr) -> ModularSet:
        """Returns the same as `modular`, also for a bool expression; ArgumentTypeError for floats and vectors."""
        value = build.as_expr(expr)
        if value.dtype is BOOL:
            held = self._simple(value)
            return ModularSet(0, held.value) if isinstance(held, IntImm) else ModularSet(1, 0)
        return self.modular(_integer(value))

    def int_set(self, expr: Expr, dom_map: Mapping[Any, IntervalSet]) -> IntervalSet:
        """Returns the interval of `expr`, an integer or bool, when the variables of `dom_map` range over their intervals."""
        domains = intervals_of(dom_map, "int_set")
        value = build.as_expr(expr)
        if value.dtype is BOOL:  # whichever values its variables take
            found = self.const_int_bound(value)
            return IntervalSet(found.min_value, found.max_value)
        return IntervalSet(*relax(own_lets(_integer(value))[0], {v: s.ends() for v, s in domains.items()}, self))

    def update(self, var: Var, info: ConstIntBound, override: bool = False) -> None:
        """Narrows `var` to `info`; override: replaces what was known before. Raises ArgumentTypeError for other facts."""
        if not isinstance(info, ConstIntBound):
            raise ArgumentTypeError(f"update: {info!r} is not a ConstIntBound", hint="write ConstIntBound(0, 9)")
        var = variable_of(var, "update")
        low, high = info.ends()
        if not override:
            low, high = intersect(self.known.range(var), (low, high))
        self.known.set_range(var, low, high)
        self._done.clear()


def _number(value: object) -> Expr:
    expr = build.as_expr(value)
    if isinstance(expr, StringImm):
        raise ArgumentTypeError(f"simplify takes an expression, not {value!r}", hint="variables are declared: te.var('x')")
    return expr


def _integer(value: object) -> Expr:
    expr = build.as_expr(value)
    if not expr.dtype.is_integer or expr.dtype.lanes != 1:
        raise ArgumentTypeError(f"{value!r} is {expr.dtype}, and only integers have bounds", hint="give an integer expression")
    return expr
