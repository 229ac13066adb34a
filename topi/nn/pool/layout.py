"""Layouts as pooling takes them: "NCHW", "NHWC", "NCHW16c", a letter for each dimension; capitals D, H, W are space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.extents import shown

_NARROW = ("float16", "bfloat16")
_SHORT = ("int8", "uint8", "int16", "uint16")


def letters_of(layout: str, data: te.Tensor, space: str, where: str) -> str:
    """`layout` without the sizes of blocks; an error if it does not fit `data` or lacks a letter of `space`."""
    letters = "".join(letter for letter in layout if not letter.isdigit()) if isinstance(layout, str) else ""
    missing = [letter for letter in space if letters.count(letter) != 1]
    if missing or not letters.isalpha() or any(letter.lower() in letters for letter in space):
        raise ArgumentError(f'{where}: layout is "{layout}"', hint=f"it has each of {', '.join(space)} once, in one piece")
    if len(letters) != data.ndim:
        raise ShapeError(f"{where}: {data.name} has the shape {shown(data.shape)}, {data.ndim} dimensions, and the layout "
                         f"{layout} has {len(letters)}")
    return letters


def require_type(pool_type: str, where: str) -> None:
    """Raise ArgumentError unless `pool_type` is "max" or "avg"."""
    if pool_type not in ("max", "avg"):
        raise ArgumentError(f'{where}: pool_type is "{pool_type}"', hint='"max" or "avg"')


def lowest(dtype: Any) -> Any:
    """The lower bound of the values of `dtype`: minus infinity for floats."""
    return -te.infinity(dtype) if te.const(0, dtype).dtype.is_float else te.min_value(dtype)


def wide(dtype: Any) -> str:
    """The dtype in which elements of `dtype` are summed."""
    return "float32" if dtype in _NARROW else "int32" if dtype in _SHORT else str(dtype)


def quotients(name: str, total: te.Tensor, dtype: Any, count: Callable[..., Any]) -> te.Tensor:
    """total[i] / count(i) in `dtype`; for integers rounded towards zero."""
    def formula(*i: Any) -> Expr:
        parts, of = count(*i), total(*i)
        divisor = te.const(parts, of.dtype) if isinstance(parts, int) else parts.astype(of.dtype)
        return (of / divisor if of.dtype.is_float else te.truncdiv(of, divisor)).astype(dtype)

    return te.compute(total.shape, formula, name=name, tag="elemwise", info=te.ElementwiseOp("divide"), axes="ax")
