"""Writes a module of LLVM IR from functions of the loop IR."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tedsl.codegen.calls.callees import BODY, ModuleCalls, calls_python, plain_name
from tedsl.codegen.kernels import abi
from tedsl.codegen.kernels.stack import arrays_on_stack
from tedsl.codegen.kernels.work import rare_loops
from tedsl.codegen.llvm import deep, expr, frame, loads_stores, stmt, streaming
from tedsl.codegen.llvm.debug.lines import PrintedLoops
from tedsl.codegen.llvm.debug.table import LineTable
from tedsl.codegen.llvm.effort import needs_vectorizer, strides_of
from tedsl.codegen.llvm.emitter import Emitter, FunctionFacts, ModuleText, Tables
from tedsl.codegen.llvm.indices import division, rules
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.outlined.parts import loops_of_long
from tedsl.codegen.llvm.outside import callbacks
from tedsl.codegen.llvm.types import global_name
from tedsl.codegen.llvm.values import call, vector
from tedsl.codegen.llvm.values.convert import emit_cast
from tedsl.ir import expr as ir
from tedsl.ir.calls.returns import result_of
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind, SeqStmt, Stmt, Store
from tedsl.target import Target

_DATA: dict[type, Callable[[Any, Any], str]] = {
    ir.Var: expr.emit_var, ir.SizeVar: expr.emit_var, ir.IntImm: expr.emit_int, ir.FloatImm: expr.emit_float,
    ir.StringImm: expr.emit_string, ir.Add: expr.emit_arithmetic, ir.Sub: expr.emit_arithmetic, ir.Mul: expr.emit_arithmetic,
    ir.Div: expr.emit_division, ir.Mod: expr.emit_division, ir.FloorDiv: expr.emit_division, ir.FloorMod: expr.emit_division,
    ir.Min: expr.emit_extremum, ir.Max: expr.emit_extremum, **dict.fromkeys(expr.COMPARISONS, expr.emit_compare),
    ir.And: expr.emit_logical, ir.Or: expr.emit_logical, ir.Not: expr.emit_not, ir.Select: expr.emit_select,
    ir.Let: expr.emit_let, ir.Cast: emit_cast, ir.Call: call.emit_call, ir.Ramp: vector.emit_ramp,
    ir.Broadcast: vector.emit_broadcast, ir.Shuffle: vector.emit_shuffle, ir.Load: loads_stores.emit_load,
}
_INDEX: dict[type, Callable[[Any, Any], ix.AnyIndex]] = {
    ir.IntImm: rules.index_int, ir.Var: rules.index_var, ir.SizeVar: rules.index_var, ir.Add: rules.index_add,
    ir.Sub: rules.index_add, ir.Mul: rules.index_mul, ir.FloorDiv: division.index_division,
    ir.FloorMod: division.index_division, ir.Div: division.index_division, ir.Mod: division.index_division,
    ir.Min: rules.index_extremum, ir.Max: rules.index_extremum, ir.Cast: rules.index_cast, ir.Let: rules.index_let,
    ir.Ramp: rules.index_ramp, ir.Broadcast: rules.index_broadcast, ir.Select: rules.index_choice,
    ir.Call: rules.index_call,
}
TABLES = Tables(_DATA, _INDEX, rules.index_leaf, {**stmt.STATEMENTS, Store: loads_stores.emit_store}, deep.emit_deep)


NO_CALLS = ModuleCalls()


def emit_module(funcs: Sequence[PrimFunc], target: Target, imports: Mapping[str, Any] | None = None,
                calls: ModuleCalls = NO_CALLS,
                lines: tuple[PrintedLoops, Path] | None = None) -> str:
    """Returns the LLVM IR of the kernels of `funcs` (flat form, lowered for `target`) with the helper functions that they need.

    imports: the functions that pragmas import, with their types if they are known. calls: those among `funcs`. lines: the
    printed loops and their file, for a line table.
    """
    module = ModuleText(target, TABLES, imports=imports or {}, callees=calls.callees)
    if target.architecture == "x86-64":
        module.attributes = f'nounwind "prefer-vector-width"="{target.vector_bits}"'
    elif target.has_sve_width:
        module.attributes = f"nounwind vscale_range({target.vector_bits // 128},{target.vector_bits // 128})"
    if lines is not None:
        module.line_table = LineTable(*lines, module.add_metadata)
    names = {func.name for func in funcs}
    kernels = [_emit_kernel(func, module, calls, func.name + abi.COMPACT in names) for func in funcs]
    parts = [f'target triple = "{target.triple}"', *module.declarations.values(), *module.definitions.values(),
             *module.functions, *kernels, *(f"!{k} = {text}" for k, text in enumerate(module.metadata))]
    if module.line_table is not None:
        parts.append(module.line_table.named_metadata())
    return "\n\n".join(parts) + "\n"


def _emit_kernel(func: PrimFunc, module: ModuleText, calls: ModuleCalls, strided: bool) -> str:
    """Returns a kernel. strided: another is for compact arrays."""
    name, symbol = plain_name(func), abi.kernel_name(func)
    status = functools.partial(calls.messages.status, name) if name in calls.connected else abi.own_status(func)
    takes_frame = name in calls.callees and calls.callees[name].takes_frame
    facts = FunctionFacts(symbol + BODY if takes_frame else symbol, arrays_on_stack(func.body),
                          bool(func.attrs.get("tir.noalias")), status, owner=name, result=result_of(func),
                          takes_frame=takes_frame, loops=loops_of_long(func.body) if needs_vectorizer(func) else {},
                          rare=rare_loops(func.body), strides=strides_of(func) if strided else frozenset())
    out = Emitter(module, facts)
    parameters = frame.bind_arguments(func, out)
    if takes_frame:
        module.functions.append(callbacks.with_own_frame(out, symbol, parameters))
        out.scope.data[frame.ERROR] = text = "%" + out.fresh("error")
        parameters.append(f"ptr {text}")
    elif name in calls.python or calls_python(func.body, calls.callees.keys() - {name}):
        callbacks.prepare_errors(out)
    out.streams = streaming.large_outputs(func, out)
    out.statement(func.body)
    frame.emit_return(out, None)
    text = out.text(f"define i32 {global_name(out.function.name)}({', '.join(parameters)}) {out.attributes}")
    return _unoptimized(text) if _only_launches(func.body) and " phi " not in text else text


def _only_launches(body: Stmt) -> bool:
    """Tells whether `body` does nothing but allocate memory and run parallel loops, whose bodies are functions of their own."""
    stack = [body]
    while stack:
        match stack.pop():
            case SeqStmt(seq=parts):
                stack += parts
            case Allocate(body=inside) | AttrStmt(body=inside):
                stack.append(inside)
            case For(kind=ForKind.PARALLEL):
                continue
            case _:
                return False
    return True


def _unoptimized(text: str) -> str:
    """Returns a function that LLVM goes through quickly, since its instructions run once a call."""
    header, body = text.split("\n", 1)
    return " noinline optnone nounwind".join(header.rsplit(" nounwind", 1)) + "\n" + body
