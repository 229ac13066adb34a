"""The intrinsics that drawn schedules use: copies and sums of a constant number of elements."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.builder import IRBuilder


def _strided(*tensors: Any) -> dict[Any, Any]:
    """Buffers with symbolic strides, for regions whose elements need not be contiguous."""
    return {t: decl_buffer(t.shape, t.dtype, t.name, strides=[te.var(f"{t.name}_stride")], offset_factor=1) for t in tensors}


def copy_of(count: int, dtype: str) -> Any:
    """The intrinsic b[i] = a[i] of `count` elements."""
    a = te.placeholder((count,), dtype, name="a")
    b = te.compute((count,), lambda i: a[i], name="b")

    def body(ins: Any, outs: Any) -> Any:
        ib = IRBuilder()
        with ib.for_range(0, count, name="i") as i:
            ib.emit(outs[0].vstore([i], ins[0].vload([i])))
        return ib.get()

    return te.decl_tensor_intrin(b.op, body, name="copy", binds=_strided(a, b))


def sum_of(count: int, dtype: str) -> Any:
    """The intrinsic b[0] = a[0] + a[1] + ... over `count` elements."""
    a = te.placeholder((count,), dtype, name="a")
    k = te.reduce_axis((0, count), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="b")

    def part(ins: Any, outs: Any, begin: bool, add: bool) -> Any:
        ib = IRBuilder()
        if begin:
            ib.emit(outs[0].vstore([0], te.const(0, dtype)))
        if add:
            with ib.for_range(0, count, name="i") as i:
                ib.emit(outs[0].vstore([0], outs[0].vload([0]) + ins[0].vload([i])))
        return ib.get()

    def body(ins: Any, outs: Any) -> Any:
        return part(ins, outs, True, True), part(ins, outs, True, False), part(ins, outs, False, True)

    return te.decl_tensor_intrin(b.op, body, name="sum", binds=_strided(a, b))
