"""Products of tensors over any dimensions."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import Axes, checked
from topi.extents import axes_of, differ, opening, shown
from topi.kinds import MatmulOp
from topi.nn.dense import matmul as _nn_matmul
from topi.tag import MATMUL


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """a[i, k] * b[k, j] summed over k.

    a: (M, K), or (K, M) with transp_a. b: (K, N), or (N, K) with transp_b. Returns: (M, N), the dtype of `a`.
    """
    return _nn_matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


@checked
def tensordot(a: te.Tensor, b: te.Tensor, axes: Axes) -> te.Tensor:
    """The sum of products over some dimensions of `a` and as many of `b`; the other dimensions of `a`, then of `b`, form the
    result.

    axes: a number n (the last n of `a`, the first n of `b`), or a pair of an axis or a list of axes of each. Same as
    numpy.tensordot, also in its defaults. Returns: the dtype of `a`.
    """
    where = opening("tensordot", a, b)
    if hasattr(axes, "__index__") and not hasattr(axes, "__len__"):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(f"{where}: axes={axes} of shapes {shown(a.shape)} and {shown(b.shape)}",
                             hint="as many as the smaller rank at most")
        first: tuple[int, ...] = tuple(range(a.ndim - axes, a.ndim))
        second: tuple[int, ...] = tuple(range(axes))
    else:
        if len(axes) != 2:
            raise ShapeError(f"{where}: axes={axes!r} is not a pair", hint="write (axes of the first, axes of the second)")
        first, second = axes_of(axes[0], a.ndim, where, "axes[0]"), axes_of(axes[1], b.ndim, where, "axes[1]")
    if len(first) != len(second) or any(differ(a.shape[x], b.shape[y]) for x, y in zip(first, second)):
        raise ShapeError(f"{where}: the axes {first} of {shown(a.shape)} and {second} of {shown(b.shape)} do not match",
                         hint="the summed dimensions of both must be equal, in order")
    return _tensordot(a, b, first, second)


def _tensordot(a: te.Tensor, b: te.Tensor, first: tuple[int, ...], second: tuple[int, ...]) -> te.Tensor:
    left = [d for d in range(a.ndim) if d not in first]
    right = [d for d in range(b.ndim) if d not in second]
    loops = [te.reduce_axis((0, a.shape[d]), name=f"k{at}") for at, d in enumerate(first)]

    def formula(*i: Any) -> Expr:
        in_a = {**dict(zip(left, i)), **dict(zip(first, loops))}
        in_b = {**dict(zip(right, i[len(left):])), **dict(zip(second, loops))}
        term = a(*[in_a[d] for d in range(a.ndim)]) * b(*[in_b[d] for d in range(b.ndim)])
        return te.sum(term, axis=loops) if loops else term

    shape = [*[a.shape[d] for d in left], *[b.shape[d] for d in right]]
    plain = a.ndim == b.ndim == 2 and len(first) == 1
    info = MatmulOp("tensordot", a, b, first == (0,), second == (1,)) if plain else None
    return te.compute(shape, formula, name="T_tensordot", tag=MATMUL, info=info)
