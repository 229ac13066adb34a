"""Formulas of operators that topi does not have by one name: as numpy and users of tensors know them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import topi
from tedsl import te
from tedsl.errors import ShapeError

Axis = int | Sequence[int] | None


def extents(x: te.Tensor) -> tuple[int, ...]:
    """The shape as numbers."""
    return tuple(int(extent) for extent in x.shape)


def mean(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """The sum over `axis` divided by the number of elements."""
    listed = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    count = math.prod(extents(x)[d] for d in listed)
    return topi.sum(x, axis, keepdims) * (1.0 / max(count, 1))


def reshape(x: te.Tensor, shape: Sequence[int]) -> Any:
    """The elements in another shape; one extent may be -1."""
    sizes, given = math.prod(extents(x)), list(shape)
    if given.count(-1) == 1:
        rest = math.prod(extent for extent in given if extent != -1)
        given[given.index(-1)] = sizes // rest if rest else 0
    if math.prod(given) != sizes or min(given, default=0) < 0:
        raise ShapeError(f"reshape: {sizes} elements of shape {extents(x)} do not fill the shape {tuple(shape)}")
    return topi.reshape(x, tuple(given))


def transpose(x: te.Tensor, axes: Sequence[int] | None = None) -> Any:
    """The dimensions in another order; by default reversed."""
    return topi.transpose(x, tuple(axes) if axes is not None else tuple(reversed(range(x.ndim))))


def matmul(a: te.Tensor, b: te.Tensor) -> Any:
    """The product of matrices as numpy's `@`: vectors count as rows or columns, leading dimensions are broadcast."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError("matmul: an operand is a scalar", hint="write a * b")
    left = topi.expand_dims(a, 0) if a.ndim == 1 else a
    right = topi.expand_dims(b, 1) if b.ndim == 1 else b
    if extents(left)[-1] != extents(right)[-2]:
        raise ShapeError(f"matmul: shapes {extents(a)} and {extents(b)} do not fit: "
                         f"{extents(left)[-1]} columns, {extents(right)[-2]} rows")
    made = topi.matmul(left, right) if left.ndim == right.ndim == 2 else _batched(left, right)
    squeezed = [made.ndim - 2] * (a.ndim == 1) + [made.ndim - 1] * (b.ndim == 1)
    return topi.squeeze(made, squeezed) if squeezed else made


def _batched(a: te.Tensor, b: te.Tensor) -> Any:
    outer = _broadcast(extents(a)[:-2], extents(b)[:-2])
    (n, k), m = extents(a)[-2:], extents(b)[-1]
    if b.ndim == 2:
        return topi.reshape(topi.matmul(topi.reshape(a, (math.prod(outer) * n, k)), b), (*outer, n, m))
    left = topi.reshape(_expanded(a, (*outer, n, k)), (math.prod(outer), n, k))
    right = topi.reshape(_expanded(b, (*outer, k, m)), (math.prod(outer), k, m))
    return topi.reshape(topi.nn.batch_matmul(left, right, transpose_b=False), (*outer, n, m))


def _expanded(x: te.Tensor, shape: tuple[int, ...]) -> Any:
    return x if extents(x) == shape else topi.broadcast_to(x, shape)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        raise ShapeError(f"matmul: leading dimensions {a} and {b} do not fit")
    return tuple(y if x == 1 else x for x, y in pairs)


def power(x: te.Tensor, exponent: float) -> Any:
    """Each element to a constant power; small integers are products."""
    if isinstance(exponent, int) and 1 <= exponent <= 4:
        return te.map_elements("power", lambda e: math.prod([e] * (exponent - 1), start=e), x, name="power")
    if exponent == 0.5:
        return topi.sqrt(x)
    return topi.power(x, te.const(exponent, x.dtype))


def part(x: te.Tensor, index: tuple[Any, ...]) -> Any:
    """x[index] for slices (start, count, step), integers, and None for a new dimension."""
    places = [at for at in index if at is not None]
    ranges = [(at, 1, 1) if isinstance(at, int) else at for at in places]
    whole = all(one == (0, n, 1) for one, n in zip(ranges, extents(x)))
    made = x if whole else topi.strided_slice(x, [start for start, _, _ in ranges], [_end(*one) for one in ranges],
                                              [step for _, _, step in ranges])
    kept = [n for n, at in zip(extents(made), [*places, *[()] * x.ndim]) if not isinstance(at, int)]
    shape: list[int] = []
    waiting = iter(kept)
    for at in index:
        if at is None:
            shape.append(1)
        elif not isinstance(at, int):
            shape.append(next(waiting))
    shape += list(waiting)
    return made if tuple(shape) == extents(made) else topi.reshape(made, tuple(shape))


def _end(start: int, count: int, step: int) -> int | None:
    """Where a slice ends; None for one that goes backwards to the first element."""
    end = start + count * step
    return end if end >= 0 else None


def placed(x: te.Tensor, value: te.Tensor, index: tuple[Any, ...]) -> Any:
    """x with `value` (broadcast) in x[index], for slices (start, count, step) and integers."""
    places = [at for at in index if at is not None]
    ranges = [(at, 1, 1) if isinstance(at, int) else at for at in places]
    counts = [count for _, count, _ in ranges]
    kept = [n for n, at in zip(counts, places) if not isinstance(at, int)] + list(extents(x)[len(places):])
    source = topi.reshape(_expanded(value, tuple(kept)), (*counts, *extents(x)[len(places):]))

    def element(*i: Any) -> Any:
        inside = [te.all(at >= min(start, start + step * (count - 1)), at <= max(start, start + step * (count - 1)),
                         (at - start) % abs(step) == 0) for at, (start, count, step) in zip(i, ranges)]
        at_source = [(at - start) // step for at, (start, _, step) in zip(i, ranges)]
        if not inside:
            return source(*i)
        return te.if_then_else(te.all(*inside), source(*at_source, *i[len(ranges):]), x(*i))

    return te.compute(x.shape, element, name="placed", tag="injective")


def variance(x: te.Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean of the squares of deviations from the mean."""
    middle = mean(x, axis, True)
    return mean((x - middle) * (x - middle), axis, keepdims)
