"""The conditions outside of which a value is zero by its formula and by the formulas of what it reads.

    B[y] = if_then_else(1 <= y && y <= n, A[y - 1], 0)                B[y + k] * W[k]   ->   1 <= y + k, y + k <= n
"""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Call, Cast, Expr, Mul, ProducerLoad, Reduce, Select
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import has_load
from tedsl.lang.zeros.terms import lifted


def conditions_of(value: Expr) -> list[Expr]:
    """Returns conditions that all hold where `value` is not zero; they read no tensor. None are returned for a value that is
    zero everywhere, and for a sum of terms that are zero at different places.

    A product with a zero of a formula is zero here, whatever the other factor is: infinity and NaN too.
    """
    terms = lifted(value)
    if len(terms) != 1:
        return []
    found = [condition for condition in terms[0].conditions if not has_load(condition)]
    for load in _factors(terms[0].value):
        if type(load) is ProducerLoad and _is_choice_or_copy(load.producer.op):
            op = load.producer.op
            at = {axis.var: index for axis, index in zip(op.axis, load.indices)}
            found += [placed for one in conditions_of(op.body[0]) if not has_load(placed := substitute(one, at))]
    return found


def _factors(value: Expr) -> list[Expr]:
    """Returns the factors of a product, without casts."""
    match value:
        case Mul(a, b):
            return [*_factors(a), *_factors(b)]
        case Cast():
            return _factors(value.value)
    return [value]


def _is_choice_or_copy(op: Any) -> bool:
    if type(op) is not ComputeOp or len(op.body) != 1 or isinstance(op.body[0], Reduce):
        return False
    body = op.body[0]
    while isinstance(body, Cast):
        body = body.value
    return isinstance(body, (Select, ProducerLoad)) or (isinstance(body, Call) and body.op is IF_THEN_ELSE)
