"""Axes and extents of tensors as operators take them: negative axes, constants, equal dimensions, row-major positions."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, type_in_words


def as_int(value: Any) -> int | None:
    """The value of a Python or numpy int or of a constant expression; None where it is symbolic."""
    if isinstance(value, tir.IntImm):
        return int(value.value)
    return None if isinstance(value, tir.Expr) or not hasattr(value, "__index__") else operator.index(value)


def opening(name: str, *tensors: Any) -> str:
    """The beginning of error messages of the operator `name` on `tensors`. Raises ArgumentTypeError if one is not a tensor."""
    for tensor in tensors:
        if not isinstance(tensor, te.Tensor):
            raise ArgumentTypeError(f"{name}: got {_kind(tensor)} where a tensor is meant",
                                    hint="declare te.placeholder(shape, dtype); arrays are passed to the built function")
    *others, last = [tensor.name for tensor in tensors]
    return f"{name} of {', '.join(others)} and {last}" if others else f"{name} of {last}"


def constant(value: Any, dtype: Any, where: str, name: str) -> Any:
    """A number as a constant of `dtype`, or an expression converted to it; DTypeError if the number does not fit."""
    if isinstance(value, tir.Expr):
        return value.astype(dtype)
    try:
        return te.const(value, dtype)
    except (DTypeError, TypeError, ValueError) as error:
        raise DTypeError(f"{where}: {name} is {value!r} for the dtype {dtype}",
                         hint=getattr(error, "problem", str(error))) from error


def _kind(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type_in_words(value) + (f" of shape {tuple(shape)}" if isinstance(shape, tuple) else "")


def axis_of(axis: Any, rank: int, where: str, name: str = "axis") -> int:
    """`axis` counted from 0; ShapeError if a tensor of `rank` dimensions has no such axis."""
    given = as_int(axis)
    if given is None:
        raise ShapeError(f"{where}: {name}={axis!r} is not a constant", hint="write an int")
    if not -rank <= given < rank:
        raise ShapeError(f"{where}: {name} {given} of a tensor of rank {rank}",
                         hint=f"axes are {-rank} to {rank - 1}" if rank else "a scalar has no axes")
    return given % rank


def axes_of(axes: Any, rank: int, where: str, name: str = "axis") -> tuple[int, ...]:
    """The axes in the order given, counted from 0; ShapeError if there is no such axis or one is named twice."""
    given = tuple(axes) if isinstance(axes, Iterable) and not isinstance(axes, (str, tir.Expr)) else (axes,)
    numbers = tuple([axis_of(axis, rank, where, name) for axis in given])
    if len(set(numbers)) != len(numbers):
        raise ShapeError(f"{where}: {name}={given} names a dimension twice")
    return numbers


def differ(one: Any, other: Any) -> bool:
    """Whether two extents are different constants; symbolic extents are assumed to be equal."""
    a, b = as_int(one), as_int(other)
    return a is not None and b is not None and a != b


def shown(shape: Sequence[Any]) -> str:
    """A shape as messages print it."""
    return f"({', '.join(map(repr, shape))}{',' if len(shape) == 1 else ''})"


def product(extents: Sequence[Any]) -> Any:
    """The number of elements of a shape; 1 for none."""
    total: Any = 1
    for extent in extents:
        total = total * extent if as_int(total) != 1 else extent
    return total


def row_major(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The position of the element at `indices` in a compact row-major tensor of `shape`."""
    position: Any = 0
    for index, extent in zip(indices, shape):
        position = index if as_int(position) == 0 else position * extent + index
    return position


def indices_at(position: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of the element at a row-major position: the inverse of `row_major`."""
    indices: list[Any] = []
    for place in reversed(range(len(shape))):
        indices.append(position % shape[place] if place else position)
        position = position // shape[place] if place else position
    return indices[::-1]


def require_integers(tensor: te.Tensor, where: str, name: str = "indices") -> None:
    """Raise DTypeError if the elements of `tensor` are not integers."""
    if not isinstance(tensor, te.Tensor):
        raise ArgumentTypeError(f"{where}: {name} is {_kind(tensor)} where a tensor is meant",
                                hint="declare te.placeholder(shape, 'int32'), and pass arrays when the function is called")
    if not tensor.dtype.is_integer or tensor.dtype == "bool":
        raise DTypeError(f"{where}: {name} {tensor.name} holds {tensor.dtype}, not integers",
                         hint=f"convert it: topi.cast({tensor.name}, 'int32')")


def require_shape(tensor: te.Tensor, wanted: Sequence[Any], where: str, words: str) -> None:
    """Raise ShapeError if `tensor` does not have the extents `wanted`, of which None is any; words: the shape in words."""
    opening(where, tensor)
    if tensor.ndim != len(wanted) or any(e is not None and differ(e, own) for e, own in zip(wanted, tensor.shape)):
        shape = ", ".join("?" if extent is None else repr(extent) for extent in wanted)
        raise ShapeError(f"{where}: {tensor.name} has the shape {shown(tensor.shape)} where ({shape}) is meant", hint=words)


def require_floats(tensor: te.Tensor, where: str) -> None:
    """Raise DTypeError if the elements of `tensor` are not floats."""
    opening(where, tensor)
    if not tensor.dtype.is_float:
        raise DTypeError(f"{where}: {tensor.name} holds {tensor.dtype}, not floats",
                         hint=f"convert it: topi.cast({tensor.name}, 'float32')")


def require_one_dtype(tensors: Sequence[te.Tensor], where: str) -> None:
    """Raise DTypeError if the dtypes of the tensors differ."""
    for tensor in tensors:
        opening(where, tensor)
        if tensor.dtype != tensors[0].dtype:
            raise DTypeError(f"{where}: {tensors[0].name} holds {tensors[0].dtype} and {tensor.name} {tensor.dtype}",
                             hint=f"convert one of them: topi.cast({tensor.name}, {str(tensors[0].dtype)!r})")


def require_room(tensors: Sequence[te.Tensor], out_dtype: Any, where: str) -> None:
    """Raise DTypeError if products of floats would be accumulated in integers, which drops their fractions."""
    floats = [tensor for tensor in tensors if tensor.dtype.is_float]
    if out_dtype is not None and floats and not te.const(0, out_dtype).dtype.is_float:
        raise DTypeError(f"{where}: out_dtype is {out_dtype} and {floats[0].name} holds {floats[0].dtype}",
                         hint=f"add up in floats and convert the result: topi.cast(result, {str(out_dtype)!r})")
