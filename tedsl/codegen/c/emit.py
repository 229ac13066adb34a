"""Writes a module of C from functions of the loop IR."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tedsl.codegen.c.dialect import Dialect
from tedsl.codegen.c.emitter import BufferInfo, Emission, Emitter, FunctionFacts, Tables
from tedsl.codegen.c.statements import stmt
from tedsl.codegen.c.statements.frame import emit_return
from tedsl.codegen.c.text.function import finished
from tedsl.codegen.c.text.module_text import ModuleText, assembled
from tedsl.codegen.c.text.names import RESERVED, Names
from tedsl.codegen.c.text.piece import EQUALITY, INT64_MAX, INT64_MIN, Piece
from tedsl.codegen.c.values import calls, expr, lanes, memory
from tedsl.codegen.c.values.convert import emit_cast
from tedsl.codegen.c.values.index import INDEX, index_leaf
from tedsl.codegen.kernels import abi
from tedsl.codegen.kernels.stack import arrays_on_stack
from tedsl.ir import expr as ir
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.raw_form import ARRAY, RESULT, RawParameter, raw_parameters
from tedsl.runtime.signature import Signature
from tedsl.version import VERSION

_DATA: dict[type, Callable[[Any, Any], Emission]] = {
    ir.Var: expr.emit_var, ir.SizeVar: expr.emit_var, ir.IntImm: expr.emit_int, ir.FloatImm: expr.emit_float,
    ir.StringImm: expr.emit_string, ir.Add: expr.emit_arithmetic, ir.Sub: expr.emit_arithmetic, ir.Mul: expr.emit_arithmetic,
    ir.Div: expr.emit_division, ir.Mod: expr.emit_division, ir.FloorDiv: expr.emit_division, ir.FloorMod: expr.emit_division,
    ir.Min: expr.emit_extremum, ir.Max: expr.emit_extremum, **dict.fromkeys(expr.COMPARISONS, expr.emit_compare),
    ir.And: expr.emit_logical, ir.Or: expr.emit_logical, ir.Not: expr.emit_not, ir.Select: expr.emit_select,
    ir.Let: expr.emit_let, ir.Cast: emit_cast, ir.Call: calls.emit_call, ir.Ramp: expr.emit_ramp,
    ir.Broadcast: expr.emit_broadcast, ir.Shuffle: lanes.emit_shuffle, ir.Load: memory.emit_load,
}
TABLES = Tables(_DATA, INDEX, index_leaf, stmt.STATEMENTS)
WIDTH = 120  # columns of a header of a function that stands in one line


@dataclass(frozen=True)
class CFunction:
    """A version of a kernel to be written, under its name in C, with the parameters of its raw form.
    statuses: the status of each message of its assertions.
    """

    name: str
    func: PrimFunc
    signature: Signature
    parameters: tuple[RawParameter, ...]
    statuses: Mapping[str, int]

    def failures(self) -> Iterator[str]:
        """Iterates over the statuses of failed assertions with their messages, as a comment may hold them."""
        for message, status in self.statuses.items():
            yield f"{status}: {message}".replace("*/", "* /").replace("\n", " ")


def c_function(name: str, func: PrimFunc, signature: Signature, statuses: Mapping[str, int]) -> CFunction:
    """Returns `func` as a function of C, with the parameters in the order of `signature`, named as C takes them."""
    pointers = len(list(signature.tensors()))
    names = Names(RESERVED)
    data = [buffer.data for buffer in func.buffers]
    parameters = [replace(p, name=names.fresh(p.name), var=data[k] if p.kind == ARRAY else p.var)
                  for k, p in enumerate(raw_parameters(signature, abi.kernel_arguments(func)[pointers:]))]
    return CFunction(name, func, signature, tuple(parameters), statuses)


def emit_module(functions: Sequence[CFunction], dialect: Dialect, called: Collection[str] = ()) -> str:
    """Returns the file with the kernels `functions` (flat form, lowered for the target) and what they need.
    called: the names of those that others of the module call.
    """
    module = ModuleText(dialect, callees={f.name: f.signature for f in functions if f.name in called})
    for function in functions:
        if function.name in called:
            module.prototypes[function.name] = prototype(function) + ";"
        for node in post_order(function.func.body):
            if isinstance(node, AttrStmt) and node.attr_key == "pragma_import_c" and isinstance(node.value, ir.StringImm):
                module.imported.setdefault(node.value.value.strip() + "\n")
    for function in functions:
        _emit_kernel(function, module)
    return assembled(module, f"Written by tedsl {VERSION}.")


def prototype(function: CFunction, restrict: str = "") -> str:
    """Returns the header of a kernel. restrict: what pointers that do not overlap are marked with."""
    declared = [f"{p.type}{restrict} {p.name}" if p.kind == ARRAY and restrict else p.declaration for p in function.parameters]
    start = f"int32_t {function.name}("
    one_line = f"{start}{', '.join(declared) or 'void'})"
    return one_line if len(one_line) <= WIDTH else start + (",\n" + " " * len(start)).join(declared) + ")"


def _emit_kernel(function: CFunction, module: ModuleText) -> None:
    func = function.func
    noalias = bool(func.attrs.get("tir.noalias"))
    result = next((p.name for p in function.parameters if p.kind == RESULT), "")
    facts = FunctionFacts(function.name, arrays_on_stack(func.body), noalias, function.statuses.__getitem__, result=result)
    names = Names(frozenset(p.name for p in function.parameters) | {function.name} | module.prototypes.keys())
    out = Emitter(module, TABLES, facts, names)
    _bind_arguments(function, out)
    out.statement(func.body)
    if not out.blocks[0].lines or not out.blocks[0].lines[-1].startswith("return"):
        emit_return(out, None)
    comment = [f"/* Returns {failure} */" for failure in function.failures()]
    header = prototype(function, module.dialect.restrict if noalias else "")
    lines = [*comment, *finished(out, header, [p.name for p in function.parameters])]
    module.functions[function.name] = "\n".join(lines) + "\n"


def _bind_arguments(function: CFunction, out: Emitter) -> None:
    """Tells `out` what the kernel's parameters are."""
    sizes = {dim for b in function.func.buffers for dim in b.shape}
    for p in function.parameters:
        d = p.var.dtype
        if p.kind == RESULT:
            continue
        if p.kind == ARRAY:
            out.buffers[p.var] = BufferInfo(p.name, p.dtype, const=not p.written)
        elif d.is_bool:
            out.data[p.var] = Piece(f"{p.name} != 0", EQUALITY, 1)
        elif d.is_float or d.is_handle or (d.is_uint and d.bits == 64):
            out.data[p.var] = Piece(p.name)
        else:
            assert d.min_value is not None and d.max_value is not None
            low = 0 if p.var in sizes or isinstance(p.var, ir.SizeVar) else max(d.min_value, INT64_MIN)
            out.index[p.var] = Piece(p.name, low=low, high=min(d.max_value, INT64_MAX))
