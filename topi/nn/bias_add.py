"""Adding one value to each channel."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import axis_of, differ, opening, shown
from topi.tag import BROADCAST


@checked
def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """data + bias, one value of `bias` for each index of dimension `axis`.

    data: any shape. bias: (data.shape[axis],). Returns: the shape of `data`, the dtype that `data + bias` has.

    Raises ShapeError for a bias that is not as long as the axis.
    """
    where = opening("bias_add", data)
    along = axis_of(axis, data.ndim, where)
    if bias.ndim != 1 or differ(bias.shape[0], data.shape[along]):
        raise ShapeError(f"{where}: bias {bias.name} has the shape {shown(bias.shape)}, dimension {along} of "
                         f"{shown(data.shape)} has {data.shape[along]!r}",
                         hint="bias has one element for each index of that dimension")

    def formula(*i: Any) -> Expr:
        return data(*i) + bias(i[along])

    return te.compute(data.shape, formula, name="T_bias_add", tag=BROADCAST,
                      info=te.ElementwiseOp("bias_add", broadcasts=True), axes="ax")
