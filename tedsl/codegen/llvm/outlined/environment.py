"""What an outlined function uses of the enclosing one: the variables, passed as parameters or in a struct on its stack."""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.codegen.llvm.emitter import BufferInfo, Emitter
from tedsl.codegen.llvm.frame import ERROR
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.types import register_type
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Var
from tedsl.ir.stmt import Stmt
from tedsl.ir.walk.visitor import pointers, variables
from tedsl.record import record


@record
class Field:
    """A variable that an outlined function uses: its LLVM type and its value in the enclosing function."""

    var: Var
    type: str
    value: str


def used_in(out: Emitter, body: Stmt) -> list[Var]:
    """Returns the variables that `body` uses; pointers alone where the enclosing function `out` knows of no number."""
    scope, flags = out.scope, set(out.streams.values())
    numbers = any(var.dtype is not HANDLE and var not in flags for known in (scope.index, scope.data) for var in known)
    return variables(body) if numbers else pointers(body)


def captured(out: Emitter, used: Iterable[Var]) -> list[Field]:
    """Lists those of the variables `used` that are variables of the enclosing function `out`, with their values there."""
    fields: list[Field] = []
    for var in used:
        if var in out.scope.buffers:
            fields.append(Field(var, "ptr", out.scope.buffers[var].pointer))
        elif var in out.scope.data:
            fields.append(Field(var, register_type(var.dtype), out.scope.data[var]))
        elif var in out.scope.index and out.scope.index[var].terms:
            fields.append(Field(var, "i64", out.register(out.scope.index[var])[0]))
        flag = out.streams.get(var)
        if flag is not None:
            fields.append(Field(flag, "i1", out.scope.data[flag]))
    if ERROR in out.scope.data:
        fields.append(Field(ERROR, "ptr", out.scope.data[ERROR]))
    return fields


def fill(out: Emitter, fields: list[Field]) -> str:
    """Emits the struct of `fields` on the stack of `out` and returns its pointer."""
    struct = _struct(fields)
    env = out.alloca(struct, 8, "env")
    for k, field in enumerate(fields):
        slot = out.assign(f"getelementptr {struct}, ptr {env}, i64 0, i32 {k}")
        out.line(f"store {field.type} {field.value}, ptr {slot}, align 8")
    return env


def unpack(inner: Emitter, fields: list[Field]) -> dict[Var, str]:
    """Emits the loads of `fields` from `%env` at the beginning of the outlined function `inner`; returns their registers."""
    struct = _struct(fields)
    registers: dict[Var, str] = {}
    for k, field in enumerate(fields):
        pointer = inner.assign(f"getelementptr {struct}, ptr %env, i64 0, i32 {k}")
        registers[field.var] = "%" + inner.fresh(field.var.name)
        inner.line(f"{registers[field.var]} = load {field.type}, ptr {pointer}, align 8")
    return registers


def declare(inner: Emitter, out: Emitter, registers: dict[Var, str]) -> None:
    """Declares variables of the enclosing function `out` to the outlined function `inner`, which has them in `registers`."""
    inner.streams = out.streams
    inner.scope.index = {v: i for v, i in out.scope.index.items() if not i.terms}
    for var, value in registers.items():
        if var in out.scope.buffers:
            old = out.scope.buffers[var]
            inner.scope.buffers[var] = BufferInfo(value, 0, old.alignment, own=old.own)
        elif var in out.scope.data:
            inner.scope.data[var] = value
        elif var in out.scope.index:
            inner.scope.index[var] = ix.atom_index(inner.atom(value, 0, *out.scope.index[var].bounds()))


def _struct(fields: list[Field]) -> str:
    return "{ " + ", ".join(field.type for field in fields) + " }"


def separate(out: Emitter) -> None:
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
