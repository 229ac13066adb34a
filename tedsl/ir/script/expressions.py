"""Expressions in the readable notation: operators with Python's spelling and precedence, vectors of indices as slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType, round_float
from tedsl.ir.expr import (
    Add,
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
    Mul,
    Not,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.func import GlobalVar
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.script.calls import call_parts
from tedsl.ir.script.levels import INFIX, Level, level, operand
from tedsl.ir.script.printer import Handler, ScriptPrinter
from tedsl.ir.text import Part, listed, quoted
from tedsl.ir.walk.equal import structural_equal

COMBINERS: dict[type, str] = {Add: "sum", Mul: "prod", Max: "max", Min: "min"}


def _infix(e: BinaryOp, p: ScriptPrinter) -> list[Part]:
    sign, binds = INFIX[type(e)]
    least = Level(binds + 1) if binds is Level.COMPARISON else binds  # a < b < c means something else
    return [*operand(e.a, least, p), sign, *operand(e.b, Level(binds + 1), p)]


def _function(name: str) -> Handler:
    return lambda e, p: [f"{name}(", e.a, ", ", e.b, ")"]


def _division(e: Div, p: ScriptPrinter) -> list[Part]:
    return _infix(e, p) if e.dtype.is_float else _function("truncdiv")(e, p)


def _int_imm(e: IntImm, p: ScriptPrinter) -> list[Part]:
    return [str(bool(e.value)) if e.dtype.is_bool else str(e.value)]


def _float_imm(e: FloatImm, p: ScriptPrinter) -> list[Part]:
    return [float_text(e.value, e.dtype)]


def float_text(value: float, of: DType) -> str:
    """The shortest decimal text that reads back as `value` in the float dtype `of`."""
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        if round_float(float(text), of) == value:
            break
    else:
        text = repr(value)
    return text if not text[-1].isdigit() or "." in text or "e" in text else f"{text}.0"


def _let(e: Let, p: ScriptPrinter) -> list[Part]:
    return [f"let {p.var(e.var)} = ", *operand(e.value, Level.CHOICE, p), " in ", e.body]


def _ramp(e: Ramp, p: ScriptPrinter) -> list[Part]:
    """A Ramp outside of brackets: `base + arange(lanes) * stride`."""
    lanes = f"arange({e.lanes})"
    steps: list[Part] = [lanes] if build.as_int(e.stride) == 1 else [lanes, "*", *operand(e.stride, Level.UNARY, p)]
    return steps if build.as_int(e.base) == 0 else [*named(e.base, p), " + ", *steps]


def _shuffle(e: Shuffle, p: ScriptPrinter) -> list[Part]:
    return ["shuffle(", *listed(e.vectors), ", ", *listed(e.indices), ")"]


# --- accesses ---

def _load(e: Load, p: ScriptPrinter) -> list[Part]:
    access = flat_access(e, e.buffer_var, e.index, p)
    mask = e.predicate
    if mask is None or not p.needs_mask(mask):
        return access
    return [*access, " if ", *operand(mask, Level.OR, p), " else 0"]


def flat_access(access: Node, memory: Var, index: Expr, p: ScriptPrinter) -> list[Part]:
    """The text of a flat access: by the proved indices where there are some, else by the offset from the beginning."""
    name = p.var(memory)
    indices = p.places.get(access)
    if indices is not None:
        return [name, "[", *index_parts(indices, p), "]"]
    return [name if p.ranks.get(memory, 1) == 1 else f"{name}.data", "[", *index_parts((index,), p), "]"]


def buffer_access(buffer: Buffer, indices: Sequence[Expr], p: ScriptPrinter) -> list[Part]:
    return [*p.buffer(buffer), "[", *index_parts(indices, p), "]"]


def index_parts(indices: Sequence[Expr], p: ScriptPrinter) -> list[Part]:
    """The text between the brackets of an access; a vector is a slice if numpy has such a slice."""
    if not indices:
        return ["()"]
    one_vector = sum(index.dtype.lanes > 1 for index in indices) == 1
    parts: list[Part] = []
    for position, index in enumerate(indices):
        parts += [", "] if position else []
        parts += slice_parts(index, p) if one_vector and is_slice(index) else named(index, p)
    return parts


def is_slice(index: Expr) -> bool:
    """Whether a vector of indices can be written as a numpy slice: a Ramp with a positive step."""
    return isinstance(index, Ramp) and (build.as_int(index.stride) or 0) > 0


def slice_parts(index: Ramp | Any, p: ScriptPrinter) -> list[Part]:
    stride, first = build.as_int(index.stride) or 1, build.as_int(index.base)
    step, count = f" : {stride}" if stride != 1 else "", index.lanes * stride
    if first is not None:
        return [f"{first}:{first + count}{step}"]
    base, constant = apart(index.base)
    alias = _alias(base, p)
    begin: Part = base if alias is None else alias
    sign = "{}{}" if alias is not None or level(base, p) > Level.SUM else " {} {}"
    return [begin, _plus(constant, sign), " : ", begin, _plus(constant + count, sign), step]


def _plus(constant: int, sign: str) -> str:
    """The text that adds a constant, such as ` + 3`; "" for 0."""
    return sign.format("+" if constant > 0 else "-", abs(constant)) if constant else ""


def apart(index: Expr) -> tuple[Expr, int]:
    """An index split into a part without a constant and the constant added to it."""
    if isinstance(index, (Add, Sub)) and isinstance(index.b, IntImm):
        return index.a, index.b.value if isinstance(index, Add) else -index.b.value
    return index, 0


def named(index: Expr, p: ScriptPrinter) -> list[Part]:
    """The text of `index`. If its statement has a name for the variable part, that name plus the constant."""
    base, constant = apart(index)
    alias = _alias(base, p)
    return [index] if alias is None else [alias, _plus(constant, " {} {}")]


def _alias(base: Expr, p: ScriptPrinter) -> str | None:
    return p.aliases.get(p.print(base)) if p.aliases and not isinstance(base, (Var, IntImm)) else None


# --- reductions, of formulas ---

def _reduce(e: Reduce, p: ScriptPrinter) -> list[Part]:
    known = COMBINERS.get(type(e.combiner.result[0])) if len(e.source) == 1 else None
    sources = [e.source[0]] if len(e.source) == 1 else listed(e.source, "()")
    parts: list[Part] = [f"{known}("] if known is not None else ["reduce(", e.combiner, ", "]
    parts += sources
    for axis in e.axis:
        parts += [f" for {p.var(axis.var)} in ", axis.dom if axis.dom is not None else "range()"]
    if not build.is_true(e.condition):
        parts += [" if ", *operand(e.condition, Level.OR, p)]
    if e.init:
        parts += [", init=", *(e.init if len(e.init) == 1 else listed(e.init, "()"))]
    return [*parts, ")" if len(e.source) == 1 else f")[{e.value_index}]"]


def _reducer(e: CommReducer, p: ScriptPrinter) -> list[Part]:
    names = ", ".join(p.var(var) for var in (*e.lhs, *e.rhs))
    return [f"lambda {names}: ", *(e.result if len(e.result) == 1 else listed(e.result, "()"))]


def range_parts(r: Range, p: ScriptPrinter) -> list[Part]:
    assert r.extent is not None
    return ["range(", *ends_of(r), ")"]


def ends_of(r: Range) -> list[Part]:
    """The arguments of Python's `range` for a Range: the end, or the beginning and the end."""
    return [end_of(r)] if build.as_int(r.min) == 0 else [r.min, ", ", end_of(r)]


