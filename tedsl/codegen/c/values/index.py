"""Emits index arithmetic: in `int64_t`, with the bounds of every value, so that nothing overflows unnoticed.

Where the bounds do not prove that a sum or a product fits 64 bits it is computed by a helper function that wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.codegen.c.emitter import Emission, Emitter
from tedsl.codegen.c.text.piece import INT64_MAX, INT64_MIN, PRODUCT, SUM, Piece, call, cast, infix, number
from tedsl.codegen.c.values.expr import DIVISIONS, FALSE, TRUE, asked, bind
from tedsl.errors import InternalError
from tedsl.ir import expr as ir
from tedsl.ir.dtype import INT64
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.index_arithmetic import widens

_NAMES: dict[type, tuple[str, str, int]] = {ir.Add: ("add", "+", SUM), ir.Sub: ("sub", "-", SUM), ir.Mul: ("mul", "*", PRODUCT)}


def index_leaf(out: Emitter, e: ir.Expr) -> Emission:
    """Emits a node that is not index arithmetic: a value of its dtype, extended to 64 bits."""
    d = e.dtype
    if isinstance(e, ir.IntImm):
        return number(e.value)
    value = yield e, False
    low, high = (d.min_value, d.max_value) if d.bits < 64 else (INT64_MIN, INT64_MAX)
    if d.is_bool:
        low, high = 0, 1
    assert low is not None and high is not None
    if d.bits == 64 and d.is_int:
        return value._replace(low=low, high=high)
    return cast("int64_t", value)._replace(low=low, high=high)


def index_var(out: Emitter, e: ir.Var) -> Emission:
    known = out.index.get(e)
    return known if known is not None else (yield from index_leaf(out, e))


def index_arithmetic(out: Emitter, e: ir.BinaryOp) -> Emission:
    a, b = (yield e.a, True), (yield e.b, True)
    return combined(out, type(e), a, b)


def combined(out: Emitter, kind: type, a: Piece, b: Piece) -> Piece:
    """Returns a + b, a - b or a * b."""
    if kind is ir.Mul:
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(corners), max(corners)
    else:
        low, high = (a.low + b.low, a.high + b.high) if kind is ir.Add else (a.low - b.high, a.high - b.low)
    if low == high:
        return number(low) if INT64_MIN <= low <= INT64_MAX else _wrapping(out, kind, a, b)
    neutral = 1 if kind is ir.Mul else 0
    if b.constant == neutral:
        return a
    if a.constant == neutral and kind is not ir.Sub:
        return b
    if not INT64_MIN <= low <= high <= INT64_MAX:
        return _wrapping(out, kind, a, b)
    _, operator, rank = _NAMES[kind]
    if kind is ir.Add and b.constant is not None and b.constant < 0 and b.constant > INT64_MIN:
        operator, b = "-", number(-b.constant)
    return infix(operator, rank, a, b)._replace(low=low, high=high)


def _wrapping(out: Emitter, kind: type, a: Piece, b: Piece) -> Piece:
    return call(out.module.helper(_NAMES[kind][0], INT64), a, b)


def index_division(out: Emitter, e: ir.BinaryOp) -> Emission:
    a, b = (yield e.a, True), (yield e.b, True)
    kind = type(e)
    low, high = _division_bounds(kind, a, b)
    if a.low >= 0 and b.low > 0:
        operator = "/" if kind in (ir.FloorDiv, ir.Div) else "%"
        return infix(operator, PRODUCT, a, b)._replace(low=low, high=high)
    return call(out.module.helper(DIVISIONS[kind], INT64), a, b)._replace(low=low, high=high)


def _division_bounds(kind: type, a: Piece, b: Piece) -> tuple[int, int]:
    if b.low > 0 and kind is ir.FloorMod:
        return (a.low, a.high) if a.low >= 0 and a.high < b.low else (0, b.high - 1)
    if b.low > 0 and kind is ir.FloorDiv:
        corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(corners), max(corners)
    size = max(abs(a.low), abs(a.high), abs(b.low), abs(b.high))
    return max(-size, INT64_MIN), min(size, INT64_MAX)


def index_extremum(out: Emitter, e: ir.Min | ir.Max) -> Emission:
    a, b = (yield e.a, True), (yield e.b, True)
    is_min = isinstance(e, ir.Min)
    if a.high <= b.low:
        return a if is_min else b
    if b.high <= a.low:
        return b if is_min else a
    best = min if is_min else max
    return call(out.module.helper("imin" if is_min else "imax", INT64), a, b)._replace(low=best(a.low, b.low),
                                                                                     high=best(a.high, b.high))


def index_cast(out: Emitter, e: ir.Cast) -> Emission:
    """Emits a cast as index arithmetic where it keeps the value: it widens, or it narrows a value that provably fits."""
    if not e.value.dtype.is_integer:
        return (yield from index_leaf(out, e))
    if widens(e.value.dtype, e.dtype):
        return (yield e.value, True)
    if out.is_index(e.value) and e.dtype.min_value is not None and e.dtype.max_value is not None:
        inner = yield e.value, True
        if e.dtype.min_value <= inner.low and inner.high <= min(e.dtype.max_value, INT64_MAX):
            return inner
    return (yield from index_leaf(out, e))


def index_choice(out: Emitter, e: ir.Select | ir.Call) -> Emission:
    condition, yes, no = (e.condition, e.true_value, e.false_value) if isinstance(e, ir.Select) else e.args
    if not (out.is_index(yes) and out.is_index(no)):
        return (yield from index_leaf(out, e))
    c = yield condition, False
    if c is TRUE or c is FALSE:
        return (yield (yes if c is TRUE else no), True)
    return (yield from out.choose(c, "int64_t", asked(yes, True), asked(no, True)))


def index_call(out: Emitter, e: ir.Call) -> Emission:
    return (yield from (index_choice if e.op is IF_THEN_ELSE else index_leaf)(out, e))


def index_let(out: Emitter, e: ir.Let) -> Emission:
    yield from bind(out, e.var, e.value)
    return (yield e.body, True)


def index_ramp(out: Emitter, e: ir.Ramp) -> Emission:
    if out.lane is None:
        raise InternalError("a ramp outside of a vector")
    base, stride = (yield e.base, True), (yield e.stride, True)
    lane = out.lane.text
    if lane.constant is None:
        lane = lane._replace(low=0, high=e.lanes - 1)
    return combined(out, ir.Add, base, combined(out, ir.Mul, lane, stride) if stride.constant != 1 else lane)


def index_broadcast(out: Emitter, e: ir.Broadcast) -> Emission:
    return (yield e.value, True)


INDEX: dict[type, Callable[[Any, Any], Emission]] = {
    ir.IntImm: index_leaf, ir.Var: index_var, ir.SizeVar: index_var, ir.Add: index_arithmetic, ir.Sub: index_arithmetic,
    ir.Mul: index_arithmetic, ir.FloorDiv: index_division, ir.FloorMod: index_division, ir.Div: index_division,
    ir.Mod: index_division, ir.Min: index_extremum, ir.Max: index_extremum, ir.Cast: index_cast, ir.Let: index_let,
    ir.Ramp: index_ramp, ir.Broadcast: index_broadcast, ir.Select: index_choice, ir.Call: index_call,
}
