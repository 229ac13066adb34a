"""Normalization of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import DTypeError, ShapeError
from topi.extents import axes_of, differ, opening, product, shown
from topi.kinds import NormalizeOp


def layer_norm(data: te.Tensor, gamma: te.Tensor, beta: te.Tensor | None, axis: int | Sequence[int],
               epsilon: float = 1e-5) -> te.Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the dimensions `axis`.

    data: any shape, a float dtype. gamma, beta: the shape of those dimensions; beta may be None. Returns: the shape and
    dtype of `data`. The variance is that of data - mean, in a second look at the row: the mean of squares less the square
    of the mean would cancel. Narrow floats are computed in float32. Formula: Ba, Kiros and Hinton, 2016.

    Raises ShapeError for axes or a gamma and beta that do not fit the data, DTypeError for dtypes that are not floats.
    """
    where = opening("layer_norm", data)
    axes = tuple(sorted(axes_of(axis, data.ndim, where)))
    if not data.dtype.is_float:
        raise DTypeError(f"{where}: its elements are {data.dtype}, not floats", hint="cast first: topi.cast(x, 'float32')")
    _check(where, data, axes, gamma, "gamma")
    if beta is not None:
        _check(where, data, axes, beta, "beta")
    kept = [d for d in range(data.ndim) if d not in axes]
    count = product([data.shape[d] for d in axes])
    wide = "float32" if data.dtype.bits < 32 else data.dtype
    divisor = te.const(count, wide) if isinstance(count, int) else count.astype(wide)

    def mean_of(element: Any, name: str) -> Any:
        loops = {d: te.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in axes}
        places = {**loops}

        def formula(*i: Any) -> Any:
            at = {**places, **dict(zip(kept, i))}
            return te.sum(element([at[d] for d in range(data.ndim)], i), axis=list(loops.values()))

        return te.compute([data.shape[d] for d in kept], formula, name=name)

    total = mean_of(lambda at, i: data(*at).astype(wide), "T_layer_norm_sum")
    mean = te.compute(total.shape, lambda *i: total(*i) / divisor, name="T_layer_norm_mean")
    squares = mean_of(lambda at, i: te.power(data(*at).astype(wide) - mean(*i), 2), "T_layer_norm_squares")
    scale = te.compute(total.shape, lambda *i: te.const(1, wide) / te.sqrt(squares(*i) / divisor + te.const(epsilon, wide)),
                       name="T_layer_norm_scale")

    def formula(*i: Any) -> Any:
        rest, own = [i[d] for d in kept], [i[d] for d in axes]
        normalized = (data(*i).astype(wide) - mean(*rest)) * scale(*rest) * gamma(*own).astype(wide)
        return (normalized if beta is None else normalized + beta(*own).astype(wide)).astype(data.dtype)

    record = NormalizeOp("layer_norm", data, axes, (total, mean, squares, scale), gamma, beta, epsilon)
    output: te.Tensor = te.compute(data.shape, formula, name="T_layer_norm", tag="injective", info=record)
    return output


def _check(where: str, data: te.Tensor, axes: tuple[int, ...], given: te.Tensor, name: str) -> None:
    opening(f"{where}, {name}", given)
    wanted = [data.shape[d] for d in axes]
    if given.ndim != len(wanted) or any(differ(a, b) for a, b in zip(given.shape, wanted)):
        raise ShapeError(f"{where}: {name} has the shape {shown(given.shape)}, the dimensions {axes} of "
                         f"{shown(data.shape)} are {shown(wanted)}", hint=f"{name} has one element for each of a row")
