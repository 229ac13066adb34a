"""Dilation of tensors: gaps between elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int
from topi.kinds import InjectiveOp


@checked
def dilate(data: te.Tensor, strides: Sequence[Any], dilation_value: Any = 0.0, name: str = "DilatedInput") -> te.Tensor:
    """`data` with strides[d] - 1 elements of `dilation_value` between neighbours along each dimension d.

    The extents become (n - 1) * stride + 1, and 0 stays 0; out[i * stride] = data[i].
    """
    if len(strides) != data.ndim:
        raise ShapeError(f"dilate of {data.name}: the tensor has {data.ndim} dimensions and strides {len(strides)} numbers: "
                         f"{tuple(strides)}")
    if any(step is not None and step < 1 for step in map(as_int, strides)):
        raise ShapeError(f"dilate of {data.name}: strides is {tuple(strides)}", hint="1 is the least")
    value = te.const(dilation_value, data.dtype) if isinstance(dilation_value, (bool, int, float)) else dilation_value
    apart = [d for d in range(data.ndim) if as_int(strides[d]) != 1]
    shape = [(n - 1) * step + 1 if d in apart and as_int(n) != 0 else n for d, (n, step) in enumerate(zip(data.shape, strides))]

    def formula(*i: Any) -> Expr:
        element: Expr = data(*[i[d] // strides[d] if d in apart else i[d] for d in range(data.ndim)])
        hits = [(i[d] % strides[d]).equal(0) for d in apart]
        if hits and apart[-1] == data.ndim - 1:  # neighbours are loaded and spread: every element is inside of the data
            element = te.select(hits.pop(), element, value)
        return te.if_then_else(te.all(*hits), element, value) if hits else element

    return te.compute(shape, formula, name=name, tag="injective,dilate", info=InjectiveOp("dilate"))
