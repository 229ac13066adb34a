"""The gradient of pooling: what each element of the data adds to the results, times their gradients.

    average:   out[h] = sum over the windows p around h of  grads[p] / count(p)
    maximum:   out[h] = sum over the windows p around h whose first largest element is h of  grads[p]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import Widths, checked
from topi.extents import differ, opening, row_major, shown
from topi.kinds import PoolOp
from topi.nn.convolution.formula import Windows
from topi.nn.pad import pad
from topi.nn.pool.layout import letters_of, lowest, require_type, wide
from topi.nn.pool.windows import element_counts, windows_of


@checked
def pool_grad(grads: te.Tensor, data: te.Tensor, kernel: Widths, stride: Any, padding: Any, pool_type: str,
              ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCHW") -> te.Tensor:
    """The gradient of pool2d with respect to `data`, in its shape; grads: of the shape of the result of pool2d."""
    where = opening("pool_grad", data)
    require_type(pool_type, where)
    letters = letters_of(layout, data, "HW", where)
    places = [letters.index("H"), letters.index("W")]
    w, results = windows_of(data, places, kernel, stride, 1, padding, ceil_mode, where)
    shape = [results[places.index(d)] if d in places else n for d, n in enumerate(data.shape)]
    if grads.ndim != data.ndim or any(differ(a, b) for a, b in zip(grads.shape, shape)):
        raise ShapeError(f"{where}: grads {grads.name} has the shape {shown(grads.shape)}, the pooling of {data.name} "
                         f"{shown(data.shape)} has {shown(shape)}")
    average = pool_type == "avg"
    share = _of_average(data, grads, places, w, count_include_pad) if average else _of_maximum(data, grads, places, w)
    return _collected(data, grads, places, w, share, f"pool_grad_{pool_type}", letters)


Share = Callable[[list[Any], list[Any]], Any]


def grad_of_sums(data: te.Tensor, grads: te.Tensor, places: list[int], w: Windows, letters: str) -> te.Tensor:
    """The gradient of sums in windows over the dimensions `places`, without dilation."""
    def share(window: list[Any], element: list[Any]) -> Any:
        return grads(*window).astype(wide(grads.dtype))

    return _collected(data, grads, places, w, share, "pool_grad_sum", letters)


def _collected(data: te.Tensor, grads: te.Tensor, places: list[int], w: Windows, share: Share, name: str,
               letters: str) -> te.Tensor:
    """out[h]: the sum of share(window, h) over the windows that contain the element h."""
    loops = [te.reduce_axis((0, (k + s - 1) // s), name=f"w{letters[d].lower()}") for d, k, s in
             zip(places, w.extents, w.strides)]

    def formula(*i: Any) -> Any:
        at, inside = list(i), []
        for d, loop, k, step, before in zip(places, loops, w.extents, w.strides, w.before):
            at[d] = (i[d] + before) // step - loop
            inside += [at[d] >= 0, at[d] < grads.shape[d], at[d] * step + k > i[d] + before]
        return te.sum(te.if_then_else(te.all(*inside), share(at, list(i)), te.const(0, wide(grads.dtype))), axis=loops)

    record = PoolOp("grad", data, grads, letters, tuple(w.extents), w.strides, w.dilation)
    output: te.Tensor = te.compute(data.shape, formula, name=name, tag=name, info=record, axes="ax")
    if output.dtype == grads.dtype:
        return output
    narrow: te.Tensor = te.compute(output.shape, lambda *i: output(*i).astype(grads.dtype), name=f"{name}_{grads.dtype}",
                                   tag="elemwise", info=te.ElementwiseOp("cast"), axes="ax")
    return narrow


def _of_average(data: te.Tensor, grads: te.Tensor, places: list[int], w: Windows, count_include_pad: bool) -> Share:
    count = element_counts(data, places, w, count_include_pad)

    def share(window: list[Any], element: list[Any]) -> Any:
        parts, grad = count(*window), grads(*window).astype(wide(grads.dtype))
        return grad / (te.const(parts, grad.dtype) if isinstance(parts, int) else parts.astype(grad.dtype))

    return share


def _of_maximum(data: te.Tensor, grads: te.Tensor, places: list[int], w: Windows) -> Share:
    """The share function of a maximum: the gradient of a window goes to its first largest element, whose position in the padded
    data is computed by a stage of its own.
    """
    before, after = [0] * data.ndim, [0] * data.ndim
    for d, low, high in zip(places, w.before, w.after):
        before[d], after[d] = low, high
    padded = pad(data, before, after, lowest(data.dtype), name="pad_temp")
    loops = [te.reduce_axis((0, k), name=f"rv{d}") for d, k in enumerate(w.extents)]

    def formula(*i: Any) -> Any:
        at = list(i)
        for d, loop, step in zip(places, loops, w.strides):
            at[d] = i[d] * step + loop
        return _first_largest()((row_major(at, padded.shape).astype("int32"), padded(*at)), axis=loops)

    where, _ = te.compute(grads.shape, formula, name="maxpool_grad_argmax", tag="comm_reduce_idx", axes="ax")

    def share(window: list[Any], element: list[Any]) -> Any:
        mine = row_major([n + low for n, low in zip(element, before)], padded.shape).astype("int32")
        grad = grads(*window).astype(wide(grads.dtype))
        return te.if_then_else(where(*window).equal(mine), grad, te.const(0, grad.dtype))

    return share


def _first_largest() -> Any:
    """A reducer of pairs (place, value) to the pair with the largest value; of equal values the first; NaN is largest."""
    def better(x: Any, y: Any) -> tuple[Any, Any]:
        beats, ties = x[1] > y[1], x[1].equal(y[1])
        if x[1].dtype.is_float:
            x_nan, y_nan = te.isnan(x[1]), te.isnan(y[1])
            beats, ties = te.any(te.all(x_nan, ~y_nan), beats), te.any(te.all(x_nan, y_nan), ties)
        chosen = te.any(beats, te.all(ties, x[0] < y[0]))
        return te.select(chosen, x[0], y[0]), te.select(chosen, x[1], y[1])

    return te.comm_reducer(better, lambda place, of: (te.max_value("int32"), lowest(of)), name="first_largest")
