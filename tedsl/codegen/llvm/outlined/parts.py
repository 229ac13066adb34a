"""Long sequences of loops in parts, for LLVM's pipeline takes more than linear time in the size of a function.

    loop 0; ...; loop 199    becomes    status = f.part0(A, T); if status != 0 return status; ...; status = f.part4(T, C); ...

Each part is a function of PART loops at most, whose parameters are the variables that it uses. A long sequence inside a loop of
it is in parts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tedsl.codegen.kernels import abi
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.frame import fail_unless, leave
from tedsl.codegen.llvm.outlined.environment import captured, declare, used_in
from tedsl.codegen.llvm.types import global_name
from tedsl.ir.expr import Call, Var
from tedsl.ir.ops import RET
from tedsl.ir.stmt import Evaluate, For, SeqStmt, Stmt, While
from tedsl.ir.walk.visitor import statements

PART = 40  # loops: LLVM takes 4 ms for each in parts, 7 ms where one function has 250 of them


def loops_of_long(body: Stmt) -> dict[Stmt, int]:
    """Maps each statement of `body` with more than PART loops to the number of its loops; none if the body returns early, for a
    part could not return for the function that calls it.
    """
    order = list(statements(body))
    if sum(isinstance(s, (For, While)) for s in order) <= PART:
        return {}
    counts: dict[Stmt, int] = {}
    for s in reversed(order):
        if isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op is RET:
            return {}
        inside = sum(counts[child] for child in s.child_nodes() if isinstance(child, Stmt))
        counts[s] = inside + isinstance(s, (For, While))
    return counts


def emit_in_parts(out: Emitter, s: SeqStmt) -> None:
    """Emits a long sequence: runs of statements as parts; those that are long themselves, or without loops, in place."""
    for part in _parts(s, out.function.loops):
        if isinstance(part, list):
            _emit_part(out, SeqStmt(tuple(part)))
        else:
            out.statement(part)


def _parts(s: SeqStmt, loops: Mapping[Stmt, int]) -> Iterator[Stmt | list[Stmt]]:
    """Iterates over the statements of a sequence, with each run of those that together have PART loops at most as a list."""
    run: list[Stmt] = []
    count = 0
    for statement in s.seq:
        own = loops[statement]
        if run and count + own > PART:
            yield run
            run, count = [], 0
        if own > PART or (not own and not run):
            yield statement
        else:
            run.append(statement)
            count += own
    if run:
        yield run


def _emit_part(out: Emitter, body: SeqStmt) -> None:
    """Emits statements as a function, whose parameters are the variables that they use, and its call."""
    fields = captured(out, used_in(out, body))
    name = f"{out.function.name}.part{out.module.next_number()}"
    status = out.assign(f"call i32 {global_name(name)}({', '.join(f'{field.type} {field.value}' for field in fields)})")
    fail_unless(out, out.assign(f"icmp eq i32 {status}, 0"), status)
    inner = Emitter(out.module, replace(out.function, name=name, takes_frame=True))
    inner.begin_at(body.seq[0])
    registers = {field.var: "%" + inner.fresh(field.var.name) for field in fields}
    declare(inner, out, registers)
    inner.statement(body)
    leave(inner, str(abi.OK))
    parameters = ", ".join(f"{field.type}{_promise(out, field.var)} {registers[field.var]}" for field in fields)
    out.module.functions.append(
        inner.text(f"define internal i32 {global_name(name)}({parameters}) noinline {inner.attributes}"))


def _promise(out: Emitter, var: Var) -> str:
    """Returns the attributes of a parameter: noalias for memory to which no other points, and its alignment."""
    info = out.scope.buffers.get(var)
    if info is None:
        return ""
    return " noalias" * (info.own or out.function.noalias) + (f" align {info.alignment}" if info.alignment else "")
