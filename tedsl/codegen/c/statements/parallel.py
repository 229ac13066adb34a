"""Parallel loops: a body of its own that a launcher calls in pieces, or a loop that OpenMP divides.

    struct f_parallel0 { const float *A; float *B; };
    static int32_t f_parallel0(void *env, int64_t begin, int64_t end) { ... }
    ...
    struct f_parallel0 env = {A, B};
    const int32_t status = tedsl_parallel_launch(f_parallel0, &env, count);
"""

from __future__ import annotations

from dataclasses import replace

from tedsl.codegen.c.emitter import Emitter
from tedsl.codegen.c.statements.loops import counted, openmp
from tedsl.codegen.c.text.function import finished
from tedsl.codegen.c.text.names import Names
from tedsl.codegen.c.text.piece import Piece, call, number
from tedsl.codegen.c.text.types import memory_type, value_type
from tedsl.codegen.c.values.index import combined
from tedsl.codegen.calls.graph import BY_NAME
from tedsl.codegen.kernels.stack import arrays_on_stack
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Add, Call
from tedsl.ir.ops import RET
from tedsl.ir.stmt import Allocate, AssertStmt, For
from tedsl.ir.walk.visitor import post_order, variables


def emit_parallel(out: Emitter, s: For, first: Piece, extent: Piece) -> None:
    """Emits a parallel loop, as the dialect has it."""
    on_stack = arrays_on_stack(s.body, in_parallel=True)
    if out.module.dialect.parallel == "omp" and not _may_fail(s, on_stack):
        saved = out.function
        out.function = replace(saved, in_parallel=True, on_stack=saved.on_stack | on_stack)
        counted(out, s, first, combined(out, Add, first, extent), directive="parallel for")
        out.function = saved
        return
    _emit_launch(out, s, first, extent)


def _may_fail(s: For, on_stack: frozenset[Allocate]) -> bool:
    """Tells whether an iteration may leave the function, which a loop of OpenMP cannot."""
    return any(isinstance(node, AssertStmt) or (isinstance(node, Allocate) and node not in on_stack) or
               (isinstance(node, Call) and (node.op is RET or node.op in BY_NAME)) for node in post_order(s.body))


def _emit_launch(out: Emitter, s: For, first: Piece, extent: Piece) -> None:
    """Emits the loop's body as a function of its own, and what runs it for all iterations."""
    name = f"{out.function.name}_parallel{out.module.next_number()}"
    values = _emit_body(out, s, name, first, extent)
    count = extent
    if extent.low < 0:
        count = call(out.module.helper("imax", INT64), extent, number(0))
    env = "NULL"
    if values:
        env = "&" + (held := out.names.fresh("env.of"))
        out.line(f"struct {name} {held} = {{{', '.join(values)}}};")
    status = out.names.fresh("status")
    if out.module.dialect.parallel == "omp":
        _omp_calls(out, name, env, count, status)
    else:
        out.module.uses.add("launcher")
        out.line(f"const int32_t {status} = tedsl_parallel_launch({name}, {env}, {count.text});")
    with out.block(f"if ({status} != 0)"):
        out.leave(status)


def _omp_calls(out: Emitter, name: str, env: str, count: Piece, status: str) -> None:
    """Emits a loop of OpenMP that calls the body for each iteration and keeps a status that is not 0."""
    i, failed = out.names.fresh("i"), out.names.fresh("failed")
    out.line(f"int32_t {status} = 0;")
    openmp(out, "parallel for")
    with out.block(f"for (int64_t {i} = 0; {i} < {count.text}; ++{i})"):
        out.line(f"const int32_t {failed} = {name}({env}, {i}, {i} + 1);")
        with out.block(f"if ({failed} != 0)"):
            openmp(out, "atomic write")
            out.line(f"{status} = {failed};")


def _emit_body(out: Emitter, s: For, name: str, first: Piece, extent: Piece) -> list[str]:
    """Emits the function of the loop's body, and the struct of what it needs; returns the values of the struct."""
    names = Names(frozenset(("env", "begin", "end", "in")))
    inner = Emitter(out.module, out.tables, replace(out.function, name=name, in_parallel=True, result="",
                                                    on_stack=arrays_on_stack(s.body, in_parallel=True)), names)
    inner.stage = out.stage
    fields: list[str] = []
    values: list[str] = []

    def captured(type_: str, wanted: str, value: str, restrict: str = "") -> str:
        field = names.fresh(wanted)
        space = "" if type_.endswith("*") else " "
        fields.append(f"{type_}{space}{field};")
        values.append(value)
        const = f"{type_}{restrict and f'{restrict} '}const " if type_.endswith("*") else f"const {type_} "
        inner.line(f"{const}{field} = in->{field};")
        return field

    inner.line(f"const struct {name} *const in = (const struct {name} *)env;")
    for var in variables(s.body):
        if var in out.buffers:
            info = out.buffers[var]
            restrict = out.module.dialect.restrict if out.function.noalias else ""
            type_ = f"{'const ' if info.const else ''}{memory_type(info.dtype)} *"
            inner.buffers[var] = replace(info, name=captured(type_, var.name, info.name, restrict))
        elif var in out.data:
            inner.data[var] = Piece(captured(value_type(var.dtype), var.name, out.data[var].text))
        elif var in out.index:
            known = out.index[var]
            inner.index[var] = known if known.constant is not None else Piece(
                captured("int64_t", var.name, known.text), low=known.low, high=known.high)
        elif var in out.vectors:
            inner.vectors[var] = captured(f"const {value_type(var.dtype)} *", var.name, out.vectors[var])
    shift = None
    if first.constant != 0:
        shift = first if first.constant is not None else Piece(captured("int64_t", "first", first.text), low=first.low,
                                                                high=first.high)
    limit = Piece("end", low=0, high=max(0, extent.high))
    counted(inner, s, Piece("begin", low=0, high=0), limit, shift)
    inner.leave("0")
    struct = [f"struct {name} {{", *("    " + text for text in fields), "};"] if fields else []
    out.module.functions[name] = "\n".join([*struct, *finished(
        inner, f"static int32_t {name}(void *env, int64_t begin, int64_t end)", ["env"])]) + "\n"
    return values


