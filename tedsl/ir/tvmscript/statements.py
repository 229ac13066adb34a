"""Statements and functions in TVMScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script.expressions import end_of
from tedsl.ir.script.printer import LINE, Handler, lines, together
from tedsl.ir.stmt import (
    BIND_SCOPE,
    LOGICAL_SHAPE,
    THREADS,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    Tensorized,
    While,
)
from tedsl.ir.text import Part, listed, quoted
from tedsl.ir.tvmscript.expressions import index_parts, literal, region_parts
from tedsl.ir.tvmscript.names import Names
from tedsl.ir.tvmscript.printer import TVMScriptPrinter
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import uses

OURS = (LOGICAL_SHAPE, "allocated_in", "partition_tail")  # annotations that passes leave for one another
KINDS = {ForKind.SERIAL: "serial", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.UNROLLED: "unroll",
         ForKind.THREAD_BINDING: "thread_binding"}


# --- loops and branches ---

def _for(s: For, p: TVMScriptPrinter) -> list[Part]:
    """As since TVM 0.11: loops without annotations are of `range`, those directly in each other of `T.grid`."""
    nest = _grid(s)
    if len(nest) > 1:
        names = ", ".join([p.var(loop.loop_var) for loop in nest])
        return [f"for {names} in ", *p.function("grid", *(loop.extent for loop in nest)), *p.block(nest[-1].body)]
    ends: list[list[Part]] = [] if build.as_int(s.min) == 0 else [[s.min]]
    ends.append([end_of(Range.from_min_extent(s.min, s.extent))])
    if s.kind is ForKind.SERIAL and not _notes(s):
        return [f"for {p.var(s.loop_var)} in range(", *listed([partial(list, end) for end in ends], ""), ")", *p.block(s.body)]
    if s.thread_binding is not None:
        ends.append([f"thread={quoted(s.thread_binding.thread_tag)}"])
    if notes := _notes(s):
        ends.append(["annotations=", *literal(notes, p)])
    return [f"for {p.var(s.loop_var)} in ", *p.function(KINDS[s.kind], *ends), *p.block(s.body)]


def _grid(s: Stmt) -> list[For]:
    """Returns the serial loops from 0 without annotations that stand directly in each other, with bounds of outside."""
    nest: list[For] = []
    variables: set[Var] = set()
    while isinstance(s, For) and s.kind is ForKind.SERIAL and build.as_int(s.min) == 0 and not _notes(s) \
            and not uses(s.extent, variables):
        nest.append(s)
        variables.add(s.loop_var)
        s = s.body
    return nest


def _notes(s: For | Allocate) -> dict[str, Any]:
    return {key: value for key, value in s.annotations.items() if key not in OURS}


def _while(s: While, p: TVMScriptPrinter) -> list[Part]:
    return ["while ", s.condition, *p.block(s.body)]


def _if(s: IfThenElse, p: TVMScriptPrinter) -> list[Part]:
    parts: list[Part] = ["if ", s.condition, *p.block(s.then_case)]
    return parts if s.else_case is None else [*parts, LINE, "else", *p.block(s.else_case)]


def _sequence(s: SeqStmt, p: TVMScriptPrinter) -> list[Part]:
    flat = _flat(s)
    if not flat:
        return p.function("evaluate", "0")
    return lines([[_inside(stmt, p) if stmt is not flat[-1] else stmt] for stmt in flat])


def _flat(s: SeqStmt) -> list[Stmt]:
    """The statements of `s`, without sequences in sequences."""
    flat: list[Stmt] = []
    pending: list[Stmt] = [s]
    while pending:
        stmt = pending.pop()
        while isinstance(stmt, Tensorized):
            stmt = stmt.body
        if isinstance(stmt, SeqStmt):
            pending += reversed(stmt.seq)
        else:
            flat.append(stmt)
    return flat


def _inside(stmt: Stmt, p: TVMScriptPrinter) -> Part:
    """`stmt` before others: a `with` if it would cover them otherwise."""
    covers = COVERING.get(type(stmt))
    return stmt if covers is None else partial(_with, stmt, p)


def _with(stmt: Stmt, p: TVMScriptPrinter) -> list[Part]:
    before, _, manager, body = COVERING[type(stmt)](stmt, p)
    return [*before, "with ", *manager, *p.block(together(body))]


def _rest(stmt: Stmt, p: TVMScriptPrinter) -> list[Part]:
    before, alone, _, body = COVERING[type(stmt)](stmt, p)
    return [*before, *alone, LINE, *body]


# --- what covers the rest of its block: what stands before it; it as a statement; it as a context manager; its body ---

Covering = tuple[list[Part], list[Part], list[Part], list[Part]]


def _allocate(s: Allocate, p: TVMScriptPrinter) -> Covering:
    annotation = s.buffer_var.type_annotation
    scope = (isinstance(annotation, PointerType) and annotation.storage_scope) or "global"
    args: list[list[Part]] = [listed(s.extents), [quoted(str(s.dtype))], [quoted(scope)]]
    if not build.is_true(s.condition):
        args.append([s.condition])
    if notes := _notes(s):
        args.append(["annotations=", *literal(notes, p)])
    allocated, name = p.function("allocate", *args), p.var(s.buffer_var)
    body = [*_accessed(s.buffer_var, _product(s.extents), p), s.body]
    return [], [f"{name} = ", *allocated], [*allocated, f" as {name}"], body


def _let(s: LetStmt, p: TVMScriptPrinter) -> Covering:
    name = p.var(s.var)
    alone: list[Part] = [f"{name}: {p.type_name(s.var.type_annotation)} = ", s.value]
    body = [*_accessed(s.var, build.const(1, "int32"), p), s.body]
    return [], alone, [*p.function("LetStmt", s.value), f" as {name}"], body


def _assert(s: AssertStmt, p: TVMScriptPrinter) -> Covering:
    return [], ["assert ", s.condition, ", ", s.message], p.function("Assert", s.condition, s.message), [s.body]


def _attr(s: AttrStmt, p: TVMScriptPrinter) -> Covering:
    if s.attr_key in THREADS and isinstance(s.node, IterVar):
        launched, name = p.function("launch_thread", quoted(s.node.thread_tag), s.value), p.var(s.node.var)
        return [], [f"{name} = ", *launched], [*launched, f" as {name}"], [s.body]
    before: list[Part] = []
    if s.attr_key == BIND_SCOPE and isinstance(s.node, tuple) and isinstance(s.node[0], Buffer):
        before = [*p.declaration(s.node[0]), LINE]
    attr = p.function("attr", literal(s.node, p), quoted(s.attr_key), s.value)
    return before, attr, attr, [s.body]


def _realize(s: BufferRealize, p: TVMScriptPrinter) -> Covering:
    declared = p.declaration(s.buffer)
    realized = _realized([*p.buffer(s.buffer), *region_parts(s.bounds)], s.buffer.scope(), s.condition, p)
    return [*declared, LINE], realized, realized, [s.body]


def _produced(s: ProducerRealize, p: TVMScriptPrinter) -> Covering:
    region = [p.producer(s.producer), *region_parts(s.bounds)]
    realized = _realized(region, s.storage_scope, s.condition, p)
    return [], realized, realized, [s.body]


def _realized(region: list[Part], scope: str, condition: Expr, p: TVMScriptPrinter) -> list[Part]:
    return p.function("realize", region, quoted(scope), *([] if build.is_true(condition) else [condition]))


COVERING: dict[type, Callable[[Any, Any], Covering]] = {
    Allocate: _allocate, LetStmt: _let, AssertStmt: _assert, AttrStmt: _attr, BufferRealize: _realize,
    ProducerRealize: _produced,
}


# --- memory ---

def _product(extents: Sequence[Expr]) -> Expr:
    return reduce(build.mul, extents, build.const(1, "int32"))


def _accessed(memory: Var, extent: Expr, p: TVMScriptPrinter) -> list[Part]:
    """Lines that declare the buffers of one dimension through which `memory` is accessed."""
    parts: list[Part] = []
    for of in p.accessed.get(memory, ()):
        p.flat[memory, of] = name = p.identifier(memory.name)
        declared = p.function("Buffer", ["(", extent, ",)"], quoted(str(of)), [f"data={p.var(memory)}"])
        parts += [f"{name} = ", *declared, LINE]
    return parts


def _store(s: Store, p: TVMScriptPrinter) -> list[Part]:
    name = p.flat[s.buffer_var, s.value.dtype.element]
    if s.predicate is None or build.is_true(s.predicate):
        return [name, *index_parts((s.index,)), " = ", s.value]
    return [f"{name}.vstore([", s.index, "], ", s.value, ", predicate=", s.predicate, ")"]


def _prefetch(s: Prefetch, p: TVMScriptPrinter) -> list[Part]:
    return p.function("prefetch", *p.buffer(s.buffer), listed(s.bounds))


def _evaluate(s: Evaluate, p: TVMScriptPrinter) -> list[Part]:
    return [s.value] if isinstance(s.value, Call) else p.function("evaluate", s.value)


# --- functions ---

def _prim_func(func: PrimFunc, p: TVMScriptPrinter) -> list[Part]:
    names = Names(func)
    p.accessed = {memory: list(dtypes) for memory, dtypes in names.flat.items()}
    params = ", ".join([f"{p.var(param)}: {_param_type(param, func, p)}" for param in func.params])
    result = "" if func.ret_type is None else f" -> {p.type_name(func.ret_type)}"
    head: list[list[Part]] = [p.function("func_attr", literal(func.attrs, p))] if func.attrs else []
    head += [[f"{p.var(var)} = {_free_type(var, p)}"] for var in names.free]
    head += [p.declaration(func.buffer_map[param], "match_buffer", [p.var(param)]) for param in func.params
             if param in func.buffer_map]
    head += [p.declaration(buffer) for buffer in names.buffers]
    head += [[f"{p.producer(tensor)} = ", *p.function("Buffer", listed(tensor.shape, "()"), quoted(str(tensor.dtype)))]
             for tensor in names.producers]
    head += _flat_memory(func, names, p)
    body = lines([*head, [func.body]])
    return [f"@{p.prefix}.prim_func", LINE, f"def {p.identifier(p.function_name or 'main')}({params}){result}",
            *p.block(together(body))]


def _param_type(param: Var, func: PrimFunc, p: TVMScriptPrinter) -> str:
    return f"{p.prefix}.handle" if param in func.buffer_map else p.type_name(param.type_annotation)


def _free_type(var: Var, p: TVMScriptPrinter) -> str:
    name = p.type_name(var.type_annotation)
    return name if name.endswith(")") and isinstance(var.type_annotation, PointerType) else f"{name}()"


def _flat_memory(func: PrimFunc, names: Names, p: TVMScriptPrinter) -> list[list[Part]]:
    """The declarations of what accesses the memory of parameters and of free pointers."""
    owners: dict[Var, Buffer] = {}
    for buffer in names.seen:
        owners.setdefault(buffer.data, buffer)
    declared: list[list[Part]] = []
    for memory, dtypes in names.flat.items():
        if memory in names.declared:
            continue
        owner = owners.get(memory)
        if owner is not None and _is_flat(owner) and list(dtypes) == [owner.dtype]:
            p.flat[memory, owner.dtype] = p.names[owner]
            continue
        extent = build.const(1, "int32") if owner is None else _product(owner.strides[:1] + owner.shape[:1] if owner.strides
                                                                        else owner.shape)
        parts = _accessed(memory, extent, p)
        declared += [[together(parts[:-1])]]
    return declared


def _is_flat(buffer: Buffer) -> bool:
    return len(buffer.shape) == 1 and not buffer.strides and build.as_int(buffer.elem_offset) == 0


STATEMENTS: dict[type, Handler] = {
    For: _for, While: _while, IfThenElse: _if, SeqStmt: _sequence, **dict.fromkeys(COVERING, _rest), Store: _store,
    BufferStore: lambda s, p: [*p.buffer(s.buffer), *index_parts(s.indices), " = ", s.value],
    ProducerStore: lambda s, p: [p.producer(s.producer), *index_parts(s.indices), " = ", s.value],
    Prefetch: _prefetch, Evaluate: _evaluate, Tensorized: lambda s, p: [s.body], PrimFunc: _prim_func,
}
