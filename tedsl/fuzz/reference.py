"""An eager `te` in numpy: the lines that declare a program run here too, and every tensor is its array at once.

    reference = Reference(sizes={"n": 7}, arrays={"A": array})
    exec("n = te.var('n'); A = te.placeholder((n,)); B = te.compute((n,), lambda i: A[i] + 1)", {"te": reference})

Sums of floats are taken in float64. A data-dependent index is clamped; so are the indices of the side that is not chosen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tedsl.fuzz.values import (
    Array,
    Value,
    arithmetic,
    as_value,
    converted,
    greatest,
    is_float,
    least,
    matched,
    numpy_type,
    truncate_divide,
    truncate_remainder,
)


class Axis:
    """A reduce axis: dimension number `slot` before those of the compute that uses it."""

    dtype = "int32"

    def __init__(self, reference: Reference, begin: int, end: int) -> None:
        self.reference, self.begin, self.extent = reference, begin, max(end - begin, 0)
        self.slot = reference.slots
        reference.slots += 1

    @property
    def dim(self) -> int:
        return -(self.reference.rank + 1 + self.slot)

    @property
    def var(self) -> Value:
        return self.as_value()

    def as_value(self) -> Value:
        line = np.arange(self.begin, self.begin + self.extent, dtype=np.int32)
        return Value(line.reshape(-1, *[1] * (-self.dim - 1)), "int32")

    def equal(self, other: Any) -> Value:
        return self.as_value().equal(other)

    def astype(self, dtype: str) -> Value:
        return self.as_value().astype(dtype)


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "mod", "floordiv", "lt", "le", "gt", "ge"):
    setattr(Axis, f"__{_name}__", lambda self, other, name=f"__{_name}__": getattr(self.as_value(), name)(other))


class Tensor:
    """A tensor of the reference: its array of values, indexed as in formulas."""

    def __init__(self, array: Array, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    @property
    def shape(self) -> Any:
        return self.array.shape

    def __getitem__(self, indices: Any) -> Value:
        return self(*indices) if isinstance(indices, tuple) else self(indices)

    def __call__(self, *indices: Any) -> Value:
        wanted = [as_value(i).array.astype(np.int64) for i in indices]
        if not self.array.size:
            return Value(np.zeros(np.broadcast_shapes(*(w.shape for w in wanted)), self.array.dtype), self.dtype)
        clamped = [np.clip(w, 0, size - 1) for w, size in zip(wanted, self.array.shape)]
        return Value(self.array[tuple(clamped)], self.dtype)


def _reducer(name: str, identity: Callable[[str], Any], fold: Callable[..., Any]) -> Any:
    def reduce(self: Reference, expr: Any, axis: Any = None, where: Any = None, init: Any = None) -> Value:
        if axis is None or isinstance(axis, Value) or not isinstance(axis, (Axis, list)):
            return arithmetic({"max": greatest, "min": least}[name], expr, axis)
        value = as_value(expr)
        start = as_value(init, value.dtype).array if init is not None else identity(value.dtype)
        array, dims = self.spread(value, axis)
        if where is not None:
            array = np.where(self.spread(where, axis)[0], array, identity(value.dtype))
        wide = array.astype(np.float64) if is_float(value.dtype) else array
        with np.errstate(all="ignore"):
            result = fold(wide, dims, np.asarray(start).astype(wide.dtype))
        return Value(np.asarray(converted(result, "float64", value.dtype) if is_float(value.dtype) else
                                result.astype(value.dtype)), value.dtype)

    return reduce


def _lowest(dtype: str) -> Array:
    return np.asarray(-np.inf, numpy_type(dtype)) if is_float(dtype) else np.asarray(np.iinfo(dtype).min, dtype)


def _highest(dtype: str) -> Array:
    return np.asarray(np.inf, numpy_type(dtype)) if is_float(dtype) else np.asarray(np.iinfo(dtype).max, dtype)


def _function(compute: Callable[..., Any]) -> Any:
    """A function of floats, computed in double precision and rounded."""
    def apply(self: Reference, *args: Any) -> Value:
        values = matched(*args) if len(args) == 2 else (as_value(args[0]),)
        with np.errstate(all="ignore"):
            result = compute(*(v.array.astype(np.float64) for v in values))
        return Value(np.asarray(converted(result, "float64", values[0].dtype)), values[0].dtype)

    return apply


_erf = np.vectorize(math.erf, otypes=[np.float64])


class Reference:
    """The replacement for `te` in the lines of a program."""

    def __init__(self, sizes: Mapping[str, float], arrays: dict[str, Array]) -> None:
        self.sizes, self.arrays, self.rank, self.slots = sizes, arrays, 0, 0
        self.steps: list[tuple[tuple[Tensor, ...], tuple[int, ...], Callable[..., Any]]] = []  # computes since the first state
        self.states: list[Tensor] = []

    # --- declarations ---

    def var(self, name: str, dtype: str = "int32") -> Value:
        return Value(np.asarray(self.sizes[name]).astype(numpy_type(dtype)), dtype)

    size_var = var

    def placeholder(self, shape: Sequence[Any], dtype: str = "float32", name: str = "placeholder") -> Tensor:
        dims = tuple(int(d) for d in shape)
        if name not in self.arrays:  # a state, whose rows `scan` fills
            self.states.append(Tensor(np.zeros(dims, numpy_type(dtype)), dtype))
            return self.states[-1]
        array = self.arrays[name]
        assert array.shape == dims, (name, array.shape)
        return Tensor(array, dtype)

    def reduce_axis(self, dom: tuple[Any, Any], name: str = "rv") -> Axis:
        return Axis(self, int(dom[0]), int(dom[1]))

    def compute(self, shape: Sequence[Any], fcompute: Callable[..., Any], name: str = "compute") -> Any:
        dims = tuple(int(d) for d in shape)
        tensors = self._computed(dims, fcompute)
        self.slots = 0
        if self.states:
            self.steps.append((tensors, dims, fcompute))
        return tensors if len(tensors) > 1 else tensors[0]

    def _computed(self, dims: tuple[int, ...], fcompute: Callable[..., Any]) -> tuple[Tensor, ...]:
        self.rank = len(dims)
        grid = [Value(line, "int32") for line in np.indices(dims, np.int32, sparse=True)]
        with np.errstate(all="ignore"):
            body = fcompute(*grid)
        return tuple(self._tensor(part, dims) for part in (body if isinstance(body, tuple) else (body,)))

    def scan(self, init: Any, update: Any, state_placeholder: Any, inputs: Any = None, name: str = "scan") -> Any:
        """All rows, one after the other: what was declared since the first state is computed anew, then its row is kept."""
        inits, updates, states = (part if isinstance(part, list) else [part] for part in (init, update, state_placeholder))
        for state, given in zip(states, inits):
            state.array[:len(given.array)] = given.array
        for row in range(len(inits[0].array), len(states[0].array)):
            for tensors, dims, fcompute in self.steps:
                for tensor, again in zip(tensors, self._computed(dims, fcompute)):
                    tensor.array = again.array
            for state, updated in zip(states, updates):
                state.array[row] = updated.array[row]
        self.states, self.steps = [], []
        results = [Tensor(state.array, state.dtype) for state in states]
        return results if len(results) > 1 else results[0]

    def _tensor(self, body: Any, dims: tuple[int, ...]) -> Tensor:
        value = as_value(body)
        array = value.array
        while array.ndim > len(dims):
            assert array.shape[0] == 1, "a reduce axis is left over"
            array = array[0]
        return Tensor(np.array(np.broadcast_to(array, dims)), value.dtype)

    # --- reductions ---

    def spread(self, value: Any, axis: Any) -> tuple[Array, tuple[int, ...]]:
        """The array of `value` over all iterations of the reduce axes, and their dimensions."""
        axes = axis if isinstance(axis, list) else [axis]
        array = as_value(value).array
        depth = max(array.ndim, *(-a.dim for a in axes))
        shape = [*[1] * (depth - array.ndim), *array.shape]
        for a in axes:
            shape[a.dim] = a.extent
        return np.broadcast_to(array, shape), tuple(a.dim for a in axes)

    sum = _reducer("sum", lambda t: np.zeros((), numpy_type(t)),
                   lambda a, dims, start: np.sum(a, dims, a.dtype, keepdims=True) + start)
    prod = _reducer("prod", lambda t: np.ones((), numpy_type(t)),
                    lambda a, dims, start: np.prod(a, dims, a.dtype, keepdims=True) * start)
    max = _reducer("max", _lowest, lambda a, dims, start: np.max(a, dims, keepdims=True, initial=start))
    min = _reducer("min", _highest, lambda a, dims, start: np.min(a, dims, keepdims=True, initial=start))

    def comm_reducer(self, fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce") -> Any:
        def reduce(sources: Sequence[Any], axis: Axis) -> tuple[Value, ...]:
            spread = [self.spread(s, axis)[0] for s in sources]
            dims = self.spread(sources[0], axis)[1]
            types = [as_value(s).dtype for s in sources]
            result = tuple(as_value(v, t) for v, t in zip(fidentity(*types), types))
            depth = max(a.ndim for a in spread)
            spread = [a.reshape((1,) * (depth - a.ndim) + a.shape) for a in spread]
            for point in itertools.product(*(range(spread[0].shape[d]) for d in dims)):
                at = [slice(None)] * depth
                for d, p in zip(dims, point):
                    at[d] = slice(p, p + 1)
                result = fcombine(result, tuple(Value(a[tuple(at)], t) for a, t in zip(spread, types)))
            return result

        return reduce

    # --- functions of values ---

    def if_then_else(self, condition: Value, t: Any, f: Any) -> Value:
        if isinstance(t, Value) and isinstance(f, Value) and t.dtype == f.dtype == "bool":
            return Value(np.where(condition.array, t.array, f.array), "bool")
        t, f = matched(t, f)
        return Value(np.where(condition.array, t.array, f.array), t.dtype)

    select = if_then_else

    def all(self, *conditions: Value) -> Value:
        return Value(np.asarray(np.logical_and.reduce(np.broadcast_arrays(*(c.array for c in conditions)))), "bool")

    def any(self, *conditions: Value) -> Value:
        return Value(np.asarray(np.logical_or.reduce(np.broadcast_arrays(*(c.array for c in conditions)))), "bool")

    def const(self, value: Any, dtype: str) -> Value:
        return as_value(value, dtype)

    def min_value(self, dtype: str) -> Value:
        return Value(np.asarray(np.iinfo(dtype).min, dtype), dtype) if not is_float(dtype) else \
            Value(np.asarray(np.finfo(dtype).min, dtype), dtype)

    def truncdiv(self, a: Any, b: Any) -> Value:
        return arithmetic(truncate_divide, a, b)

    def truncmod(self, a: Any, b: Any) -> Value:
        return arithmetic(truncate_remainder, a, b)

    def abs(self, a: Value) -> Value:
        return Value(np.abs(a.array), a.dtype)

    def popcount(self, a: Value) -> Value:
        unsigned = a.array.astype(f"uint{8 * a.array.itemsize}").astype(np.uint64)
        return Value(sum(((unsigned >> np.uint64(b)) & np.uint64(1)).astype(a.array.dtype) for b in range(64)), a.dtype)

    exp = _function(np.exp)
    tanh = _function(np.tanh)
    sigmoid = _function(lambda x: 1 / (1 + np.exp(-x)))
    erf = _function(_erf)
    sqrt = _function(np.sqrt)
    sin = _function(np.sin)
    cos = _function(np.cos)
    log = _function(np.log)
    atan = _function(np.arctan)
    floor = _function(np.floor)
    ceil = _function(np.ceil)
    trunc = _function(np.trunc)
    nearbyint = _function(np.round)
    round = _function(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x))

    def isnan(self, a: Value) -> Value:
        return Value(np.isnan(a.array), "bool")
