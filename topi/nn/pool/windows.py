"""Pooling in windows: the largest element or the average.

    out[n, c, y, x] = max (or sum / count) over ky, kx of  data[n, c, y * stride + ky * dilation - before, ...]

The extents are (n + before + behind - span) // stride + 1, with ceil_mode rounded up: windows may then reach over the padded
border. In a maximum the border does not count. An average divides by the number of places of the window, or with
count_include_pad=False by those inside of the data. This is TVM's rule; torch shrinks the windows of ceil_mode at the border.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from topi.arguments import Widths, checked, takes_older_calls
from topi.extents import opening
from topi.kinds import PoolOp
from topi.nn.convolution.formula import Windows, windows
from topi.nn.pad import pad
from topi.nn.pool.layout import letters_of, lowest, quotients, require_type, wide


def _with_dilation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a pooling; before TVM 0.8 there was no dilation between the stride and the padding."""
    if "dilation" in kwargs:
        return args
    if len(args) <= 3:
        kwargs["dilation"] = 1
        return args
    without = args[4] in ("max", "avg") if len(args) > 4 and isinstance(args[4], str) else \
        len(args) == 4 and "padding" not in kwargs
    return (*args[:3], 1, *args[3:]) if without else args


@takes_older_calls(_with_dilation)
@checked
def pool1d(data: te.Tensor, kernel: Widths, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCW", count_include_pad: bool = True) -> te.Tensor:
    """The maximum or average in windows over W.

    kernel, stride, dilation: an int each. padding: (left, right). pool_type: "max" or "avg".
    """
    return _pool("pool1d", "W", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


@takes_older_calls(_with_dilation)
@checked
def pool2d(data: te.Tensor, kernel: Widths, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCHW", count_include_pad: bool = True) -> te.Tensor:
    """The maximum or average in windows over H and W.

    kernel, stride, dilation: two ints each. padding: (top, left, bottom, right). pool_type: "max" or "avg".
    """
    return _pool("pool2d", "HW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


@checked
def pool(data: te.Tensor, kernel: Widths, stride: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
         layout: str = "NCHW", count_include_pad: bool = True) -> te.Tensor:
    """pool2d without dilation, as it was called before TVM 0.8."""
    return pool2d(data, kernel, stride, 1, padding, pool_type, ceil_mode, layout, count_include_pad)


@takes_older_calls(_with_dilation)
@checked
def pool3d(data: te.Tensor, kernel: Widths, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
           layout: str = "NCDHW", count_include_pad: bool = True) -> te.Tensor:
    """The maximum or average in windows over D, H and W.

    kernel, stride, dilation: three ints each. padding: (front, top, left, back, bottom, right). pool_type: "max" or "avg".
    """
    return _pool("pool3d", "DHW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def windows_of(data: te.Tensor, places: list[int], kernel: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool,
               where: str) -> tuple[Windows, list[Any]]:
    """The windows with the border that ceil_mode adds behind, and the extents of the result."""
    extents = list(kernel) if isinstance(kernel, (tuple, list)) else [kernel] * len(places)
    w = windows(extents * (len(places) if len(extents) == 1 else 1), stride, padding, dilation, where)
    results = w.results([data.shape[d] for d in places], where)
    if ceil_mode:
        after = tuple([a + s - 1 for a, s in zip(w.after, w.strides)])
        w = Windows(w.extents, w.strides, w.dilation, w.before, after)
        results = w.results([data.shape[d] for d in places], where)
    return w, results


def _pool(operator: str, space: str, data: te.Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
          ceil_mode: bool, layout: str, count_include_pad: bool) -> te.Tensor:
    where = opening(operator, data)
    require_type(pool_type, where)
    letters = letters_of(layout, data, space, where)
    places = [letters.index(letter) for letter in space]
    w, results = windows_of(data, places, kernel, stride, dilation, padding, ceil_mode, where)
    before, after = [0] * data.ndim, [0] * data.ndim
    for d, low, high in zip(places, w.before, w.after):
        before[d], after[d] = low, high
    is_max = pool_type == "max"
    padded = pad(data, before, after, lowest(data.dtype) if is_max else te.const(0, data.dtype), name="pad_temp")
    shape = list(data.shape)
    for d, extent in zip(places, results):
        shape[d] = extent
    loops = [te.reduce_axis((0, k), name=f"rv{d}") for d, k in enumerate(w.extents)]

    def element(*i: Any) -> Any:
        at = list(i)
        for d, loop, step, hole in zip(places, loops, w.strides, w.dilation):
            at[d] = i[d] * step + loop * hole
        return padded(*at)

    record = PoolOp("max" if is_max else "sum", data, padded, letters, tuple(w.extents), w.strides, w.dilation,
                    w.before, w.after)
    if is_max:
        return te.compute(shape, lambda *i: te.max(element(*i), axis=loops), name="pool_max", tag="pool_max",
                          info=record, axes="ax")
    total = te.compute(shape, lambda *i: te.sum(element(*i).astype(wide(data.dtype)), axis=loops), name="pool_sum",
                       tag="pool_sum", info=record, axes="ax")
    return quotients("pool_avg", total, data.dtype, element_counts(data, places, w, count_include_pad))


def element_counts(data: te.Tensor, places: list[int], w: Windows, count_include_pad: bool) -> Callable[..., Any]:
    """A function from the indices of a window to the number by which its average divides, at least 1."""
    def inside(*i: Any) -> Any:
        total: Any = 1
        for d, k, step, hole, before in zip(places, w.extents, w.strides, w.dilation, w.before):
            start = i[d] * step - before
            first = te.max((hole - 1 - start) // hole, 0)
            behind = te.min((data.shape[d] - start + (hole - 1)) // hole, k)
            total = total * te.max(behind - first, 0)
        return te.max(total, 1)

    places_of_window: Any = 1
    for k in w.extents:
        places_of_window = places_of_window * k
    return (lambda *i: places_of_window) if count_include_pad else inside
