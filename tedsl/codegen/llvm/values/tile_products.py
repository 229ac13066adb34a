"""Emits products of matrices by tile registers: calls of the functions of `tile_kernel.py`."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.values.convert import convert
from tedsl.codegen.llvm.values.tile_kernel import ALLOWED, SYSTEM_CALL, tile_kernel
from tedsl.errors import LoweringError
from tedsl.ir.calls.tile_products import tile_product
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Call, Expr

_ON_MEMORY = ("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", "declare i64 @llvm.umin.i64(i64, i64)")


def emit_tile_product(out: Emitter, e: Call) -> str:
    """Emits `tir.tile_product`. What is known of memory is forgotten."""
    asked = tile_product(e)
    of_c, of_a, of_b = (load.dtype for load in asked.places)
    if not out.target.multiplies_tiles(of_a, of_b):
        raise LoweringError(f"tir.tile_product of {of_a} and {of_b}: target {out.target} has no such instruction",
                            hint="for example llvm -mcpu=sapphirerapids, on Linux")
    name, declarations, text = tile_kernel(str(of_a), str(of_b), len(asked.around))
    if name not in out.module.definitions:
        for needed, declaration in declarations.items():
            out.module.declare(needed, declaration)
        for declaration in _ON_MEMORY:
            out.module.declare(declaration.split("@")[1].split("(")[0], declaration)
        out.module.definitions[name] = text
    addresses = [f"ptr {out.value(arg)}" for arg in e.args[:3]]
    sized = ((asked.rows, 1), (asked.columns, 1), (asked.terms, of_a.bytes), (asked.c_row, of_c.bytes),
             (asked.c_panel, of_c.bytes), (asked.a_row, of_a.bytes),
             (asked.b_group, of_b.bytes), (asked.b_panel, of_b.bytes))
    numbers = [_bytes(out, number, size) for number, size in sized]
    zero = out.assign(f"icmp ne i64 {_bytes(out, asked.from_zero, 1)}, 0")
    around = [_bytes(out, number, size) for loop in asked.around for number, size in zip(loop, (1, of_a.bytes, of_b.bytes))]
    arguments = [*addresses, *(f"i64 {n}" for n in numbers), f"i1 {zero}", *(f"i64 {n}" for n in around)]
    out.line(f"call void @{name}({', '.join(arguments)})")
    out.called()
    return "0"


def emit_tiles_allowed(out: Emitter, e: Call) -> str:
    """Emits `tir.tiles_allowed`."""
    name, text = ALLOWED
    out.module.declare("syscall", SYSTEM_CALL)
    out.module.definitions.setdefault(name, text)
    return out.assign(f"call i1 @{name}()")


def _bytes(out: Emitter, number: Expr, size: int) -> str:
    """Emits a number of elements of `size` bytes as bytes."""
    value = convert(out, out.value(number), number.dtype, INT64)
    return value if size == 1 else out.assign(f"mul i64 {value}, {size}")
