"""Emits scalar and vector data, with the wrapping arithmetic of their dtype: one small function per kind of node."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.conditions import emit_condition
from tedsl.codegen.llvm.indices.values import as_value, is_index, leaves_its_dtype
from tedsl.codegen.llvm.indices.vectors import narrow
from tedsl.codegen.llvm.math import quotient
from tedsl.codegen.llvm.types import float_splat, int_splat, register_type, vector_of
from tedsl.codegen.llvm.values.floats import emit_minmax, rounded
from tedsl.codegen.llvm.values.integer import Integers
from tedsl.errors import InternalError, LoweringError
from tedsl.ir.dtype import DType
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOp,
    Broadcast,
    CompareOp,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    StringImm,
    Sub,
    Var,
)

INT_OPS = {Add: "add", Sub: "sub", Mul: "mul"}  # data wraps
FLOAT_OPS = {Add: "fadd", Sub: "fsub", Mul: "fmul", Div: "fdiv"}
DIVISIONS = {FloorDiv: Integers.floordiv, FloorMod: Integers.floormod, Div: Integers.truncdiv, Mod: Integers.truncmod}
# (signed, unsigned, float): comparisons with NaN are false, but NE
COMPARISONS = {EQ: ("eq", "eq", "oeq"), NE: ("ne", "ne", "une"), LT: ("slt", "ult", "olt"), LE: ("sle", "ule", "ole"),
               GT: ("sgt", "ugt", "ogt"), GE: ("sge", "uge", "oge")}


def emit_var(out: Emitter, e: Var) -> str:
    known = out.scope.data.get(e)
    if known is not None:
        return known
    index = out.scope.index.get(e)
    if index is not None:
        return narrow(out, index, e.dtype)
    if e in out.scope.buffers:
        return out.scope.buffers[e].pointer
    raise InternalError(f"variable {e.name} is used in {out.function.name} where it has no value")


def emit_int(out: Emitter, e: IntImm) -> str:
    return ("true" if e.value else "false") if e.dtype.is_bool else str(e.value)


def emit_float(out: Emitter, e: FloatImm) -> str:
    return float_splat(e.dtype, e.value)


def emit_string(out: Emitter, e: StringImm) -> str:
    raise InternalError(f"the string {e.value!r} is used as a value")


def emit_arithmetic(out: Emitter, e: BinaryOp) -> str:
    a, b, d = out.value(e.a), out.value(e.b), e.dtype
    if d.is_float:
        return rounded(out, d, out.assign(f"{FLOAT_OPS[type(e)]} {register_type(d)} {a}, {b}"))
    return out.assign(f"{INT_OPS[type(e)]} {register_type(d)} {a}, {b}")


def emit_division(out: Emitter, e: BinaryOp) -> str:
    d = e.dtype
    if d.is_float:
        return emit_arithmetic(out, e)
    if leaves_its_dtype(out, e.a, e.b):
        return as_value(out, out.index(e), d)
    a, b = out.value(e.a), out.value(e.b)
    integers = Integers(out.assign, d.bits, d.lanes, d.is_int, by_floats=out.target.arch in ("x86-64", "aarch64"),
                        function=_quotients(out, d))
    return DIVISIONS[type(e)](integers, a, b, constant_of(e.b))


def _quotients(out: Emitter, d: DType) -> str:
    """Returns the symbol of the function that divides vectors of 64 bits, empty where the processor would round by a call."""
    if d.bits != 64 or d.lanes == 1 or not (out.target.arch == "aarch64" or "sse4.1" in out.target.features):
        return ""
    symbol = f"tedsl.{'sdiv' if d.is_int else 'udiv'}.v{d.lanes}i64"
    converts = out.target.arch == "aarch64" or "avx512dq" in out.target.features
    out.module.definitions.setdefault(symbol, quotient.body(d.lanes, d.is_int, converts, symbol))
    if not converts:
        name = f"llvm.trunc.v{d.lanes}f64"
        vector = vector_of("double", d.lanes)
        out.module.declare(name, f"declare {vector} @{name}({vector})")
    return symbol


def constant_of(e: Expr) -> int | None:
    """Returns the integer value of every lane of `e`; None if `e` is not a constant."""
    while isinstance(e, Broadcast):
        e = e.value
    return e.value if isinstance(e, IntImm) else None


def emit_extremum(out: Emitter, e: Min | Max) -> str:
    d = e.dtype
    if d.is_float:
        return emit_minmax(out, e)
    if leaves_its_dtype(out, e.a, e.b):
        return as_value(out, out.index(e), d)
    t, a, b = register_type(d), out.value(e.a), out.value(e.b)
    letter = "lt" if isinstance(e, Min) else "gt"
    better = out.assign(f"icmp {'s' if d.is_int else 'u'}{letter} {t} {a}, {b}")
    return out.assign(f"select {vector_of('i1', d.lanes)} {better}, {t} {a}, {t} {b}")


def emit_compare(out: Emitter, e: CompareOp) -> str:
    d = e.a.dtype
    signed, unsigned, of_floats = COMPARISONS[type(e)]
    if d.is_float:
        return out.assign(f"fcmp {of_floats} {register_type(d)} {out.value(e.a)}, {out.value(e.b)}")
    if d.is_integer and is_index(out, e.a) and is_index(out, e.b):
        return emit_condition(out, signed, out.index(e.a), out.index(e.b))
    name = signed if d.is_int else unsigned
    return out.assign(f"icmp {name} {register_type(d)} {out.value(e.a)}, {out.value(e.b)}")


def emit_logical(out: Emitter, e: And | Or) -> str:
    name = "and" if isinstance(e, And) else "or"
    return out.assign(f"{name} {register_type(e.dtype)} {out.value(e.a)}, {out.value(e.b)}")


def emit_not(out: Emitter, e: Not) -> str:
    return out.assign(f"xor {register_type(e.dtype)} {out.value(e.a)}, {int_splat(1, 1, e.dtype.lanes)}")


def emit_select(out: Emitter, e: Select) -> str:
    t = register_type(e.dtype)
    c, a, b = out.value(e.condition), out.value(e.true_value), out.value(e.false_value)
    if e.condition.dtype.lanes not in (1, e.dtype.lanes):
        raise LoweringError(f"a select of {e.dtype} by {e.condition.dtype}: the lanes differ")
    return out.assign(f"select {register_type(e.condition.dtype)} {c}, {t} {a}, {t} {b}")


def bind(out: Emitter, var: Var, value: Expr) -> None:
    """Binds `var` to `value`: as index arithmetic if `value` is that, else as a register."""
    if value.dtype.is_integer and value.dtype.lanes == 1 and is_index(out, value):
        out.scope.index[var] = out.scalar_index(value)
    elif value.dtype.is_handle and isinstance(value, Var) and value in out.scope.buffers:
        out.scope.buffers[var] = out.scope.buffers[value]
    else:
        out.scope.data[var] = out.value(value)


def emit_let(out: Emitter, e: Let) -> str:
    bind(out, e.var, e.value)
    return out.value(e.body)
