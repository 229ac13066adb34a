"""Running sums and products along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import DTypeError
from topi.extents import as_int, axis_of, opening, product
from topi.kinds import CumulativeOp
from topi.statements import loops, rows_kind
from topi.transform.dims import reshape

Binary = Callable[[Any, Any], Any]


def cumsum(data: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> te.Tensor:
    """result[i] = data[0] + ... + data[i] along `axis`; of all elements in row-major order, as a vector, where axis is None.

    dtype: of the result, that of `data` if None (int32 for bool; numpy widens int32 to int64 here). exclusive: without data[i]
    itself, so that the first is 0. float16 and bfloat16 are summed in float32. Same as numpy.cumsum.
    """
    return _running("cumsum", data, axis, dtype, exclusive, 0, lambda a, b: a + b)


def cumprod(data: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> te.Tensor:
    """As `cumsum` with products: result[i] = data[0] * ... * data[i], the first of an exclusive one is 1. As numpy.cumprod."""
    return _running("cumprod", data, axis, dtype, exclusive, 1, lambda a, b: a * b)


def _running(operator: str, data: te.Tensor, axis: int | None, dtype: Any, exclusive: bool | None, start: int,
             joined: Binary) -> te.Tensor:
    where = opening(operator, data)
    if axis is None:
        data, axis = reshape(data, (product(data.shape),)), 0
    along = axis_of(axis, data.ndim, where)
    of = te.const(0, dtype or ("int32" if data.dtype == "bool" else data.dtype)).dtype
    if of == "bool":
        raise DTypeError(f"{where}: a result of bool", hint="choose a dtype of numbers")
    rows = _rows_by_column if (of.is_float and of.bits == 16) or _is_one(data.shape[along + 1:]) else _row_by_row

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with loops(ib, data.shape[:along], rows_kind(data.shape)) as o:
            rows(ib, source, target, o, data.shape, bool(exclusive), te.const(start, of), joined)
        return ib.get()

    output: te.Tensor = te.extern([data.shape], [data], body, name=f"{operator}_generic", dtype=of, tag=f"{operator}_generic",
                                  info=CumulativeOp(operator, data, along))
    return output


def _is_one(shape: Sequence[Any]) -> bool:
    return as_int(product(shape)) == 1


def _rows_by_column(ib: Any, source: Any, target: Any, o: tuple[Any, ...], shape: Sequence[Any], exclusive: bool, start: Any,
                    joined: Binary) -> None:
    """Accumulate along each column in a register: for contiguous elements, or a dtype too narrow to store partial sums in."""
    of = start.dtype
    wide = "float32" if of.is_float and of.bits == 16 else of
    with loops(ib, shape[len(o) + 1:], name="j") as j:
        total = ib.allocate(wide, (1,), name="total", scope="local")
        total[0] = start.astype(wide)
        with ib.for_range(0, shape[len(o)], name="k") as k:
            at = (*o, k, *j)
            if exclusive:
                target[at] = total[0].astype(of)
            total[0] = joined(total[0], source[at].astype(wide))
            if not exclusive:
                target[at] = total[0].astype(of)


def _row_by_row(ib: Any, source: Any, target: Any, o: tuple[Any, ...], shape: Sequence[Any], exclusive: bool, start: Any,
                joined: Binary) -> None:
    """Compute each row from the row before it, so that the inner loops are contiguous."""
    of = start.dtype
    with ib.for_range(0, shape[len(o)], name="k") as k:
        with ib.if_scope(k == 0), loops(ib, shape[len(o) + 1:], name="j") as j:
            target[(*o, k, *j)] = start if exclusive else source[(*o, k, *j)].astype(of)
        with ib.if_scope(k > 0), loops(ib, shape[len(o) + 1:], name="j") as j:
            added = source[(*o, k - 1 if exclusive else k, *j)].astype(of)
            target[(*o, k, *j)] = joined(target[(*o, k - 1, *j)], added)
