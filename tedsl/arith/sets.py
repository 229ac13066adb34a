"""The results of the analyzer in the form of TVM's classes: ConstIntBound, ModularSet, IntervalSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tedsl.arith.ranges import Range
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Expr, Ramp, Var
from tedsl.ir.iters import IterVar
from tedsl.record import record


@record
class ConstIntBound:
    """The bounds of an expression: two integers, both included."""

    min_value: int
    max_value: int
    POS_INF: ClassVar[int] = (1 << 63) - 1
    NEG_INF: ClassVar[int] = -((1 << 63) - 1)

    def __post_init__(self) -> None:
        _check_integers("ConstIntBound", "ConstIntBound(0, 9)", self.min_value, self.max_value)

    @staticmethod
    def of(found: Range) -> ConstIntBound:
        low, high = found
        return ConstIntBound(ConstIntBound.NEG_INF if low is None else low, ConstIntBound.POS_INF if high is None else high)

    def ends(self) -> Range:
        """Returns the bounds as a pair, None for an infinite end."""
        return (None if self.min_value <= self.NEG_INF else self.min_value,
                None if self.max_value >= self.POS_INF else self.max_value)


@record
class ModularSet:
    """The residue of an expression: every value is `base` plus a multiple of `coeff`; coeff 0: the constant `base`."""

    coeff: int
    base: int

    def __post_init__(self) -> None:
        _check_integers("ModularSet", "ModularSet(4, 1): 1, 5, 9, ...", self.coeff, self.base)
        if self.coeff < 0:
            raise ArgumentError(f"ModularSet: the coefficient is at least 0, not {self.coeff}", hint="ModularSet(4, 1)")


def _check_integers(who: str, example: str, *values: object) -> None:
    for value in values:
        if type(value) is not int:
            raise ArgumentTypeError(f"{who} takes two integers, got {value!r}", hint=example)


def variable_of(value: object, who: str) -> Var:
    """Returns the variable that `value` is, or that of an axis; ArgumentTypeError, which names `who`, for anything else."""
    name = value.var if isinstance(value, IterVar) else value
    if not isinstance(name, Var):
        raise ArgumentTypeError(f"{who}: {value!r} is not a variable", hint='declare x = te.var("x")')
    return name


def variables_of(values: object, who: str) -> list[Var]:
    """Returns the variables of a list; ArgumentTypeError, which names `who`, for anything else."""
    if not isinstance(values, Iterable) or isinstance(values, (Expr, IterVar, str)):
        raise ArgumentTypeError(f"{who} takes a list of variables, got {values!r}", hint="write [x, y]")
    return [variable_of(value, who) for value in values]


def condition_of(value: object, who: str) -> Expr:
    """Returns `value` as a bool expression; ArgumentTypeError, which names `who`, for anything else."""
    condition = build.as_expr(value)
    if not condition.dtype.is_bool:
        raise ArgumentTypeError(f"{who} takes a condition, got {value!r}", hint="write x < 8, or tedsl.tir.all(x < 8, y < 8)")
    return condition


def intervals_of(values: object, who: str) -> dict[Var, IntervalSet]:
    """Returns the set of each variable; ArgumentTypeError, which names `who`, for what is no mapping of variables to sets."""
    if not isinstance(values, Mapping) or not all(isinstance(domain, IntervalSet) for domain in values.values()):
        raise ArgumentTypeError(f"{who}: {values!r} does not say the interval of each variable",
                                hint="write {x: IntervalSet(0, 9)}")
    return {variable_of(key, who): domain for key, domain in values.items()}


NEG_INF = Var("neg_inf", HANDLE)
POS_INF = Var("pos_inf", HANDLE)


class IntSet:
    """A set of integers; so far always an interval."""

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """Returns the set of one value."""
        value = build.as_expr(point)
        return IntervalSet(value, value)

    @staticmethod
    def vector(vec: Expr) -> IntervalSet:
        """Returns the set of all lanes of a Ramp of constant stride."""
        if not isinstance(vec, Ramp):
            return IntSet.single_point(vec)
        stride = build.as_int(vec.stride)
        if stride is None:
            raise ArgumentTypeError("IntSet.vector takes a Ramp whose stride is a constant")
        other = build.add(vec.base, stride * (vec.lanes - 1))
        return IntervalSet(vec.base, other) if stride >= 0 else IntervalSet(other, vec.base)

    def is_nothing(self) -> bool:
        return False

    def is_everything(self) -> bool:
        return False


class IntervalSet(IntSet):
    """The integers from `min_value` to `max_value`, expressions; both included. An end may be NEG_INF or POS_INF."""

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self.min_value: Expr = NEG_INF if min_value is None else build.as_expr(min_value)
        self.max_value: Expr = POS_INF if max_value is None else build.as_expr(max_value)
        for end in (self.min_value, self.max_value):
            if not end.dtype.is_integer and end is not NEG_INF and end is not POS_INF:
                raise ArgumentTypeError(f"IntervalSet: an end is {end!r} of {end.dtype}, and sets have integers",
                                        hint="write IntervalSet(0, 9); None for an end without bound")

    def ends(self) -> tuple[Expr | None, Expr | None]:
        """Returns the ends as a pair, None for an infinite end."""
        return (None if self.min_value is NEG_INF else self.min_value, None if self.max_value is POS_INF else self.max_value)

    def is_nothing(self) -> bool:
        """Tells whether the set is proved empty."""
        if self.min_value is POS_INF or self.max_value is NEG_INF:
            return True
        low, high = build.as_int(self.min_value), build.as_int(self.max_value)
        return low is not None and high is not None and low > high

    def is_everything(self) -> bool:
        return self.min_value is NEG_INF and self.max_value is POS_INF

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value!r}, {self.max_value!r}]"
