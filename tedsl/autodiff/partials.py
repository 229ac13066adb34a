"""Partial derivatives of expressions: a table by the kind of node, used by both directions of differentiation.

A rule gives, for each operand that is a float, the function that multiplies by the derivative of the node with respect to
that operand. Where a function has a kink, the rule says which side counts:

- max and min of equal operands: the second operand has the derivative, so that max(x, 0) has derivative 0 at 0;
- abs, hypot, copysign and atan2 have derivative 0 at 0; so has sqrt, and with it a norm, the root of a sum of squares;
- pow(x, y): 0 with respect to x where y is 0, and with respect to y where x is 0 and y is not negative;
- what rounds has derivative 0; fmod has 1 and -trunc(x / y).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tedsl.errors import DTypeError
from tedsl.ir import build
from tedsl.ir.expr import Add, Call, Cast, Div, Expr, FloatImm, Max, Min, Mul, Sub
from tedsl.ir.ops import FMA
from tedsl.ir.script import shown

Linear = Callable[[Expr], Expr]  # multiplication by a partial derivative
Partials = list[tuple[Expr, Linear]]  # the operands with a derivative


def partials(node: Any, value: Expr) -> Partials:
    """For each float operand of `node` the multiplication by the derivative of `node` with respect to it.

    value: the value of the node, which may have been stored already.
    """
    rule = _NODES.get(type(node)) or (_CALLS.get(node.op.name) if isinstance(node, Call) else None)
    if rule is None:
        name = node.op.name if isinstance(node, Call) else type(node).__name__
        raise DTypeError(f"{shown(node)} has no derivative: there is no rule for {name}",
                         hint="give the operation a tag and its derivative by te.register_gradient(tag, function)")
    return [(operand, times) for operand, times in rule(node, value) if operand.dtype.is_float]


def zero(like: Expr) -> Expr:
    """The zero of the dtype of `like`."""
    return build.const(0.0, like.dtype)


def _same(x: Expr) -> Expr:
    return x


def _const(value: float, like: Expr) -> Expr:
    return build.const(value, like.dtype)


def _math(name: str, *args: Expr) -> Expr:
    return build.call(f"tir.{name}", *args)


def _product(x: Expr, factor: Expr) -> Expr:
    """`x * factor`; a derivative `x` is often 1."""
    return factor if isinstance(x, FloatImm) and x.value == 1.0 else build.mul(x, factor)


def _square(x: Expr) -> Expr:
    return build.mul(x, x)


# --- arithmetic -------------------------------------------------------------------------------------------------------

def _mul(e: Mul, _: Expr) -> Partials:
    return [(e.a, lambda x: _product(x, e.b)), (e.b, lambda x: _product(x, e.a))]


def _div(e: Div, value: Expr) -> Partials:
    return [(e.a, lambda x: build.div(x, e.b)), (e.b, lambda x: build.negative(build.div(_product(x, value), e.b)))]


def _first_where(condition: Expr, a: Expr, b: Expr) -> Partials:
    return [(a, lambda x: build.select(condition, x, zero(x))), (b, lambda x: build.select(condition, zero(x), x))]


def _deciding(e: Max | Min, value: Expr) -> Expr:
    """What is beyond the second operand where the first one is: with a constant bound the value too. Reading that, a graph
    that is recorded keeps the result of relu, which the next operator keeps as well, and not what it was computed from.
    """
    return value if isinstance(e.b, FloatImm) else e.a


def _fma(e: Any) -> Partials:
    a, b, c = e.args
    return [(a, lambda x: _product(x, b)), (b, lambda x: _product(x, a)), (c, _same)]


_NODES: dict[type, Callable[[Any, Expr], Partials]] = {
    Add: lambda e, _: [(e.a, _same), (e.b, _same)],
    Sub: lambda e, _: [(e.a, _same), (e.b, build.negative)],
    Mul: _mul,
    Div: _div,
    Max: lambda e, value: _first_where(build.greater(_deciding(e, value), e.b), e.a, e.b),
    Min: lambda e, value: _first_where(build.less(_deciding(e, value), e.b), e.a, e.b),
    Cast: lambda e, _: [(e.value, _same)],  # who multiplies converts
}


# --- functions --------------------------------------------------------------------------------------------------------

def _times(factor: Callable[[Any, Expr], Expr]) -> Callable[[Any, Expr], Partials]:
    """The rule of a function of one argument whose derivative is factor(argument, value)."""
    return lambda e, value: [(e.args[0], lambda x: _product(x, factor(e.args[0], value)))]


def _over(divisor: Callable[[Any, Expr], Expr]) -> Callable[[Any, Expr], Partials]:
    """The rule of a function of one argument whose derivative is 1 / divisor(argument, value)."""
    return lambda e, value: [(e.args[0], lambda x: build.div(x, divisor(e.args[0], value)))]


def _fabs(e: Any, _: Expr) -> Partials:
    a = e.args[0]
    return [(a, lambda x: build.select(build.greater(a, 0.0), x,
                                       build.select(build.less(a, 0.0), build.negative(x), zero(x))))]


def _sqrt(e: Any, value: Expr) -> Partials:
    def times(x: Expr) -> Expr:
        return build.select(build.equal(value, 0.0), zero(x), build.div(x, build.mul(value, 2.0)))

    return [(e.args[0], times)]


def _pow(e: Any, value: Expr) -> Partials:
    base, exponent = e.args

    def by_base(x: Expr) -> Expr:
        less_one = build.sub(exponent, 1.0)
        slope = _product(x, build.mul(_power(base, less_one), exponent))
        return build.select(build.equal(exponent, 0.0), zero(x), slope)

    def by_exponent(x: Expr) -> Expr:
        flat = build.logical_and(build.equal(base, 0.0), build.greater_equal(exponent, 0.0))
        return build.select(flat, zero(x), _product(x, build.mul(value, _math("log", base))))

    return [(base, by_base), (exponent, by_exponent)]


def _power(base: Expr, exponent: Expr) -> Expr:
    """`base ** exponent`, as a product where that is exact."""
    match exponent:
        case FloatImm(value=0.0):
            return _const(1.0, base)
        case FloatImm(value=1.0):
            return base
        case FloatImm(value=2.0):
            return _square(base)
        case _:
            return _math("pow", base, exponent)


def _fmod(e: Any, _: Expr) -> Partials:
    a, b = e.args
    return [(a, _same), (b, lambda x: build.negative(_product(x, _math("trunc", build.div(a, b)))))]


def _atan2(e: Any, _: Expr) -> Partials:
    y, x = e.args
    norm = build.add(_square(x), _square(y))

    def times(numerator: Expr) -> Linear:
        return lambda a: build.select(build.equal(norm, 0.0), zero(a), _product(a, build.div(numerator, norm)))

    return [(y, times(x)), (x, times(build.negative(y)))]


def _hypot(e: Any, value: Expr) -> Partials:
    def times(side: Expr) -> Linear:
        return lambda a: build.select(build.equal(value, 0.0), zero(a), _product(a, build.div(side, value)))

    return [(side, times(side)) for side in e.args]


def _copysign(e: Any, value: Expr) -> Partials:
    a = e.args[0]
    return [(a, lambda x: build.select(build.equal(a, 0.0), zero(x), _product(x, build.div(value, a))))]


def _ldexp(e: Any, _: Expr) -> Partials:
    return [(e.args[0], lambda x: _math("ldexp", x, e.args[1]))]


def _flat(e: Any, _: Expr) -> Partials:
    return []


def _one_minus_square(x: Expr, like: Expr) -> Expr:
    return build.sub(_const(1.0, like), _square(x))


_CALLS: dict[str, Callable[[Any, Expr], Partials]] = {
    "tir.exp": _times(lambda a, v: v),
    "tir.exp2": _times(lambda a, v: build.mul(v, math.log(2))),
    "tir.exp10": _times(lambda a, v: build.mul(v, math.log(10))),
    "tir.log": _over(lambda a, v: a),
    "tir.log2": _over(lambda a, v: build.mul(a, math.log(2))),
    "tir.log10": _over(lambda a, v: build.mul(a, math.log(10))),
    "tir.log1p": _over(lambda a, v: build.add(a, 1.0)),
    "tir.tanh": _times(lambda a, v: _one_minus_square(v, v)),
    "tir.sigmoid": _times(lambda a, v: build.mul(v, build.sub(1.0, v))),
    "tir.erf": _times(lambda a, v: build.mul(_math("exp", build.negative(_square(a))), 2 / math.sqrt(math.pi))),
    "tir.sqrt": _sqrt,
    "tir.rsqrt": _times(lambda a, v: build.mul(build.mul(_square(v), v), -0.5)),
    "tir.sin": _times(lambda a, v: _math("cos", a)),
    "tir.cos": _times(lambda a, v: build.negative(_math("sin", a))),
    "tir.tan": _times(lambda a, v: build.add(_square(v), 1.0)),
    "tir.asin": _over(lambda a, v: _math("sqrt", _one_minus_square(a, a))),
    "tir.acos": _over(lambda a, v: build.negative(_math("sqrt", _one_minus_square(a, a)))),
    "tir.atan": _over(lambda a, v: build.add(_square(a), 1.0)),
    "tir.sinh": _times(lambda a, v: _math("cosh", a)),
    "tir.cosh": _times(lambda a, v: _math("sinh", a)),
    "tir.asinh": _over(lambda a, v: _math("sqrt", build.add(_square(a), 1.0))),
    "tir.acosh": _over(lambda a, v: _math("sqrt", build.sub(_square(a), 1.0))),
    "tir.atanh": _over(lambda a, v: _one_minus_square(a, a)),
    "tir.floor": _flat, "tir.ceil": _flat, "tir.trunc": _flat, "tir.round": _flat, "tir.nearbyint": _flat,
    "tir.fabs": _fabs,
    "tir.pow": _pow,
    "tir.fmod": _fmod,
    "tir.atan2": _atan2,
    "tir.hypot": _hypot,
    "tir.copysign": _copysign,
    "tir.ldexp": _ldexp,
    FMA.name: lambda e, _: _fma(e),
}
