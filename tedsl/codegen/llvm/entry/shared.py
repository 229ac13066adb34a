"""The entry points that kernels of arrays of constant shapes share: the checks of `numpy_arrays.py`, with the numbers of each
kernel read from its table (`runtime/arguments/array_entry.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.numpy_arrays import DECLARATIONS, NumpyEntry
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Var
from tedsl.runtime.arguments.array_entry import (
    BYTES_AT,
    BYTES_OFFSET,
    EXTENT_BYTES,
    EXTENTS_AT,
    NUMBERS_AT,
    SHARED_ENTRY,
    TABLE_OFFSET,
    Form,
)
from tedsl.runtime.layout import Layout
from tedsl.runtime.signature import Signature, TensorParam


def shared_entry_source(form: Form, layout: Layout) -> str:
    """Returns a module in LLVM IR with the entry point for kernels of this form, `tedsl.call_arrays`."""
    return DECLARATIONS + SharedEntry(form, layout).text()


class SharedEntry(NumpyEntry):
    """Emits the entry point of a form. Extents are variables, whose values the table has."""

    attributes = "nounwind"  # compiled once for many kernels: optimized code takes 8 ns less

    def __init__(self, form: Form, layout: Layout) -> None:
        params = [TensorParam(f"a{k}", decl_buffer([Var(f"a{k}.{d}", INT64) for d in range(rank)], "int8"), written)
                  for k, (rank, written) in enumerate(zip(form.ranks, form.written))]
        signature = Signature(SHARED_ENTRY, tuple(params), (), (), form.apart)
        super().__init__(signature, KernelSymbol(SHARED_ENTRY, ()), None, layout, form.releasing)
        self.places = form.places()
        self.table = ""

    def symbol(self) -> str:
        return SHARED_ENTRY

    def prepare(self) -> None:
        self.lines.append(f"  %slots = alloca [{len(self.places)} x ptr], align 8")
        table = self.field("%self", TABLE_OFFSET, "ptr")
        self.table = self.assign(f"getelementptr i8, ptr {table}, i64 {BYTES_OFFSET}")

    def check_number(self, number: str, k: int, param: TensorParam) -> None:
        first, second = (self.assign(f"icmp eq i32 {number}, {self.field(self.table, self.places[k] + at, 'i32')}")
                         for at in NUMBERS_AT)
        self.conditions.append(self.either(first, second))

    def load_shapes(self) -> None:
        super().load_shapes()
        for k, param in self.sig.tensors():
            for d, dim in enumerate(param.shape):
                assert isinstance(dim, Var)
                self.values[dim] = self.field(self.table, self.places[k] + EXTENTS_AT + EXTENT_BYTES * d, "i64")

    def bytes_of(self, k: int, param: TensorParam) -> str:
        return self.field(self.table, self.places[k] + BYTES_AT, "i64")

    def decide_release(self) -> tuple[bool | None, str]:
        return self.release, ""

    def run(self, kernel: KernelSymbol, more: Sequence[str] = ()) -> str:
        for k, _ in self.sig.tensors():
            slot = self.assign(f"getelementptr ptr, ptr %slots, i64 {k}")
            self.lines.append(f"  store ptr {self.data[k]}, ptr {slot}, align 8")
        return f"call i32 {self.field(self.table, 0, 'ptr')}(ptr %slots)"
