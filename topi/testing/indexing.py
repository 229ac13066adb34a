"""References in plain numpy for operators that read or write at positions held in tensors, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def take_python(data: Array, indices: Array, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Array:
    """numpy.take in modes "clip" and "wrap" ("fast" is either), at each place of the batch dimensions."""
    if axis is None:
        return np.take(data, indices, mode="wrap" if mode == "wrap" else "clip")
    kind: Any = "wrap" if mode == "wrap" else "clip"
    if batch_dims == 0:
        return np.take(data, indices, axis, mode=kind)
    along = axis % data.ndim - 1
    rows = [take_python(row, places, along, batch_dims % indices.ndim - 1, mode) for row, places in zip(data, indices)]
    return np.stack(rows)


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """data with its index along `axis` replaced by the element of `indices` at the same place."""
    result = np.empty(indices.shape, data.dtype)
    for place in np.ndindex(*indices.shape):
        source = list(place)
        source[axis] = indices[place]
        result[place] = data[tuple(source)]
    return result


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """a_np[indices_np[0], indices_np[1], ...]: the first dimension of the indices counts dimensions of the data."""
    result: Array = a_np[tuple(indices_np)]
    return result


def one_hot(indices: Array, on_value: Any, off_value: Any, depth: int, axis: int, dtype: Any) -> Array:
    """`on_value` where the position along the new dimension `axis` is the index, else `off_value`."""
    place = axis % (indices.ndim + 1)
    position = np.arange(depth).reshape([depth if d == place else 1 for d in range(indices.ndim + 1)])
    result: Array = np.where(position == np.expand_dims(indices, place), on_value, off_value).astype(dtype)
    return result


def scatter_python(data: Array, indices: Array, updates: Array, axis: int = 0, add: bool = False) -> Array:
    """`data` with updates[i] stored (or added) at `i` with i[axis] replaced by indices[i], in the order of i."""
    result = data.copy()
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = indices[place]
        result[tuple(target)] = result[tuple(target)] + updates[place] if add else updates[place]
    return result


def scatter_nd_python(data: Array, indices: Array, updates: Array, mode: str) -> Array:
    """`data` with updates[y] stored, added, ... at data[indices[0, y], indices[1, y], ...], in the order of y."""
    joins: dict[str, Any] = {"update": lambda old, new: new, "add": np.add, "mul": np.multiply,
                             "min": np.minimum, "max": np.maximum}
    result = data.copy()
    for place in np.ndindex(*indices.shape[1:]):
        target = tuple(indices[(slice(None), *place)])
        result[target] = joins[mode](result[target], updates[place])
    return result


def sparse_to_dense(indices: Array, shape: Any, values: Array, default_value: Any = 0) -> Array:
    """A tensor of `shape` that holds values[n] at indices[n] and `default_value` elsewhere."""
    result = np.full(shape, default_value, values.dtype)
    for place, value in zip(indices.reshape(-1, len(shape)), np.broadcast_to(values, (indices.size // len(shape),))):
        result[tuple(place)] = value
    return result


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: Any) -> Array:
    """numpy.searchsorted of each row of values in its own sequence, or of all in one."""
    side: Any = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    rows = zip(sorted_sequence.reshape(-1, sorted_sequence.shape[-1]), values.reshape(-1, values.shape[-1]))
    return np.stack([np.searchsorted(row, wanted, side) for row, wanted in rows]).reshape(values.shape).astype(out_dtype)
