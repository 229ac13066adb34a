"""Helpers of operators and schedules written for TVM: values of constant expressions, row-major positions, traversal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, entries, type_in_words
from topi import tag


def get_const_int(expr: Any) -> int:
    """The value of a constant expression; ArgumentError where it is known only at the call."""
    value = _number(expr)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentError(f"get_const_int: {expr!r} is not a constant",
                            hint="use te.var dimensions as expressions, as they are")
    return int(value)


def _number(expr: Any) -> Any:
    """The number that an expression comes to, where it comes to one; anything else as it is."""
    simplest = expr if hasattr(expr, "value") else simplify(expr)
    return getattr(simplest, "value", simplest)


def get_const_float(expr: Any) -> float:
    """The value of a constant float expression."""
    value = _number(expr)
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"get_const_float: {expr!r} is not a constant")
    return float(value)


def get_float_tuple(in_tuple: Iterable[Any]) -> tuple[float, ...]:
    """The values of constant expressions as floats."""
    return tuple(get_const_float(e) for e in in_tuple)


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """The values of constant expressions; those known only at the call stay as they are."""
    return tuple(int(value) if isinstance(value := _number(e), Integral) else simplify(e) for e in in_tuple)


def traverse_inline(s: te.Schedule, final_op: te.Operation | te.Tensor, callback: Callable[[te.Operation], Any]) -> None:
    """Inlines injective operations from `final_op` upwards to the first ones that are not; outputs stay.

    final_op: or its tensor. callback: is called for each operation visited, inputs first.
    """
    first = final_op.op if isinstance(final_op, te.Tensor) else final_op
    if not isinstance(first, te.Operation):
        raise ArgumentTypeError(f"traverse_inline starts at an operation, not {type_in_words(final_op)}",
                                hint="traverse_inline(s, C.op, callback)")
    if not callable(callback):
        raise ArgumentTypeError(f"traverse_inline calls a function with each operation, not {type_in_words(callback)}")
    visited: set[te.Operation] = set()

    def visit(op: te.Operation) -> None:
        if op in visited:
            return
        visited.add(op)
        if tag.is_injective(op.tag):
            if op not in s.outputs:
                s[op].compute_inline()
            for tensor in op.input_tensors:
                if isinstance(tensor.op, te.ComputeOp):
                    visit(tensor.op)
        callback(op)

    visit(first)


def simplify(expr: Any) -> Any:
    """The simplest form of an expression; anything else as it is."""
    return tedsl.arith.Analyzer().simplify(expr) if isinstance(expr, tir.PrimExpr) else expr


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether `expr` is known to be the constant `value`."""
    simplified = simplify(expr)
    return bool(getattr(simplified, "value", simplified) == value) if isinstance(simplified, (int, tir.IntImm)) else False


def prod(x: Sequence[Any]) -> Any:
    """The product of numbers and expressions; 1 of none."""
    if not x:
        return tir.const(1, "int32")
    result = x[0]
    for factor in x[1:]:
        result = result * factor
    return result


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The row-major position of `indices` in memory of `shape`."""
    if len(indices) != len(shape) or not indices:
        raise ArgumentError(f"ravel_index: {len(indices)} indices for {len(shape)} dimensions")
    position = indices[0]
    for index, extent in zip(indices[1:], shape[1:]):
        position = position * extent + index
    return position


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of the element at position `idx` in row-major memory of `shape`."""
    if not isinstance(shape, (tuple, list)):
        raise ArgumentTypeError(f"unravel_index: the shape is a list of extents, not {type_in_words(shape)}", hint="(3, 4)")
    indices: list[Any] = []
    for left, extent in zip(range(len(shape) - 1, -1, -1), reversed(shape)):
        if equal_const_int(extent, 1):
            indices.append(0)
        elif left == 0:
            indices.append(idx)
        else:
            indices.append(tir.indexmod(idx, extent))
            idx = tir.indexdiv(idx, extent)
    return indices[::-1]


def const_matrix(matrix: Any, name: str = "const_matrix") -> te.Tensor:
    """A tensor with the elements of a numpy matrix, which become constants of the program where loops are unrolled."""
    matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise ArgumentError(f"const_matrix: the array has two dimensions, not {matrix.ndim}", hint="const_vector takes one")
    rows, columns = matrix.shape
    dtype = str(matrix.dtype)

    def element(i: Any, j: Any) -> Any:
        chosen: Any = tir.const(0, dtype)
        for row in range(rows):
            for column in range(columns):
                here = tir.all(tir.indexmod(i, rows).equal(row), tir.indexmod(j, columns).equal(column))
                chosen = tir.Select(here, tir.const(matrix[row][column].item(), dtype), chosen)
        return chosen

    output: te.Tensor = te.compute(matrix.shape, element, name=name, attrs={"const_matrix": True})
    return output


