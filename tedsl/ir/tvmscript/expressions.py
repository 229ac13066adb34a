"""Expressions in TVMScript: Python's operators, constructors of T for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import (
    BinaryOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Not,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Var,
)
from tedsl.ir.func import GlobalVar
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.script.expressions import end_of, float_text
from tedsl.ir.script.levels import INFIX, Level
from tedsl.ir.script.printer import Handler
from tedsl.ir.stmt import BufferRegion
from tedsl.ir.text import ITER_NAMES, Part, listed, quoted
from tedsl.ir.tvmscript.calls import call_parts
from tedsl.ir.tvmscript.printer import TVMScriptPrinter


def level(e: Node) -> Level:
    """How tightly the text of `e` binds."""
    if type(e) in INFIX or (isinstance(e, Div) and e.dtype.is_float):
        return INFIX[type(e)][1] if not isinstance(e, Div) or e.dtype.is_float else Level.ATOM
    if isinstance(e, Not):
        return Level.NOT
    return Level.UNARY if isinstance(e, IntImm) and e.dtype is INT32 and e.value < 0 else Level.ATOM


def operand(e: Expr, least: Level) -> list[Part]:
    """The text of `e` as an operand, in parentheses if it binds less tightly than `least`."""
    return [e] if level(e) >= least else ["(", e, ")"]


def _infix(e: BinaryOp, p: TVMScriptPrinter) -> list[Part]:
    sign, binds = INFIX[type(e)]
    least = Level(binds + 1) if binds is Level.COMPARISON else binds  # a < b < c means something else
    return [*operand(e.a, least), f" {sign.strip()} ", *operand(e.b, Level(binds + 1))]


def _division(e: Div, p: TVMScriptPrinter) -> list[Part]:
    return _infix(e, p) if e.dtype.is_float else p.function("Div", e.a, e.b)


def _int_imm(e: IntImm, p: TVMScriptPrinter) -> list[Part]:
    if e.dtype is INT32:
        return [str(e.value)]
    return [f"{p.type_name(e.dtype)}({bool(e.value) if e.dtype.is_bool else e.value})"]


def _float_imm(e: FloatImm, p: TVMScriptPrinter) -> list[Part]:
    number = float_text(e.value, e.dtype) if math.isfinite(e.value) else quoted(str(e.value))
    return [f"{p.type_name(e.dtype)}({number.removesuffix('.0')})"]


def _let(e: Let, p: TVMScriptPrinter) -> list[Part]:
    return p.function("Let", e.body, [f"where={{{p.var(e.var)}: ", e.value, "}"])


def _shuffle(e: Shuffle, p: TVMScriptPrinter) -> list[Part]:
    return p.function("Shuffle", listed(e.vectors), listed(e.indices))


# --- accesses ---

def _load(e: Load, p: TVMScriptPrinter) -> list[Part]:
    name = p.flat[e.buffer_var, e.dtype.element]
    if e.predicate is None or build.is_true(e.predicate):
        return [name, *index_parts((e.index,))]
    return [f"{name}.vload([", e.index, f"], {quoted(str(e.dtype))}, predicate=", e.predicate, ")"]


def index_parts(indices: Sequence[Expr]) -> list[Part]:
    """The brackets of an access; a vector of elements in a row is a slice."""
    return listed([partial(_index, index) for index in indices]) if indices else ["[()]"]


def _index(index: Expr) -> list[Part]:
    step = build.as_int(index.stride) if isinstance(index, Ramp) else None
    if not isinstance(index, Ramp) or step is None or step < 1:
        return [index]
    end = build.add(index.base, build.const(index.lanes * step, index.base.dtype))
    return [index.base, ":", end, f":{step}" if step > 1 else ""]


def region_parts(bounds: Sequence[Range]) -> list[Part]:
    """The brackets of a region: a slice in each dimension."""
    return listed([partial(_interval, bound) for bound in bounds]) if bounds else ["[()]"]


def _interval(bound: Range) -> list[Part]:
    return [bound.min, ":", end_of(bound)]


# --- reductions and axes ---

def _reduce(e: Reduce, p: TVMScriptPrinter) -> list[Part]:
    return p.function("reduce", e.combiner, listed(e.source), listed(e.init), listed(e.axis), e.condition, str(e.value_index))


def _reducer(e: CommReducer, p: TVMScriptPrinter) -> list[Part]:
    names = ", ".join(p.var(var) for var in (*e.lhs, *e.rhs))
    result: list[Part] = list(e.result) if len(e.result) == 1 else listed(e.result, "()")
    return p.function("comm_reducer", [f"lambda {names}: ", *result], listed(e.identity_element))


def _iter_var(e: IterVar, p: TVMScriptPrinter) -> list[Part]:
    kind, tag = quoted(ITER_NAMES[e.iter_type]), quoted(e.thread_tag)
    return p.function("iter_var", p.var(e.var), "None" if e.dom is None else e.dom, kind, tag)


def _range(e: Range, p: TVMScriptPrinter) -> list[Part]:
    return p.function("Range", e.min, end_of(e))


# --- values of attributes ---

def literal(value: Any, p: TVMScriptPrinter) -> list[Part]:
    """The value of an attribute or annotation as Python; what is neither a value of Python nor a node is its text in quotes."""
    if value is None or isinstance(value, (bool, int)):
        return [str(value)]
    if isinstance(value, float):
        return [repr(value) if math.isfinite(value) else f'float("{value}")']
    if isinstance(value, (tuple, list)):
        return listed([partial(literal, item, p) for item in value])
    if isinstance(value, Mapping):
        entries = sorted(value.items(), key=lambda entry: str(entry[0]))
        return listed([partial(_entry, key, item, p) for key, item in entries], "{}")
    return [value] if isinstance(value, Node) else [quoted(str(getattr(value, "name", value)))]


def _entry(key: Any, value: Any, p: TVMScriptPrinter) -> list[Part]:
    return [f"{quoted(str(key))}: ", *literal(value, p)]


EXPRESSIONS: dict[type, Handler] = {
    Var: lambda e, p: [p.var(e)], SizeVar: lambda e, p: [p.var(e)],
    IntImm: _int_imm, FloatImm: _float_imm, StringImm: lambda e, p: [quoted(e.value)],
    **dict.fromkeys(INFIX, _infix), Div: _division,
    Mod: lambda e, p: p.function("truncmod", e.a, e.b),
    Min: lambda e, p: p.function("min", e.a, e.b), Max: lambda e, p: p.function("max", e.a, e.b),
    Not: lambda e, p: ["not ", *operand(e.a, Level.NOT)],
    Select: lambda e, p: p.function("Select", e.condition, e.true_value, e.false_value),
    Cast: lambda e, p: p.function("Cast", quoted(str(e.dtype)), e.value),
    Ramp: lambda e, p: p.function("Ramp", e.base, e.stride, str(e.lanes)),
    Broadcast: lambda e, p: p.function("Broadcast", e.value, str(e.lanes)),
    Shuffle: _shuffle, Let: _let, Call: call_parts, Load: _load,
    BufferLoad: lambda e, p: [*p.buffer(e.buffer), *index_parts(e.indices)],
    ProducerLoad: lambda e, p: [p.producer(e.producer), *index_parts(e.indices)],
    Reduce: _reduce, CommReducer: _reducer, Range: _range, IterVar: _iter_var,
    GlobalVar: lambda e, p: [quoted(e.name_hint)], Buffer: lambda e, p: p.buffer(e),
    BufferRegion: lambda e, p: [*p.buffer(e.buffer), *region_parts(e.region)],
    BinaryOp: lambda e, p: p.function(type(e).__name__, e.a, e.b),  # an operator added later
}
