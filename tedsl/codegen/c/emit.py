"""Writes a module of C from functions of the loop IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.codegen.c.dialect import Dialect
from tedsl.codegen.c.emitter import Emission, Tables
from tedsl.codegen.c.kernel import CFunction, emit_kernel, prototype
from tedsl.codegen.c.statements import stmt
from tedsl.codegen.c.text.module_text import ModuleText, OwnFunction, assembled
from tedsl.codegen.c.values import calls, expr, lanes, memory
from tedsl.codegen.c.values.convert import emit_cast
from tedsl.codegen.c.values.index import INDEX, index_leaf
from tedsl.ir import expr as ir
from tedsl.ir.stmt import AttrStmt
from tedsl.ir.walk.visitor import post_order
from tedsl.version import VERSION

_DATA: dict[type, Callable[[Any, Any], Emission]] = {
    ir.Var: expr.emit_var, ir.SizeVar: expr.emit_var, ir.IntImm: expr.emit_int, ir.FloatImm: expr.emit_float,
    ir.StringImm: expr.emit_string, ir.Add: expr.emit_arithmetic, ir.Sub: expr.emit_arithmetic, ir.Mul: expr.emit_arithmetic,
    ir.Div: expr.emit_division, ir.Mod: expr.emit_division, ir.FloorDiv: expr.emit_division, ir.FloorMod: expr.emit_division,
    ir.Min: expr.emit_extremum, ir.Max: expr.emit_extremum, **dict.fromkeys(expr.COMPARISONS, expr.emit_compare),
    ir.And: expr.emit_logical, ir.Or: expr.emit_logical, ir.Not: expr.emit_not, ir.Select: expr.emit_select,
    ir.Let: lanes.emit_let, ir.Cast: emit_cast, ir.Call: calls.emit_call, ir.Ramp: expr.emit_ramp,
    ir.Broadcast: expr.emit_broadcast, ir.Shuffle: lanes.emit_shuffle, ir.Load: memory.emit_load,
}
TABLES = Tables(_DATA, INDEX, index_leaf, stmt.STATEMENTS)
NO_CALLS: Mapping[str, OwnFunction] = {}


def emit_module(functions: Sequence[CFunction], dialect: Dialect, called: Mapping[str, OwnFunction] = NO_CALLS) -> str:
    """Returns the file with the kernels `functions` (flat form, lowered for the target) and what they need.
    called: those that others of the module call, by their names there.
    """
    module = ModuleText(dialect, callees=called)
    names = {own.symbol for own in called.values()}
    for function in functions:
        if function.name in names:
            module.prototypes[function.name] = prototype(function) + ";"
        for node in post_order(function.func.body):
            if isinstance(node, AttrStmt) and node.attr_key == "pragma_import_c" and isinstance(node.value, ir.StringImm):
                module.imported.setdefault(node.value.value.strip() + "\n")
    for function in functions:
        emit_kernel(function, module, TABLES, owner=function.signature.name)
    return assembled(module, f"Written by tedsl {VERSION}.")
