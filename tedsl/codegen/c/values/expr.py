"""Emits scalar data with the arithmetic of its dtype: one small function per kind of node.

A vector is emitted one lane at a time: `out.lane` says which. So everything here speaks of scalars.
"""

from __future__ import annotations

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import AND, EQUALITY, OR, ORDER, PRODUCT, SUM, UNARY, Piece, call, cast, compared, infix, prefix
from tedsl.codegen.c.text.types import float_text, integer_text, value_type
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
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    StringImm,
    Sub,
    Var,
)

ARITHMETIC: dict[type, tuple[str, str, int]] = {Add: ("add", "+", SUM), Sub: ("sub", "-", SUM), Mul: ("mul", "*", PRODUCT),
    Div: ("div", "/", PRODUCT)}
DIVISIONS: dict[type, str] = {FloorDiv: "floordiv", FloorMod: "floormod", Div: "truncdiv", Mod: "truncmod"}
COMPARISONS = {EQ: ("==", EQUALITY), NE: ("!=", EQUALITY), LT: ("<", ORDER), LE: ("<=", ORDER), GT: (">", ORDER),
               GE: (">=", ORDER)}
TRUE, FALSE = Piece("true"), Piece("false")


def emit_var(out: Emitter, e: Var) -> Emission:
    if e in out.vectors:
        assert out.lane is not None
        return Piece(f"{out.vectors[e]}[{out.lane.text.text}]", depth=0)
    known = out.data.get(e)
    if known is not None:
        return known
    if e in out.index:
        return narrowed(out.index[e], e.dtype)
    if e in out.buffers:
        return Piece(out.buffers[e].name)
    raise InternalError(f"variable {e.name} is used in {out.function.name} where it has no value")
    yield  # a generator


def emit_int(out: Emitter, e: IntImm) -> Emission:
    return constant(e)
    yield


def constant(e: IntImm) -> Piece:
    if e.dtype.is_bool:
        return TRUE if e.value else FALSE
    return Piece(integer_text(e.value, e.dtype), UNARY if e.value < 0 else 10)


def emit_float(out: Emitter, e: FloatImm) -> Emission:
    text = float_text(e.value, e.dtype)
    if "INF" in text or "NAN" in text:
        out.module.math()
    return Piece(text, 10 if text[0].isdigit() or text[0] == "N" or text[0] == "I" else UNARY)
    yield


def emit_string(out: Emitter, e: StringImm) -> Emission:
    raise InternalError(f"the string {e.value!r} is used as a value")
    yield


def narrowed(index: Piece, d: DType) -> Piece:
    """Returns an index as data of dtype `d`: a value that does not fit wraps here, not at an intermediate step."""
    if index.constant is not None and d.min_value is not None and d.max_value is not None:
        value = (index.constant - d.min_value) % (1 << d.bits) + d.min_value if d.is_int else index.constant % (1 << d.bits)
        return constant(IntImm(d.element, value))
    if d.bits == 64 and d.is_int:
        return index
    return cast(value_type(d), index)


# --- arithmetic -------------------------------------------------------------------------------------------------------

def emit_arithmetic(out: Emitter, e: BinaryOp) -> Emission:
    d = e.dtype
    if d.is_integer and out.is_index(e):
        return narrowed((yield e, True), d)
    a, b = (yield e.a, False), (yield e.b, False)
    return arithmetic(out, type(e), d, a, b)


def arithmetic(out: Emitter, kind: type, d: DType, a: Piece, b: Piece) -> Piece:
    """Returns a + b, a - b, a * b, or the quotient of floats."""
    name, operator, rank = ARITHMETIC[kind]
    if d.is_float:
        return rounded(out, d, infix(operator, rank, a, b))
    if d.is_uint and d.bits >= 32:
        return infix(operator, rank, a, b)
    if d.bits < 32 and not (d.is_uint and kind is Mul):  # promoted to int, in which nothing overflows
        return cast(value_type(d), infix(operator, rank, a, b))
    return call(out.module.helper(name, d.element), a, b)


def rounded(out: Emitter, d: DType, piece: Piece) -> Piece:
    """Returns the result of an operation of dtype `d`: 16-bit floats are rounded after each."""
    return call(out.module.helper("round", d.element), piece) if d.bits == 16 else piece


def emit_division(out: Emitter, e: BinaryOp) -> Emission:
    d = e.dtype
    if d.is_float:
        return (yield from emit_arithmetic(out, e))
    if out.is_index(e):
        return narrowed((yield e, True), d)
    a, b = (yield e.a, False), (yield e.b, False)
    return call(out.module.helper(DIVISIONS[type(e)], d.element), a, b)


def emit_extremum(out: Emitter, e: Min | Max) -> Emission:
    d = e.dtype
    if d.is_integer and out.is_index(e):
        return narrowed((yield e, True), d)
    a, b = (yield e.a, False), (yield e.b, False)
    name = "min" if isinstance(e, Min) else "max"
    return call(out.module.helper(("f" if d.is_float else "i") + name, d.element), a, b)


# --- conditions -------------------------------------------------------------------------------------------------------

