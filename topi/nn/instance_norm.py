"""Normalization of each instance, of groups of channels, and by the root of the mean square."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, axes_of, axis_of, differ, opening, product, require_floats, shown
from topi.injective import injective
from topi.kinds import RowScaleOp
from topi.nn.normalization import require_vector

Element = Callable[..., Any]


@checked
def instance_norm(data: te.Tensor, gamma: te.Tensor, beta: te.Tensor, channel_axis: int, axis: Sequence[int],
                  epsilon: float = 1e-5) -> te.Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the dimensions `axis`.

    data: a float dtype; gamma, beta: (channels,), one for each index of `channel_axis`, which is not in `axis`. The dtype is
    that of the data; narrow floats are computed in float32. Ulyanov et al., 2016.
    """
    where = opening("instance_norm", data)
    channel, axes = _channels_and_axes(data, channel_axis, axis, {"gamma": gamma, "beta": beta}, where)
    return _normalized("instance_norm", data, data.shape, lambda *i: data(*i), axes, epsilon, lambda i: i[channel], gamma, beta)


@checked
def group_norm(data: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, num_groups: int, channel_axis: int,
               axes: Sequence[int], epsilon: float = 1e-5) -> te.Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, for each group of neighbouring channels: mean and variance over
    them and the dimensions `axes`.

    num_groups divides the channels; axes: without `channel_axis`. gamma, beta: (channels,), or None. Wu and He, 2018.
    """
    where = opening("group_norm", data)
    channel, along = _channels_and_axes(data, channel_axis, axes, {"gamma": gamma, "beta": beta}, where)
    channels = as_int(data.shape[channel])
    if num_groups < 1 or (channels is not None and channels % num_groups):
        raise ShapeError(f"{where}: {num_groups} groups of {data.shape[channel]!r} channels", hint="a number that divides them")
    size = data.shape[channel] // num_groups
    shape = [*data.shape[:channel], num_groups, size, *data.shape[channel + 1:]]

    def number(i: Sequence[Any]) -> Any:
        return i[channel] * size + i[channel + 1]

    def element(*i: Any) -> Any:
        return data(*i[:channel], number(i), *i[channel + 2:])

    grouped = sorted([channel + 1, *[d + (d > channel) for d in along]])
    made = _normalized("group_norm", data, shape, element, tuple(grouped), epsilon, number, gamma, beta)
    return injective("group_norm", data.shape,
                     lambda *i: made(*i[:channel], i[channel] // size, i[channel] % size, *i[channel + 1:]))


@checked
def rms_norm(data: te.Tensor, weight: te.Tensor, axis: int | Sequence[int], epsilon: float = 1e-5) -> te.Tensor:
    """data / sqrt(the mean of squares over the dimensions `axis` + epsilon) * weight, whose shape is that of those dimensions.

    Narrow floats are computed in float32. Zhang and Sennrich, 2019.
    """
    where = opening("rms_norm", data)
    axes = _axes(data, axis, where)
    own = [data.shape[d] for d in axes]
    opening(f"{where}, weight", weight)
    if weight.ndim != len(own) or any(map(differ, weight.shape, own)):
        raise ShapeError(f"{where}: weight has the shape {shown(weight.shape)}, the dimensions {axes} of {shown(data.shape)} "
                         f"are {shown(own)}", hint="weight has one element for each of a row")
    wide = _wide(data)
    total = _sum_over(data.shape, axes, lambda *i: data(*i).astype(wide) * data(*i).astype(wide), "T_rms_norm_squares")
    scale = te.compute(total.shape, lambda *i: te.const(1, wide) / te.sqrt(
        total(*i) / _count(data.shape, axes, wide) + te.const(epsilon, wide)), name="T_rms_norm_scale")

    def formula(*i: Any) -> Any:
        rest = [e for d, e in enumerate(i) if d not in axes]
        return (data(*i).astype(wide) * scale(*rest) * weight(*[i[d] for d in axes]).astype(wide)).astype(data.dtype)

    output: te.Tensor = te.compute(data.shape, formula, name="T_rms_norm", tag="injective",
                                   info=RowScaleOp("rms_norm", data, axes, (total, scale)))
    return output


def _normalized(operator: str, data: te.Tensor, shape: Sequence[Any], element: Element, axes: tuple[int, ...], epsilon: float,
                channel: Callable[[Sequence[Any]], Any], gamma: te.Tensor | None, beta: te.Tensor | None) -> te.Tensor:
    """The elements of `data` at indices of `shape`, normalized over `axes`. The variance is that of data - mean."""
    wide = _wide(data)
    count = _count(shape, axes, wide)
    rest = [d for d in range(len(shape)) if d not in axes]
    total = _sum_over(shape, axes, lambda *i: element(*i).astype(wide), f"T_{operator}_sum")
    mean = te.compute(total.shape, lambda *i: total(*i) / count, name=f"T_{operator}_mean")
    squares = _sum_over(shape, axes, lambda *i: te.power(element(*i).astype(wide) - mean(*[i[d] for d in rest]), 2),
                        f"T_{operator}_squares")
    scale = te.compute(total.shape, lambda *i: te.const(1, wide) / te.sqrt(squares(*i) / count + te.const(epsilon, wide)),
                       name=f"T_{operator}_scale")

    def formula(*i: Any) -> Any:
        row, c = [i[d] for d in rest], channel(i)
        made = (element(*i).astype(wide) - mean(*row)) * scale(*row)
        made = made if gamma is None else made * gamma(c).astype(wide)
        return (made if beta is None else made + beta(c).astype(wide)).astype(data.dtype)

    output: te.Tensor = te.compute(shape, formula, name=f"T_{operator}", tag="injective",
                                   info=RowScaleOp(operator, data, axes, (total, mean, squares, scale)))
    return output


def _channels_and_axes(data: te.Tensor, channel_axis: int, axes: int | Sequence[int],
                       vectors: Mapping[str, te.Tensor | None], where: str) -> tuple[int, tuple[int, ...]]:
    """The dimension of the channels, and the others over which is averaged. Those of `vectors` that are given have to have an
    element for each channel.
    """
    channel, along = axis_of(channel_axis, data.ndim, where), _axes(data, axes, where)
    if channel in along:
        raise ShapeError(f"{where}: the channels, dimension {channel}, are among those that are averaged, {along}",
                         hint="list the dimensions of space, for example [2, 3]")
    for name, vector in vectors.items():
        if vector is not None:
            require_vector(vector, name, data, channel, where)
    return channel, along


def _axes(data: te.Tensor, axis: Any, where: str) -> tuple[int, ...]:
    require_floats(data, where)
    return tuple(sorted(axes_of(axis, data.ndim, where)))


def _wide(data: te.Tensor) -> str:
    return "float32" if data.dtype.bits < 32 else str(data.dtype)


def _count(shape: Sequence[Any], axes: Sequence[int], wide: str) -> Any:
    count = product([shape[d] for d in axes])
    return te.const(count, wide) if isinstance(count, int) else count.astype(wide)


def _sum_over(shape: Sequence[Any], axes: Sequence[int], element: Element, name: str) -> te.Tensor:
    """The sums of `element` at indices of `shape` over the dimensions `axes`."""
    loops = {d: te.reduce_axis((0, shape[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def formula(*i: Any) -> Any:
        at = {**loops, **dict(zip(kept, i))}
        return te.sum(element(*[at[d] for d in range(len(shape))]), axis=list(loops.values()))

    made: te.Tensor = te.compute([shape[d] for d in kept], formula, name=name)
    return made
