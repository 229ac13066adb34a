"""Operators that read or replace a regular part of a tensor, as `a[begin:end:stride]` of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from topi.arguments import Places, checked
from topi.extents import as_int, axes_of, opening, product, shown
from topi.injective import injective


@checked
def strided_slice(a: te.Tensor, begin: Places, end: Places, strides: Places = None,
                  axes: Sequence[int] | None = None,                  slice_mode: str = "end") -> te.Tensor:
    """a[begin[0]:end[0]:strides[0], ...] of numpy: negative positions count from the end, those outside are clamped.

    begin, end, strides: ints, integer expressions or None (from the start, to the end, 1), one for each of `axes` (the first
    dimensions if None); what is missing at their end is None. A stride may be a negative int.
    slice_mode "size": `end` holds the extents of the result, -1 for all that remain, and strides are ignored.
    Tensors instead of begin, end or strides are read when the kernel runs; the extents of the result are new variables then.

    Raises ShapeError for positions or strides that do not fit the shape, ArgumentError for an unknown slice_mode.
    """
    where = opening("strided_slice", a)
    if slice_mode not in ("end", "size"):
        raise ArgumentError(f"{where}: there is no slice_mode {slice_mode!r}", hint="choose 'end' or 'size'")
    if any(isinstance(given, te.Tensor) for given in (begin, end, strides)):
        return _dynamic(a, begin, end, strides, axes, slice_mode, where)
    begin, end = _listed(begin), _listed(end)
    count = max(len(begin), len(end))
    along = axes_of(tuple(axes), a.ndim, where, "axes") if axes is not None else tuple(range(count))
    if count > len(along) or len(along) > a.ndim:
        raise ShapeError(f"{where}: {count} positions for {len(along)} axes of the shape {shown(a.shape)}",
                         hint="give at most one begin and one end for each axis")
    steps = _steps(_listed(strides) if slice_mode == "end" else [], len(along), where)
    starts, shape = list[Any]([0] * a.ndim), list(a.shape)
    for d, low, high, step in zip(along, _filled(begin, len(along)), _filled(end, len(along)), steps):
        if slice_mode == "size":
            high = _end_of_size(a, d, low, high, where)
        starts[d], shape[d] = _section(a.shape[d], low, high, step)
    by = dict(zip(along, steps))

    def place(d: int, index: Any) -> Any:
        moved = index * by[d] if by.get(d, 1) != 1 else index
        return moved + starts[d] if as_int(starts[d]) != 0 else moved

    return injective("strided_slice", shape, lambda *i: a(*[place(d, i[d]) for d in range(a.ndim)]))


@checked
def strided_set(a: te.Tensor, v: te.Tensor, begin: Places, end: Places, strides: Places = None) -> te.Tensor:
    """`a` with a[begin[0]:end[0]:strides[0], ...] replaced by `v`, as that assignment of numpy does.

    begin, end, strides: vectors (n,) of int32, or lists of ints and expressions, one for each leading dimension of `a`; what
    is missing is the whole dimension. Negative positions count from the end. `v` has the extents of the part.
    """
    where = opening("strided_set", a)
    opening(f"{where}, v", v)
    if v.dtype != a.dtype or v.ndim != a.ndim:
        raise DTypeError(f"{where}: the values {v.name} are {v.dtype} of {v.ndim} dimensions, the tensor is {a.dtype} of "
                         f"{a.ndim}", hint="convert and reshape the values: topi.cast, topi.reshape")
    lows, highs, given = (_read(x, name, where) for x, name in ((begin, "begin"), (end, "end"), (strides, "strides")))
    steps = [1 if step is None else step for step in _filled(given, a.ndim)]
    bounds = [_between(a.shape[d], low, high, step)
              for d, (low, high, step) in enumerate(zip(_filled(lows, a.ndim), _filled(highs, a.ndim), steps))]

    def formula(*i: Any) -> Any:
        inside, at = [], []
        for d, (low, high) in enumerate(bounds):
            step = steps[d]
            ahead = _choose(step, i[d] - low, low - i[d])
            inside += [ahead >= 0, _choose(step, i[d] < high, i[d] > high)]
            if as_int(step) not in (1, -1):
                inside.append(te.floormod(ahead, te.abs(te.const(step) if isinstance(step, int) else step)) == 0)
            at.append(ahead if as_int(step) in (1, -1) else te.floordiv(i[d] - low, step))
        return te.if_then_else(te.all(*inside), v(*at), a(*i)) if inside else v(*at)

    return injective("strided_set", a.shape, formula, name="strided_set", tag="injective,strided_set")


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, (tuple, list)) or hasattr(given, "__iter__") else [given]


def _filled(given: Sequence[Any], count: int) -> list[Any]:
    return [*given, *[None] * (count - len(given))]


def _steps(strides: list[Any], count: int, where: str) -> list[int]:
    steps = [1 if step is None else as_int(step) for step in _filled(strides, count)]
    if any(step is None or step == 0 for step in steps):
        raise ShapeError(f"{where}: strides are {strides}", hint="a stride is an int other than 0; the length of the result "
                         "depends on its sign")
    return [step for step in steps if step is not None]


def _end_of_size(a: te.Tensor, d: int, low: Any, size: Any, where: str) -> Any:
    """The end of a slice that is given by its size."""
    extent, start, count = as_int(a.shape[d]), as_int(low), as_int(size)
    if count == -1 or size is None:
        return None
    first = 0 if low is None else start + extent if start is not None and extent is not None and start < 0 else low
    end = first + size
    if extent is not None and (as_int(end) or 0) > extent:
        raise ShapeError(f"{where}: {size!r} elements from {low!r} on, and dimension {d} of {shown(a.shape)} has {extent}")
    return end


def _section(extent: Any, low: Any, high: Any, step: int) -> tuple[Any, Any]:
    """The first position and the number of elements of `low:high:step` in a dimension of `extent`."""
    start, stop, whole = as_int(low), as_int(high), as_int(extent)  # None is that of both
    if whole is not None and all(given is None or value is not None for given, value in ((low, start), (high, stop))):
        inside = range(*slice(start, stop, step).indices(whole))
        return inside.start, len(inside)
    first, last = _between(extent, low, high, step)
    span = last - first if step > 0 else first - last
    count = span if abs(step) == 1 else (span + (abs(step) - 1)) // abs(step)
    whole_dimension = high is None and (low is None or (as_int(low) == 0 and step > 0))
    return first, count if whole_dimension else te.max(count, 0)


def _between(extent: Any, low: Any, high: Any, step: Any) -> tuple[Any, Any]:
    """The first position and the one after the last, clamped as numpy does; step may be an expression."""
    def clamped(given: Any, forward: Any, backward: Any) -> Any:
        if given is None:
            return _choose(step, forward, backward)
        value = as_int(given)
        if value == 0:
            return _choose(step, 0, te.min(extent - 1, 0))
        moved = given + extent if value is not None and value < 0 else \
            given if value is not None else te.select(given < 0, given + extent, given)
        return te.min(te.max(moved, _choose(step, 0, -1)), _choose(step, extent, extent - 1))

    return clamped(low, 0, extent - 1), clamped(high, extent, -1)


def _choose(step: Any, forward: Any, backward: Any) -> Any:
    """`forward` if the stride is positive, `backward` if it is negative."""
    value = as_int(step)
    return te.select(step > 0, forward, backward) if value is None else forward if value > 0 else backward


def _read(given: Any, name: str, where: str) -> list[Any]:
    """The elements of a list, or those of a vector as expressions that read it."""
    if not isinstance(given, te.Tensor):
        return _listed(given)
    if given.ndim != 1 or as_int(given.shape[0]) is None:
        raise ShapeError(f"{where}: {name} {given.name} has the shape {shown(given.shape)}, not that of a vector",
                         hint="give one position for each dimension")
    if not given.dtype.is_int:
        raise DTypeError(f"{where}: {name} {given.name} holds {given.dtype}, not int32", hint="topi.cast(it, 'int32')")
    return [given(d) for d in range(as_int(product(given.shape)) or 0)]


def _dynamic(a: te.Tensor, begin: Any, end: Any, strides: Any, axes: Any, slice_mode: str, where: str) -> te.Tensor:
    """A slice whose positions the kernel reads. Its extents are variables, determined by the array passed for the result."""
    if axes is not None or slice_mode != "end":
        raise ArgumentError(f"{where}: axes and slice_mode go with constant positions only",
                            hint="give one position for each dimension")
    lows, highs, steps = (_read(x, name, where) for x, name in ((begin, "begin"), (end, "end"), (strides, "strides")))
    if max(len(lows), len(highs), len(steps)) > a.ndim:
        raise ShapeError(f"{where}: more positions than dimensions; the shape is {shown(a.shape)}")
    by = [1 if step is None else step for step in _filled(steps, a.ndim)]
    bounds = [_between(a.shape[d], low, high, step)
              for d, (low, high, step) in enumerate(zip(_filled(lows, a.ndim), _filled(highs, a.ndim), by))]
    shape = [te.size_var(f"dim{d}") for d in range(a.ndim)]
    return injective("strided_slice", shape, lambda *i: a(*[bounds[d][0] + i[d] * by[d] for d in range(a.ndim)]),
                     name="T_strided_slice_dynamic")


@checked
def sliding_window(data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> te.Tensor:
    """The windows that slide over the dimensions from `axis` on: (the dimensions before, how many windows there are along each,
    window_shape). window_shape, strides: an int for each of these dimensions.
    """
    where = opening("sliding_window", data)
    (first,) = axes_of(axis, data.ndim, where, "axis")
    sizes, steps = ([as_int(number) or 0 for number in given] for given in (window_shape, strides))
    if not len(sizes) == len(steps) == data.ndim - first or min(*sizes, *steps) < 1:
        raise ShapeError(f"{where}: window_shape {shown(window_shape)} and strides {shown(strides)} for the "
                         f"{data.ndim - first} dimensions from {first} on of {shown(data.shape)}",
                         hint="an int from 1 on for each of them")
    counts = [(extent - size) // step + 1 for extent, size, step in zip(data.shape[first:], sizes, steps)]
    if any((as_int(count) or 1) < 1 for count in counts):
        raise ShapeError(f"{where}: a window of {shown(window_shape)} is larger than the data, {shown(data.shape)}",
                         hint="make the window smaller, or pad the data")

    def element(*i: Any) -> Any:
        outer, inner = i[first:data.ndim], i[data.ndim:]
        return data(*i[:first], *[w * step + k for w, step, k in zip(outer, steps, inner)])

    return injective("sliding_window", (*data.shape[:first], *counts, *sizes), element)
