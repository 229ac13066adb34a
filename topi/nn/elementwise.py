"""Activations."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import axis_of, constant, differ, opening, require_one_dtype, shown
from topi.tag import BROADCAST


def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0); NaN stays NaN.

    Raises ArgumentTypeError for what is not a tensor.
    """
    opening("relu", x)
    output: te.Tensor = te.map_elements("relu", lambda e: te.max(e, te.const(0, x.dtype)), x)
    return output


@checked
def leaky_relu(x: te.Tensor, alpha: float) -> te.Tensor:
    """x where x > 0, else x * alpha, in the dtype of `x`.

    Raises ArgumentTypeError for what is not a tensor.
    """
    slope = constant(alpha, x.dtype, opening("leaky_relu", x), "alpha")
    output: te.Tensor = te.map_elements("leaky_relu", lambda e: te.select(e > 0, e, e * slope), x)
    return output


def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """x where x > 0, else x * slope[i[axis]]: leaky_relu with one slope for each channel.

    slope: (x.shape[axis],) of the dtype of `x`.

    Raises DTypeError if the dtypes differ.
    """
    where = opening("prelu", x)
    along = axis_of(axis, x.ndim, where)
    require_one_dtype([x, slope], where)
    if slope.ndim != 1 or differ(slope.shape[0], x.shape[along]):
        raise ShapeError(f"{where}: slope {slope.name} has the shape {shown(slope.shape)} and dimension {along} of "
                         f"{shown(x.shape)} has extent {x.shape[along]!r}", hint="give one slope for each channel")

    def formula(*i: Any) -> Expr:
        return te.select(x(*i) > 0, x(*i), x(*i) * slope(i[along]))

    return te.compute(x.shape, formula, name="T_prelu", tag=BROADCAST,
                      info=te.ElementwiseOp("prelu", broadcasts=True), axes="ax")