def const_vector(vector: Any, name: str = "const_vector") -> te.Tensor:
    """A tensor with the elements of a one-dimensional numpy array, which become constants where loops are unrolled."""
    vector = np.asarray(vector)
    if vector.ndim != 1:
        raise ArgumentError(f"const_vector: the array has one dimension, not {vector.ndim}", hint="const_matrix takes two")
    dtype = str(vector.dtype)

    def element(i: Any) -> Any:
        chosen: Any = tir.const(0, dtype)
        for position, value in enumerate(vector):
            chosen = tir.Select(i.equal(position), tir.const(value.item(), dtype), chosen)
        return chosen

    output: te.Tensor = te.compute(vector.shape, element, name=name)
    return output


def get_shape(src_shape: Sequence[Any], src_layout: Any, dst_layout: Any) -> tuple[Any, ...]:
    """The shape in `dst_layout` of what has `src_shape` in `src_layout`; layouts are str or of tir.layout."""
    source, target = (tir.layout(one) if isinstance(one, str) else one for one in (src_layout, dst_layout))
    if source.name == target.name:
        return get_const_tuple(src_shape)
    return get_const_tuple(tir.bijective_layout(source, target).forward_shape(list(src_shape)))


def nchw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of the batch and of the channels, such as NCHW1n16c."""
    layout_info = _letters(layout_info)
    return layout_info[:4] == "NCHW" and "n" in layout_info and "c" in layout_info and layout_info.isalnum()


def nchw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of the channels alone, such as NCHW16c."""
    layout_info = _letters(layout_info)
    return layout_info[:4] == "NCHW" and layout_info[-1] == "c" and layout_info[4:-1].isdigit()


def _letters(layout: Any) -> str:
    letters = getattr(layout, "name", layout)
    if not isinstance(letters, str):
        raise ArgumentTypeError(f"a layout is a string, not {type_in_words(layout)}", hint='for example "NCHW16c"')
    return letters


def within_index(b: Any, e: Any, s: Any, i: Any) -> Any:
    """The condition that position `i` is one of the slice b:e:s; a step below 0 goes down."""
    down = tir.const(0, "bool") if isinstance(s, int) and s >= 0 else s < 0
    outside = tir.Or(tir.Select(down, i <= e, i < b), tir.Select(down, i > b, i >= e))
    step = tir.abs(s) if isinstance(s, tir.PrimExpr) else abs(s)
    rest = te.if_then_else(down, tir.indexmod(b - i, step), tir.indexmod(i - b, step))
    return tir.Select(outside, tir.const(False), rest.equal(0))


def make_idx(b: Any, e: Any, s: Any, z: Any, i: Any) -> Any:
    """The position in the slice b:e:s of an array of extent `z` of its element `i`; where `within_index` is false, 88."""
    down = tir.const(0, "bool") if isinstance(s, int) and s >= 0 else s < 0
    outside = tir.Or(tir.Select(down, i <= e, i < b), tir.Select(down, i > b, i >= e))
    step = tir.abs(s) if isinstance(s, tir.PrimExpr) else abs(s)
    first = tir.Select(b >= z, z - 1, b) if isinstance(b, tir.PrimExpr) or isinstance(z, tir.PrimExpr) else min(b, z - 1)
    return te.if_then_else(outside, 88, te.if_then_else(down, tir.indexdiv(first - i, step), tir.indexdiv(i - first, step)))


def is_empty_shape(shape: Sequence[Any]) -> bool:
    """Whether a dimension is known to be 0."""
    return any(equal_const_int(extent, 0) for extent in shape)


def is_dynamic_shape(shape: Sequence[Any]) -> bool:
    """Whether a dimension is known only at the call."""
    return not all(isinstance(extent, (int, tir.IntImm)) for extent in shape)


def is_target(names: str | Iterable[str]) -> bool:
    """Whether the current target has one of `names` as a key, or as the name of its kind."""
    wanted = {names} if isinstance(names, str) else set(names)
    target = tedsl.target.Target.current(allow_none=True)
    return target is not None and not wanted.isdisjoint((*target.keys, target.kind.name))


def ceil_div(a: Any, b: Any) -> Any:
    """a / b, rounded up."""
    return tir.indexdiv(a + b - 1, b)


def swap(arr: Sequence[Any], axis: int) -> list[Any]:
    """The items of `arr` with those at `axis` and at the end exchanged."""
    items = list(arr)
    items[axis], items[-1] = items[-1], items[axis]
    return items


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of two that divides `n`, an int above 0. max_value: TVM stops at the first power above it."""
    if n < 1:
        raise ArgumentError(f"get_max_power2_factor: n is {n}, and 0 is divided by all of them")
    x = 1
    while n % 2 == 0 and (max_value is None or x <= max_value):
        x, n = x * 2, n // 2
    return x


entries(globals())
