"""Running sums and products along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, DTypeError
from topi.extents import as_int, axis_of, constant, opening, product
from topi.kinds import CumulativeOp
from topi.statements import loops, rows_kind
from topi.threads.scan import Scan, scan_rows
from topi.transform.dims import reshape

KNOWN = ("cumsum", "cumprod")  # operators with an adjoint
Binary = Callable[[Any, Any], Any]
LANES = 16  # of a block: the same on every machine, so that sums of floats have the same bits


def cumsum(data: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> te.Tensor:
    """result[i] = data[0] + ... + data[i] along `axis`; of all elements in row-major order, as a vector, where axis is None.

    dtype: of the result, that of `data` if None (int32 for bool; numpy widens int32 to int64 here). exclusive: without data[i]
    itself, so that the first is 0. float16 and bfloat16 are summed in float32. Same as numpy.cumsum, with floats of a long last
    dimension added in blocks of 16.
    """
    return _running("cumsum", data, axis, dtype, exclusive, 0, lambda a, b: a + b)


def cumprod(data: te.Tensor, axis: int | None = None, dtype: Any = None, exclusive: bool | None = None) -> te.Tensor:
    """As `cumsum` with products: result[i] = data[0] * ... * data[i], the first of an exclusive one is 1. As numpy.cumprod."""
    return _running("cumprod", data, axis, dtype, exclusive, 1, lambda a, b: a * b)


def scanop(data: te.Tensor, binop: Binary, identity_value: float, op_name: str, axis: int | None = None, dtype: Any = None,
           exclusive: bool | None = None) -> te.Tensor:
    """As `cumsum` with any associative operation: result[i] = binop(result[i - 1], data[i]).

    binop: a function of two expressions; identity_value: the number that it leaves others unchanged with, the first element of
    an exclusive result. op_name: the name of the stage.
    """
    if not callable(binop):
        raise ArgumentTypeError(f"scanop: binop is {binop!r}", hint="lambda a, b: a + b")
    if not isinstance(op_name, str):
        raise ArgumentTypeError(f"scanop: op_name is {op_name!r} where a string is meant", hint='"maximum"')
    return _running(op_name, data, axis, dtype, exclusive, identity_value, binop)


def _running(operator: str, data: te.Tensor, axis: int | None, dtype: Any, exclusive: bool | None, start: float,
             joined: Binary) -> te.Tensor:
    where = opening(operator, data)
    if axis is None:
        data, axis = reshape(data, (product(data.shape),)), 0
    along = axis_of(axis, data.ndim, where)
    of = te.const(0, dtype or ("int32" if data.dtype == "bool" else data.dtype)).dtype
    if of == "bool":
        raise DTypeError(f"{where}: a result of bool", hint="choose a dtype of numbers")
    extent = as_int(data.shape[along])
    slow = of.is_float or of.bits < 64  # 64-bit integers are added as fast as memory gives them, one after the other
    if along == data.ndim - 1 and slow and (extent is None or extent >= 2 * LANES):
        rows = _row_in_blocks
    else:
        rows = _rows_by_column if (of.is_float and of.bits == 16) or _is_one(data.shape[along + 1:]) else _row_by_row

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with loops(ib, data.shape[:along], rows_kind(data.shape)) as o:
            rows(ib, source, target, o, data.shape, bool(exclusive), constant(start, of, where, "identity_value"), joined)
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target, wide = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), _wide(of)
        scan_rows(Scan(ib, data.shape, along, lambda at: source[at].astype(wide),
                       lambda at, value: target.__setitem__(at, value.astype(of)), joined, te.const(start, wide),
                       bool(exclusive)), threads, shared)
        return ib.get()

    output: te.Tensor = te.extern([data.shape], [data], body, by_threads=by_threads, name=f"{operator}_generic",
                                  dtype=of, tag=f"{operator}_generic",
                                  info=CumulativeOp(operator, data, along, bool(exclusive)) if operator in KNOWN else None)
    return output


def _is_one(shape: Sequence[Any]) -> bool:
    return as_int(product(shape)) == 1


def _wide(of: Any) -> Any:
    """The dtype in which a result of dtype `of` is accumulated."""
    return te.const(0, "float32").dtype if of.is_float and of.bits == 16 else of


def _row_in_blocks(ib: Any, source: Any, target: Any, o: tuple[Any, ...], shape: Sequence[Any], exclusive: bool, start: Any,
                   joined: Binary) -> None:
    """Accumulate within vectors, by joining lanes 1, 2, 4 and 8 apart, and what came before as one number."""
    of, wide = start.dtype, _wide(start.dtype)
    begin = start.astype(wide)
    total = ib.allocate(wide, (1,), name="total", scope="local")
    total[0] = begin
    whole = shape[-1] // LANES
    with ib.for_range(0, whole, name="block") as block:
        at = (*o, tir.Ramp(block * LANES, te.const(1, "int32"), LANES))
        sums = ib.let("sums", source[at].astype(wide))
        distance = 1
        while distance < LANES:
            sums = ib.let("sums", joined(_moved(sums, distance, begin), sums))
            distance *= 2
        before = ib.let("before", total[0])
        sums = ib.let("sums", joined(tir.Broadcast(before, LANES), sums))
        target[at] = (_moved(sums, 1, before) if exclusive else sums).astype(of)
        total[0] = tir.Shuffle((sums,), (te.const(LANES - 1, "int32"),))
    with ib.for_range(whole * LANES, shape[-1], name="k") as k:
        if exclusive:
            target[(*o, k)] = total[0].astype(of)
        total[0] = joined(total[0], source[(*o, k)].astype(wide))
        if not exclusive:
            target[(*o, k)] = total[0].astype(of)


def _moved(vector: Any, distance: int, first: Any) -> Any:
    """The lanes moved up by `distance`, with `first` in the lowest."""
    lanes = [LANES if lane < distance else lane - distance for lane in range(LANES)]
    return tir.Shuffle((vector, tir.Broadcast(first, LANES)), tuple([te.const(lane, "int32") for lane in lanes]))


def _rows_by_column(ib: Any, source: Any, target: Any, o: tuple[Any, ...], shape: Sequence[Any], exclusive: bool, start: Any,
                    joined: Binary) -> None:
    """Accumulate along each column in a register: for contiguous elements, or a dtype too narrow to store partial sums in."""
    of = start.dtype
    wide = _wide(of)
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
