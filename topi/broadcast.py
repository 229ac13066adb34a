"""Operators of two operands: tensors, whose shapes broadcast as in numpy, and values (numbers, variables, expressions).

All return a tensor whose dtype follows the promotion of elements; for two values they return an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import DTypeError, ShapeError
from topi.extents import as_int, opening, shown
from topi.injective import injective
from topi.tag import BROADCAST


def add(lhs: Any, rhs: Any) -> Any:
    """lhs + rhs."""
    return te.combine_elements("add", lhs, rhs)


def subtract(lhs: Any, rhs: Any) -> Any:
    """lhs - rhs."""
    return te.combine_elements("subtract", lhs, rhs)


def multiply(lhs: Any, rhs: Any) -> Any:
    """lhs * rhs."""
    return te.combine_elements("multiply", lhs, rhs)


def divide(lhs: Any, rhs: Any) -> Any:
    """lhs / rhs; of integers rounded towards zero."""
    whole = _is_whole(lhs) and _is_whole(rhs)
    return te.combine_elements("truncdiv" if whole else "divide", lhs, rhs, name="T_divide")


def _is_whole(x: Any) -> bool:
    if isinstance(x, (te.Tensor, tir.Expr)):
        return not x.dtype.is_float
    return hasattr(x, "__index__")


def floor_divide(lhs: Any, rhs: Any) -> Any:
    """lhs // rhs, rounded towards minus infinity."""
    return te.combine_elements("floor_divide", lhs, rhs)


def mod(lhs: Any, rhs: Any) -> Any:
    """The remainder of division rounded towards zero, with the sign of lhs, as in C and TVM; of integers and floats.

    That of numpy.mod and `a % b`, with the sign of rhs, is floor_mod.
    """
    return te.combine_elements("fmod", lhs, rhs, name="T_mod")


def floor_mod(lhs: Any, rhs: Any) -> Any:
    """lhs % rhs, with the sign of rhs."""
    return te.combine_elements("floor_mod", lhs, rhs)


def fmod(lhs: Any, rhs: Any) -> Any:
    """The remainder of division rounded towards zero, with the sign of lhs, as numpy.fmod; of integers and floats."""
    return te.combine_elements("fmod", lhs, rhs)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of both; NaN if either is NaN."""
    return te.combine_elements("maximum", lhs, rhs)


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of both; NaN if either is NaN."""
    return te.combine_elements("minimum", lhs, rhs)


def power(lhs: Any, rhs: Any) -> Any:
    """lhs ** rhs."""
    return te.combine_elements("power", lhs, rhs)


def left_shift(lhs: Any, rhs: Any) -> Any:
    """lhs << rhs of integers."""
    _require_places("left_shift", rhs)
    return te.combine_elements("left_shift", lhs, rhs)


def right_shift(lhs: Any, rhs: Any) -> Any:
    """lhs >> rhs of integers."""
    _require_places("right_shift", rhs)
    return te.combine_elements("right_shift", lhs, rhs)


def _require_places(operator: str, rhs: Any) -> None:
    places = as_int(rhs)
    if places is not None and places < 0:
        raise ShapeError(f"{operator}: rhs is {places}, and bits are moved by 0 places or more",
                         hint=f"topi.{'right' if operator == 'left_shift' else 'left'}_shift by {-places} moves the other way")


def greater(lhs: Any, rhs: Any) -> Any:
    """lhs > rhs, a bool."""
    return te.combine_elements("greater", lhs, rhs)


def less(lhs: Any, rhs: Any) -> Any:
    """lhs < rhs, a bool."""
    return te.combine_elements("less", lhs, rhs)


def equal(lhs: Any, rhs: Any) -> Any:
    """lhs == rhs by elements, a bool."""
    return te.combine_elements("equal", lhs, rhs)


def not_equal(lhs: Any, rhs: Any) -> Any:
    """lhs != rhs by elements, a bool."""
    return te.combine_elements("not_equal", lhs, rhs)


def greater_equal(lhs: Any, rhs: Any) -> Any:
    """lhs >= rhs, a bool."""
    return te.combine_elements("greater_equal", lhs, rhs)


def less_equal(lhs: Any, rhs: Any) -> Any:
    """lhs <= rhs, a bool."""
    return te.combine_elements("less_equal", lhs, rhs)


def logical_and(lhs: Any, rhs: Any) -> Any:
    """Whether both operands are true; of bool."""
    return te.combine_elements("logical_and", lhs, rhs)


def logical_or(lhs: Any, rhs: Any) -> Any:
    """Whether at least one operand is true; of bool."""
    return te.combine_elements("logical_or", lhs, rhs)


def logical_xor(lhs: Any, rhs: Any) -> Any:
    """Whether exactly one operand is true; of bool."""
    return te.combine_elements("logical_xor", lhs, rhs)


def bitwise_and(lhs: Any, rhs: Any) -> Any:
    """lhs & rhs of integers."""
    return te.combine_elements("bitwise_and", lhs, rhs)


def bitwise_or(lhs: Any, rhs: Any) -> Any:
    """lhs | rhs of integers."""
    return te.combine_elements("bitwise_or", lhs, rhs)


def bitwise_xor(lhs: Any, rhs: Any) -> Any:
    """lhs ^ rhs of integers."""
    return te.combine_elements("bitwise_xor", lhs, rhs)


def logical_not(data: Any) -> Any:
    """The negation of `data`, of bool."""
    def of(e: Any) -> Any:
        if e.dtype != "bool":
            raise DTypeError(f"logical_not takes bool, not {e.dtype}", hint="compare first: topi.equal(x, 0)")
        return ~e

    return te.map_elements("logical_not", of, data)


def bitwise_not(data: Any) -> Any:
    """~data of integers."""
    return te.map_elements("bitwise_not", lambda e: ~e, data)


def broadcast_to(data: te.Tensor, shape: Sequence[Any]) -> te.Tensor:
    """`data` repeated to `shape`, as numpy.broadcast_to: dimensions of extent 1 and missing leading ones are repeated.

    Raises ShapeError for a shape to which the data does not broadcast.
    """
    opening("broadcast_to", data)
    like = te.placeholder(shape, data.dtype, name="like")
    if like.ndim < data.ndim:
        raise ShapeError(f"broadcast_to: {data.name} has {data.ndim} dimensions, the shape {shown(like.shape)} only "
                         f"{like.ndim}")
    joined = te.broadcast_shape(data, like, "broadcast_to")
    for position, (wanted, result) in enumerate(zip(like.shape, joined)):
        if wanted is not result and not te.same_extent(wanted, result):
            raise ShapeError(f"broadcast_to: dimension {position} of {data.name} is {result!r} and cannot become {wanted!r}",
                             hint="only dimensions of extent 1 are repeated")
    return injective("broadcast_to", joined, lambda *i: te.broadcast_element(data, i, joined), tag=BROADCAST)
