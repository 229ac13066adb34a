"""The calls on fragments, and products by tiles, in the interpreter's source: calls of `matrices.py`."""

from __future__ import annotations

from tedsl.ir.calls.fragments import moved, products
from tedsl.ir.calls.tile_products import tile_product
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.interpreter.source import Emission, SourceWriter
from tedsl.ir.ops import FILL_FRAGMENT, LOAD_MATRIX, MMA


def fragment_call(c: SourceWriter, e: Call) -> Emission:
    """Emits a call on fragments."""
    if e.op is MMA:
        parts, dtypes = [], []
        for factor, number in products(e):
            parts.append((yield from _fragment(c, factor, number)))
            dtypes.append(c.fragment(factor).dtype)
        c.line(f"multiply_matrices({', '.join(parts)}, {c.constant((dtypes[1], dtypes[0]))})")
        return "0"
    var = e.args[0]
    assert isinstance(var, Var)
    which = yield e.args[4], True
    fact = c.fragment(var)
    where = f"{_memory(c, var)}, {which}, ({fact.rows}, {fact.columns})"
    if e.op is FILL_FRAGMENT:
        value = yield e.args[5], False
        c.line(f"fill_fragment({c.constant(var.name)}, {where}, {value}, {c.constant(fact.dtype)})")
        return "0"
    there = moved(e)
    offset = yield there.offset, True
    stride = yield there.stride, True
    array, _ = c.typed(c.memory(there.memory), fact.dtype)
    name = "load_matrix" if e.op is LOAD_MATRIX else "store_matrix"
    c.line(f"{name}({c.constant((var.name, there.memory.name))}, {where}, {array}, {offset}, {stride}, "
           f"{there.order == 'col_major'})")
    return "0"


def tile_product_call(c: SourceWriter, e: Call) -> Emission:
    """Emits a product by tiles."""
    asked = tile_product(e)
    arrays, names = [], []
    for load in asked.places:
        at = yield load.index, True
        array, _ = c.typed(c.memory(load.buffer_var), load.dtype)
        arrays.append(f"{array}, {at}")
        names.append(load.buffer_var.name)
    numbers = []
    for number in e.args[len(asked.places):]:
        numbers.append((yield number, True))
    kinds = c.constant(tuple(load.dtype for load in asked.places))
    c.line(f"multiply_tiles({c.constant(tuple(names))}, {kinds}, {', '.join(arrays)}, {', '.join(numbers)})")
    return "0"


def _memory(c: SourceWriter, var: Var) -> str:
    return c.typed(c.memory(var), c.fragment(var).dtype)[0]


def _fragment(c: SourceWriter, var: Var, which: Expr) -> Emission:
    """Emits the array of one fragment."""
    at = yield which, True
    fact = c.fragment(var)
    return c.temp(f"fragment({c.constant(var.name)}, {_memory(c, var)}, {at}, ({fact.rows}, {fact.columns}))")
