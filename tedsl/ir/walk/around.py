"""The context of a place in a program: the loops, conditions, lets and allocations around it, as a shared linked list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

from tedsl.ir import build
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CompareOp, Expr, Not, Or, Select, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import LIKELY
from tedsl.ir.stmt import Allocate, BufferRealize, Stmt
from tedsl.ir.walk.substitute import Substitution
from tedsl.record import record

Eager = Select | And | Or
_OPPOSITE: dict[type[CompareOp], type[CompareOp]] = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}


@record(eq=False)
class Loop:
    """A loop whose `var` takes `extent` values from `min` on. by: the For, or the launch of threads."""

    var: Var
    min: Expr
    extent: Expr
    by: Stmt | None = None

    @cached_property
    def facts(self) -> tuple[Expr, ...]:
        """The facts that the loop variable is in its range."""
        return (build.less_equal(*build.match_operands(self.min, self.var)),
                build.less(*build.match_operands(build.sub(self.var, self.min), self.extent)))


@record(eq=False)
class Condition:
    """A condition: `expr` is true here, or false (holds=False). by: the statement or expression that tests it."""

    expr: Expr
    holds: bool = True
    by: Node | None = None

    @cached_property
    def value(self) -> Expr:
        """An expression that is true here."""
        return self.expr if self.holds else build.logical_not(self.expr)

    @cached_property
    def facts(self) -> tuple[Expr, ...]:
        """The facts that hold here, split into comparisons."""
        facts: list[Expr] = []
        pending = [(self.expr, self.holds)]
        while pending:
            c, holds = pending.pop()
            match c:
                case And(a=a, b=b) if holds:
                    pending += [(b, True), (a, True)]
                case Or(a=a, b=b) if not holds:
                    pending += [(b, False), (a, False)]
                case Not(a=a):
                    pending.append((a, not holds))
                case Call(op=op, args=(a,)) if op is LIKELY:
                    pending.append((a, holds))
                case _ if build.is_true(c) and holds:
                    pass
                case CompareOp(a=a) if not holds and not (a.dtype.is_float or a.dtype.is_custom):  # NaN: neither < nor >=
                    facts.append(build.binary(_OPPOSITE[type(c)], c.a, c.b))
                case _:
                    facts.append(c if holds else build.logical_not(c))
        return tuple(facts)

    @property
    def chosen_by(self) -> tuple[Eager, ...]:
        """The Select, te.all or te.any that evaluates this place even if the condition is false; None for lazy choices."""
        return (self.by,) if isinstance(self.by, (Select, And, Or)) else ()


@record(eq=False)
class Either(Condition):
    """A disjunction: one of several lists of conditions holds, as `expr` says; for an expression used in several places."""

    choices: tuple[Eager, ...] = ()

    @property
    def chosen_by(self) -> tuple[Eager, ...]:
        return self.choices


@record(eq=False)
class Binding:
    """A let: `var` equals `value` here. by: the let statement or expression."""

    var: Var
    value: Expr
    by: Node

    @cached_property
    def facts(self) -> tuple[Expr, ...]:
        """The fact that the variable equals its value."""
        return (EQ(self.var, self.value),)


Step: TypeAlias = Loop | Condition | Binding | Allocate | BufferRealize  # of memory: it exists here


@record(eq=False)
class Around:
    """A place: its innermost step and the place around that, a linked list whose outer parts are shared."""

    step: Step | None = None
    outer: Around | None = None
    depth: int = 0

    def within(self, *steps: Step) -> Around:
        """The place inside further `steps`, given outermost first."""
        place = self
        for step in steps:
            place = Around(step, place, place.depth + 1)
        return place

    def __iter__(self) -> Iterator[Step]:
        """The steps, innermost first."""
        return (at.step for at in self._outwards() if at.step is not None)

    def steps(self) -> list[Step]:
        """The steps, outermost first."""
        return list(self)[::-1]

    def loops(self) -> list[Loop]:
        """The loops, outermost first."""
        return [step for step in self.steps() if isinstance(step, Loop)]

    def conditions(self) -> list[Condition]:
        """The conditions, outermost first."""
        return [step for step in self.steps() if isinstance(step, Condition)]

    def includes(self, other: Around) -> bool:
        """Whether this place is `other` or inside it."""
        at: Around | None = self
        while at is not None and at.depth > other.depth:
            at = at.outer
        return at is other

    def of_expression(self) -> Iterator[Condition | Binding]:
        """The conditions and lets of the expression that this place is in, innermost first."""
        for step in self:
            if not isinstance(step, (Condition, Binding)) or not isinstance(step.by, Expr):
                return
            yield step

    def of_statement(self) -> Around:
        """The place of the statement whose expression this place is in."""
        at = self
        while at.outer is not None and isinstance(at.step, (Condition, Binding)) and isinstance(at.step.by, Expr):
            at = at.outer
        return at

    def _outwards(self) -> Iterator[Around]:
        at: Around | None = self
        while at is not None:
            yield at
            at = at.outer


OUTSIDE = Around()


class Facts:
    """The facts that hold where a subexpression is evaluated: the conditions and lets around it within the whole expression."""

    def __init__(self, around: Around) -> None:
        self.around = around

    def __iter__(self) -> Iterator[Expr]:
        """The facts, innermost first."""
        return (fact for step in self.around.of_expression() for fact in reversed(step.facts))

    def choices(self) -> Iterator[Eager]:
        """The choices that must become if_then_else so that the place is evaluated only where the facts hold."""
        return (choice for step in self.around.of_expression() if isinstance(step, Condition) for choice in step.chosen_by)


class WithoutLets:
    """Substitutes the values of lets for their variables in a place.

    keep: which values are not substituted, such as those that read memory; these lets stay.
    """

    def __init__(self, keep: Callable[[Expr], bool] = lambda value: False) -> None:
        self.keep = keep
        self._known: dict[Around, tuple[Around, Substitution | None]] = {OUTSIDE: (OUTSIDE, None)}

    def __call__(self, around: Around) -> Around:
        return self._found(around)[0]

    def expr(self, expr: Expr, around: Around) -> Expr:
        """`expr`, evaluated at the place `around`, with the values of lets substituted."""
        substitution = self._found(around)[1]
        return expr if substitution is None else substitution(expr)

    def _found(self, around: Around) -> tuple[Around, Substitution | None]:
        pending: list[Around] = []
        at: Around | None = around
        while at is not None and at not in self._known:
            pending.append(at)
            at = at.outer
        for place in reversed(pending):
            self._known[place] = self._written_out(place)
        return self._known[around]

    def _written_out(self, place: Around) -> tuple[Around, Substitution | None]:
        if place.outer is None or place.step is None:
            return place, None
        outer, known = self._known[place.outer]
        step = place.step
        if isinstance(step, Binding):
            value = step.value if known is None else known(step.value)
            if not self.keep(value):
                return outer, Substitution({**(known.mapping if known is not None else {}), step.var: value})
        inside = step if known is None else _substituted(step, known)
        return (place if inside is step and outer is place.outer else outer.within(inside)), known


def _substituted(step: Step, known: Substitution) -> Step:
    match step:
        case Loop(var=var, min=low, extent=extent, by=by):
            return Loop(var, known(low), known(extent), by)
        case Either(expr=expr, by=by, choices=choices):
            return Either(known(expr), True, by, choices)
        case Condition(expr=expr, holds=holds, by=by):
            return Condition(known(expr), holds, by)
        case Binding(var=var, value=value, by=by):
            return Binding(var, known(value), by)
        case _:
            return step