def end_of(r: Range) -> Expr:
    """The first integer after a Range, its exclusive end."""
    assert r.extent is not None
    if isinstance(r.extent, Sub) and is_same(r.extent.b, r.min):
        return r.extent.a  # begin + (end - begin)
    return build.add(r.min, r.extent)


def is_same(a: Expr, b: Expr) -> bool:
    """Whether two expressions print alike."""
    return a is b or (a.dtype is b.dtype and structural_equal(a, b))


EXPRESSIONS: dict[type, Handler] = {
    Var: lambda e, p: [p.var(e)], SizeVar: lambda e, p: [p.var(e)],
    IntImm: _int_imm, FloatImm: _float_imm, StringImm: lambda e, p: [quoted(e.value)],
    **dict.fromkeys(INFIX, _infix), Div: _division, Mod: _function("truncmod"), Min: _function("min"), Max: _function("max"),
    Not: lambda e, p: ["not ", *operand(e.a, Level.NOT, p)],
    Select: lambda e, p: ["where(", e.condition, ", ", e.true_value, ", ", e.false_value, ")"],
    Cast: lambda e, p: [f"{e.dtype.element}(", e.value, ")"],
    Let: _let, Call: call_parts, Ramp: _ramp, Broadcast: lambda e, p: [e.value], Shuffle: _shuffle,
    Load: _load, BufferLoad: lambda e, p: buffer_access(e.buffer, e.indices, p),
    ProducerLoad: lambda e, p: [str(e.producer.name), "[", *index_parts(e.indices, p), "]"],
    Reduce: _reduce, CommReducer: _reducer, Range: range_parts, IterVar: lambda e, p: [p.var(e.var)],
    GlobalVar: lambda e, p: [e.name_hint], Buffer: lambda e, p: p.buffer(e),
    BinaryOp: lambda e, p: [f"{type(e).__name__}(", e.a, ", ", e.b, ")"],  # an operator added later
}
