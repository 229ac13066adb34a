"""Parallel loops: the body becomes a function `i32 (ptr env, i64 begin, i64 end)` that the thread pool calls in pieces."""

from __future__ import annotations

from dataclasses import replace

from tedsl.codegen.kernels.stack import arrays_on_stack
from tedsl.codegen.llvm.debug.lines import stage_of
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.frame import fail_unless, leave
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import INT64_MAX, Index
from tedsl.codegen.llvm.outlined.environment import Field, captured, declare, fill, separate, unpack, used_in
from tedsl.codegen.llvm.outlined.shared import Body, bodies_like, equal_body
from tedsl.codegen.llvm.streaming import emit_range
from tedsl.codegen.llvm.types import global_name
from tedsl.ir.expr import Var
from tedsl.ir.stmt import For


def emit_parallel(out: Emitter, s: For, first: Index, extent: Index) -> None:
    """Emits the call of the thread pool, and the loop's body as a function of its own."""
    used = used_in(out, s.body)
    fields = captured(out, used)
    if first.terms:
        fields.append(Field(s.loop_var, "i64", out.register(first)[0]))
    env = fill(out, fields)
    count, _ = out.register(extent)
    if extent.bounds()[0] < 0:
        symbol = out.module.declare("llvm.smax.i64", "declare i64 @llvm.smax.i64(i64, i64)")
        count = out.assign(f"call i64 {symbol}(i64 {count}, i64 0)")
    launch = out.module.declare("tedsl_parallel_launch", "declare i32 @tedsl_parallel_launch(ptr, ptr, i64)")
    name = _function(out, s, used, fields, first, extent)
    status = out.assign(f"call i32 {launch}(ptr {global_name(name)}, ptr {env}, i64 {count})")
    fail_unless(out, out.assign(f"icmp eq i32 {status}, 0"), status)


def _function(out: Emitter, s: For, used: list[Var], fields: list[Field], first: Index, extent: Index) -> str:
    """Returns the name of the function for the body of `s`, which uses the variables `used`: one that was written before, or
    a new one.
    """
    name = ".".join(filter(None, (out.function.name, stage_of(s.body), f"parallel{out.module.next_number()}")))
    on_stack = arrays_on_stack(s.body, in_parallel=True)
    inner = Emitter(out.module, replace(out.function, name=name, on_stack=on_stack, in_parallel=True))
    inner.begin_at(s)
    for parameter in ("env", "begin", "end"):
        inner.fresh(parameter)  # variables of these names get others
    registers = unpack(inner, fields)
    declare(inner, out, registers)
    start = ix.atom_index(inner.atom(registers[s.loop_var], 0, *first.bounds())) if first.terms else first
    low, high = 0, min(extent.bounds()[1], INT64_MAX)
    begin, end = (ix.atom_index(inner.atom(f"%{which}", 0, low, high)) for which in ("begin", "end"))
    bodies = bodies_like(inner, s, used, fields, (start, end))
    same = equal_body(s, bodies)
    if same is not None:
        return same.name
    separate(inner)
    emit_range(inner, s, ix.add(start, begin), ix.add(start, end))
    leave(inner, "0")
    out.module.functions.append(inner.text(f"define internal i32 {global_name(name)}(ptr noalias %env, i64 %begin, i64 %end) "
                                           f"{inner.attributes}"))
    bodies.append(Body(s, name))
    return name
