"""Normalization over batches, neighbouring channels, or vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import axis_of, differ, opening, product, shown
from topi.kinds import ChannelNormOp, InjectiveOp, WindowSumOp
from topi.nn.pad import pad
from topi.reduction import sum as sum_of

_NARROW = ("float16", "bfloat16")


def batch_norm(data: te.Tensor, gamma: te.Tensor, beta: te.Tensor, moving_mean: te.Tensor, moving_var: te.Tensor,
               axis: int | None = None, epsilon: float | None = None, center: bool | None = None,
               scale: bool | None = None, training: bool | None = None, momentum: float | None = None) -> list[te.Tensor]:
    """(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta, for inference; one of each for a channel.

    axis: that of the channels, None is 1. epsilon None is 1e-5. center, scale: whether beta, gamma are used, None is yes.
    training: normalize by the mean and variance of the data instead. Returns [normalized, moving_mean, moving_var], the last
    two unchanged; in training (1 - momentum) of them and `momentum`, 0.1 if None, of the statistics of the data (the variance
    divided by their number). Ioffe and Szegedy, Batch Normalization (2015).

    Raises ShapeError for statistics that are not as many as the channels.
    """
    where = opening("batch_norm", data)
    channel = axis_of(1 if axis is None else axis, data.ndim, where)
    for vector, name in ((gamma, "gamma"), (beta, "beta"), (moving_mean, "moving_mean"), (moving_var, "moving_var")):
        require_vector(vector, name, data, channel, where)
    if training:
        return _by_own_statistics(data, gamma if scale is not False else None, beta if center is not False else None,
                                  (moving_mean, moving_var), channel, 1e-5 if epsilon is None else epsilon,
                                  0.1 if momentum is None else momentum)
    small = te.const(1e-5 if epsilon is None else epsilon, moving_var.dtype)

    def formula(*i: Any) -> Expr:
        c = i[channel]
        normalized = (data(*i) - moving_mean(c)) / te.sqrt(moving_var(c) + small)
        normalized = normalized if scale is False else normalized * gamma(c)
        return normalized if center is False else normalized + beta(c)

    out: te.Tensor = te.compute(data.shape, formula, name="T_batch_norm", tag="broadcast",
                                info=te.ElementwiseOp("batch_norm", broadcasts=True), axes="ax")
    return [out, te.map_elements("identity", lambda e: e, moving_mean), te.map_elements("identity", lambda e: e, moving_var)]


def _by_own_statistics(data: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, moving: tuple[te.Tensor, te.Tensor],
                       channel: int, epsilon: float, momentum: float) -> list[te.Tensor]:
    """batch_norm in training. The variance is that of data - mean, in a second look at the data."""
    wide = "float32" if data.dtype in _NARROW else str(data.dtype)
    axes = [d for d in range(data.ndim) if d != channel]
    count = product([data.shape[d] for d in axes])
    divisor = te.const(count, wide) if isinstance(count, int) else count.astype(wide)
    x = data if data.dtype == wide else te.map_elements("cast", lambda e: e.astype(wide), data)
    total = sum_of(x, axes)
    mean = te.compute(total.shape, lambda c: total(c) / divisor, name="T_batch_norm_mean")
    squares = sum_of(te.compute(x.shape, lambda *i: te.power(x(*i) - mean(i[channel]), 2), name="T_batch_norm_squares",
                                info=InjectiveOp("batch_norm")), axes)
    variance = te.compute(total.shape, lambda c: squares(c) / divisor, name="T_batch_norm_variance")
    scale = te.compute(total.shape, lambda c: te.const(1, wide) / te.sqrt(variance(c) + te.const(epsilon, wide)),
                       name="T_batch_norm_scale")

    def formula(*i: Any) -> Expr:
        c = i[channel]
        normalized = (x(*i) - mean(c)) * scale(c)
        normalized = normalized if gamma is None else normalized * gamma(c).astype(wide)
        return (normalized if beta is None else normalized + beta(c).astype(wide)).astype(data.dtype)

    out = te.compute(data.shape, formula, name="T_batch_norm", tag="broadcast", axes="ax",
                     info=ChannelNormOp("batch_norm", data, channel, mean, scale, gamma, beta))
    return [out, *[_moved(old, new, momentum) for old, new in zip(moving, (mean, variance))]]


def _moved(old: te.Tensor, new: te.Tensor, momentum: float) -> te.Tensor:
    """`old` moved towards `new`."""
    part, rest = te.const(momentum, new.dtype), te.const(1 - momentum, new.dtype)
    output: te.Tensor = te.compute(old.shape, lambda c: (old(c).astype(new.dtype) * rest + new(c) * part).astype(old.dtype),
                                   name="T_batch_norm_moving", info=te.ElementwiseOp("moving"), axes="ax")
    return output


@checked
def lrn(data: te.Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> te.Tensor:
    """data / (bias + alpha / size * the sum of squares of the `size` neighbours along `axis`) ** beta.

    size: odd. Local response normalization: Krizhevsky et al., ImageNet Classification (2012), section 3.3.
    """
    where = opening("lrn", data)
    along, dtype = axis_of(axis, data.ndim, where), str(data.dtype)
    if size < 1 or size % 2 == 0:
        raise ArgumentError(f"{where}: size is {size}", hint="an odd number of neighbours, the element in the middle")
    wide = "float32" if dtype in _NARROW else dtype
    border = [size // 2 if d == along else 0 for d in range(data.ndim)]
    padded, near = pad(data, border, border, name="pad_data"), te.reduce_axis((0, size), name="rxs")

    def square(*i: Any) -> Expr:
        element = padded(*[index + near if d == along else index for d, index in enumerate(i)]).astype(wide)
        return element * element

    squares = te.compute(data.shape, lambda *i: te.sum(square(*i), axis=near), name="sqr_sum", tag="sqr_sum", axes="ax",
                         info=WindowSumOp("lrn", data, padded, along, size))
    a, b, c = te.const(alpha / size, wide), te.const(bias, wide), te.const(beta, wide)

    def formula(*i: Any) -> Expr:
        return (data(*i).astype(wide) / te.power(b + a * squares(*i), c)).astype(dtype)

    return te.compute(data.shape, formula, name="T_lrn", tag="broadcast", info=te.ElementwiseOp("lrn"), axes="ax")


def l2_normalize(data: te.Tensor, eps: float, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """data / sqrt(max(the sum of squares along `axis`, eps)); axis: an int, several, or None for all."""
    squares = te.map_elements("multiply", lambda e: e * e, data)
    total = sum_of(squares, axis, keepdims=True)
    single = [d for d in range(data.ndim) if differ(total.shape[d], data.shape[d])]

    def formula(*i: Any) -> Expr:
        length = total(*[0 if d in single else index for d, index in enumerate(i)])
        return data(*i) / te.sqrt(te.max(length, te.const(eps, data.dtype)))

    return te.compute(data.shape, formula, name="T_l2_normalize", tag="broadcast",
                      info=te.ElementwiseOp("l2_normalize", broadcasts=True), axes="ax")


def require_vector(vector: te.Tensor, name: str, data: te.Tensor, axis: int, where: str) -> None:
    """ShapeError where `vector` has not one element for each of `axis` of the data."""
    opening(f"{where}, {name}", vector)
    if vector.ndim != 1 or differ(vector.shape[0], data.shape[axis]):
        raise ShapeError(f"{where}: {name} {vector.name} has the shape {shown(vector.shape)} and dimension {axis} of "
                         f"{shown(data.shape)} has {data.shape[axis]!r} elements", hint="give one number for each channel")
