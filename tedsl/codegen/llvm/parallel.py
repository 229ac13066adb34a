"""Parallel loops: the body becomes a function `i32 (ptr env, i64 begin, i64 end)` that the thread pool calls in pieces.

Values of the enclosing function that the body uses are passed in a struct on that function's stack.
"""

from __future__ import annotations

from dataclasses import replace

from tedsl.codegen.llvm.emitter import BufferInfo, Emitter
from tedsl.codegen.llvm.frame import ERROR, arrays_on_stack, fail_unless, leave
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import INT64_MAX, Index
from tedsl.codegen.llvm.streaming import emit_range
from tedsl.codegen.llvm.types import global_name, register_type
from tedsl.ir.expr import Var
from tedsl.ir.stmt import For
from tedsl.ir.walk.visitor import variables

Field = tuple[Var, str, str]  # variable, LLVM type, value in the function around


def emit_parallel(out: Emitter, s: For, first: Index, extent: Index) -> None:
    """Emits the call of the thread pool, and the loop's body as a function of its own."""
    fields = _captured(out, s)
    if first.terms:
        fields.append((s.loop_var, "i64", out.register(first)[0]))
    struct = "{ " + ", ".join(t for _, t, _ in fields) + " }"
    env = out.alloca(struct, 8, "env")
    for k, (_, t, value) in enumerate(fields):
        out.line(f"store {t} {value}, ptr {out.assign(f'getelementptr {struct}, ptr {env}, i64 0, i32 {k}')}, align 8")
    count, _ = out.register(extent)
    if extent.bounds()[0] < 0:
        symbol = out.module.declare("llvm.smax.i64", "declare i64 @llvm.smax.i64(i64, i64)")
        count = out.assign(f"call i64 {symbol}(i64 {count}, i64 0)")
    name = f"{out.function.name}.parallel{out.module.next_number()}"
    launch = out.module.declare("tedsl_parallel_launch", "declare i32 @tedsl_parallel_launch(ptr, ptr, i64)")
    status = out.assign(f"call i32 {launch}(ptr {global_name(name)}, ptr {env}, i64 {count})")
    fail_unless(out, out.assign(f"icmp eq i32 {status}, 0"), status)
    _emit_body(out, s, name, struct, fields, first, extent)


def _captured(out: Emitter, s: For) -> list[Field]:
    """Lists the variables of the enclosing function that the loop uses, with their values there."""
    fields: list[Field] = []
    for var in variables(s.body):
        if var in out.scope.buffers:
            fields.append((var, "ptr", out.scope.buffers[var].pointer))
        elif var in out.scope.data:
            fields.append((var, register_type(var.dtype), out.scope.data[var]))
        elif var in out.scope.index and out.scope.index[var].terms:
            fields.append((var, "i64", out.register(out.scope.index[var])[0]))
        flag = out.streams.get(var)
        if flag is not None:
            fields.append((flag, "i1", out.scope.data[flag]))
    if ERROR in out.scope.data:
        fields.append((ERROR, "ptr", out.scope.data[ERROR]))
    return fields


def _emit_body(out: Emitter, s: For, name: str, struct: str, fields: list[Field], first: Index, extent: Index) -> None:
    on_stack = arrays_on_stack(s.body, in_parallel=True)
    inner = Emitter(out.module, replace(out.function, name=name, on_stack=on_stack, in_parallel=True))
    for parameter in ("env", "begin", "end"):
        inner.fresh(parameter)  # variables of these names get others
    inner.streams = out.streams
    inner.scope.index = {v: i for v, i in out.scope.index.items() if not i.terms}
    start = first
    for k, (var, t, _) in enumerate(fields):
        pointer = inner.assign(f"getelementptr {struct}, ptr %env, i64 0, i32 {k}")
        value = "%" + inner.fresh(var.name)
        inner.line(f"{value} = load {t}, ptr {pointer}, align 8")
        if var is s.loop_var:
            start = ix.atom_index(inner.atom(value, 0, *first.bounds()))
        elif var in out.scope.buffers:
            old = out.scope.buffers[var]
            inner.scope.buffers[var] = BufferInfo(value, 0, old.alignment, own=old.own)
        elif var in out.scope.data:
            inner.scope.data[var] = value
        else:
            inner.scope.index[var] = ix.atom_index(inner.atom(value, 0, *out.scope.index[var].bounds()))
    _separate(inner)
    low, high = 0, min(extent.bounds()[1], INT64_MAX)
    begin, end = (ix.atom_index(inner.atom(f"%{which}", 0, low, high)) for which in ("begin", "end"))
    emit_range(inner, s, ix.add(start, begin), ix.add(start, end))
    leave(inner, "0")
    out.module.functions.append(inner.text(f"define internal i32 {global_name(name)}(ptr noalias %env, i64 %begin, i64 %end) "
                                           f"{out.module.attributes}"))


def _separate(out: Emitter) -> None:
    """Tells LLVM that the buffers do not alias: pointers loaded from the environment carry no such promise themselves."""
    module, buffers = out.module, out.scope.buffers
    if len(buffers) < 2:
        return
    domain = module.add_node("{self}")
    groups: dict[object, list[BufferInfo]] = {}
    for var, info in buffers.items():
        groups.setdefault(var if out.function.noalias or info.own else "arguments", []).append(info)
    scopes = [module.add_node(f"{{self}}, {domain}") for _ in groups]
    for k, infos in enumerate(groups.values()):
        others = [scope for j, scope in enumerate(scopes) if j != k]
        alias = f", !alias.scope {module.add_metadata(f'!{{{scopes[k]}}}')}"
        if others:
            alias += f", !noalias {module.add_metadata('!{' + ', '.join(others) + '}')}"
        for info in infos:
            info.alias = alias