def emit_compare(out: Emitter, e: CompareOp) -> Emission:
    operator, rank = COMPARISONS[type(e)]
    wide = e.a.dtype.is_integer and out.is_index(e.a) and out.is_index(e.b)
    a, b = (yield e.a, wide), (yield e.b, wide)
    if a.text == b.text and e.a.dtype.is_integer:
        decided = decide(operator, 0, 0)
    elif wide:
        decided = decide(operator, a.low - b.high, a.high - b.low)
    else:
        decided = _decided(operator, e)
    if decided is not None:
        return TRUE if decided else FALSE
    return compared(operator, rank, a, b)


def decide(operator: str, low: int, high: int) -> bool | None:
    """Decides the comparison of a number in [low, high] with 0; None if the interval does not decide it."""
    if operator in ("==", "!="):
        if low > 0 or high < 0:
            return operator == "!="
        return operator == "==" if low == high == 0 else None
    yes, no = {"<": (high < 0, low >= 0), "<=": (high <= 0, low > 0), ">": (low > 0, high <= 0),
               ">=": (low >= 0, high < 0)}[operator]
    return True if yes else False if no else None


def _decided(operator: str, e: CompareOp) -> bool | None:
    """Decides a comparison of data with an end of its range, of which compilers warn."""
    d = e.a.dtype
    if d.min_value is None or d.max_value is None:
        return None
    a, b = (value if (value := constant_of(x)) is not None else None for x in (e.a, e.b))
    low = (d.min_value if a is None else a) - (d.max_value if b is None else b)
    high = (d.max_value if a is None else a) - (d.min_value if b is None else b)
    return decide(operator, low, high)


def constant_of(e: Expr) -> int | None:
    """Returns the integer that stands in every lane of `e`; None if `e` is not a constant."""
    while isinstance(e, Broadcast):
        e = e.value
    return e.value if isinstance(e, IntImm) else None


def emit_logical(out: Emitter, e: And | Or) -> Emission:
    is_and = isinstance(e, And)
    a, b = (yield e.a, False), (yield e.b, False)
    neutral, absorbing = (TRUE, FALSE) if is_and else (FALSE, TRUE)
    if a is absorbing or b is absorbing:
        return absorbing
    if a is neutral or b is neutral:
        return b if a is neutral else a
    rank = AND if is_and else OR
    operator = "&&" if is_and else "||"
    left, right = (p.text if p.rank == rank or p.rank > AND else f"({p.text})" for p in (a, b))
    return Piece(f"{left} {operator} {right}", rank, max(a.depth, b.depth) + 1, a.reads or b.reads)


def emit_not(out: Emitter, e: Not) -> Emission:
    a = yield e.a, False
    return FALSE if a is TRUE else TRUE if a is FALSE else prefix("!", a)


def emit_select(out: Emitter, e: Select) -> Emission:
    """Emits a choice: that C evaluates the chosen side alone cannot be noticed, for both may be evaluated."""
    if e.condition.dtype.lanes not in (1, e.dtype.lanes):
        raise LoweringError(f"a select of {e.dtype} by {e.condition.dtype}: the lanes differ")
    return (yield from emit_choice(out, e, e.condition, e.true_value, e.false_value))


def emit_choice(out: Emitter, e: Expr, condition: Expr, yes: Expr, no: Expr) -> Emission:
    """Emits if_then_else, which evaluates only the chosen side. What both sides come to is computed before."""
    if e.dtype.is_integer and out.is_index(e):
        return narrowed((yield e, True), e.dtype)
    c = yield condition, False
    if c is TRUE or c is FALSE:
        return (yield (yes if c is TRUE else no), False)
    for shared in out.certain.in_both(yes, no):
        out.uses[id(shared)] += 1
        yield shared, False
    return (yield from out.choose(c, value_type(e.dtype), asked(yes), asked(no)))


def asked(e: Expr, wide: bool = False) -> Emission:
    """Emits `e`, as an emission of its own."""
    return (yield e, wide)


# --- bindings and vectors ---------------------------------------------------------------------------------------------

def bind(out: Emitter, var: Var, value: Expr) -> Emission:
    """Binds `var` to `value` from here on: as index arithmetic if it is that, else as data, in a constant of its name."""
    if value.dtype.is_handle and isinstance(value, Var) and value in out.buffers:
        out.buffers[var] = out.buffers[value]
        return FALSE
    wide = value.dtype.is_integer and value.dtype.lanes == 1 and out.is_index(value)
    piece = yield value, wide
    type_ = "int64_t" if wide else value_type(value.dtype)
    if piece.depth or piece.reads or not wide:
        piece = out.temporary(piece, type_, var.name)
    if wide:
        out.index[var] = piece
    else:
        out.data[var] = piece
    return piece


def emit_broadcast(out: Emitter, e: Broadcast) -> Emission:
    return (yield e.value, False)


def emit_ramp(out: Emitter, e: Ramp) -> Emission:
    d = e.dtype.element
    if not d.is_integer:
        raise LoweringError(f"a ramp of {d}: only integers make ramps")
    if out.is_index(e):
        return narrowed((yield e, True), d)
    base, stride = (yield e.base, False), (yield e.stride, False)
    assert out.lane is not None
    moved = arithmetic(out, Mul, d, stride, cast(value_type(d), out.lane.text))
    return arithmetic(out, Add, d, base, moved)


def named(operation: str, d: DType) -> str:
    """Returns the name that C's library gives a function of floats: sinf for float."""
    return operation if d.bits == 64 else operation + "f"


