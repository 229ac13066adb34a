"""Index arithmetic: expressions over loop variables and sizes, evaluated in 64 bits.

Vectors of indices stay a base and a stride as long as possible: a comparison of such a ramp with a bound (a masked tail) is
one vector comparison of small constants.
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm import index as ix
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.index import INT64_MAX, INT64_MIN, AnyIndex, Index, Lanes, Ramp
from tedsl.codegen.llvm.types import int_splat, steps, suffix, vector_of
from tedsl.codegen.llvm.values.integer import Integers
from tedsl.ir import expr as ir
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.walk.index_arithmetic import is_index_arithmetic, widens

# --- which expressions ------------------------------------------------------------------------------------------------

def is_index(out: Emitter, e: ir.Expr) -> bool:
    """Whether `e` is made of constants, loop variables and sizes alone, in int32 or int64: then no step of it can wrap."""
    known = out.purity.get(e)
    return known if known is not None else is_index_arithmetic(e, out.index_vars.__contains__, out.purity)


# --- scalars ----------------------------------------------------------------------------------------------------------------

def index_int(out: Emitter, e: ir.IntImm) -> AnyIndex:
    return ix.constant(e.value)


def index_var(out: Emitter, e: ir.Var) -> AnyIndex:
    known = out.index_vars.get(e)
    return known if known is not None else index_leaf(out, e)


def index_leaf(out: Emitter, e: ir.Expr) -> AnyIndex:
    """Anything else: a value of its dtype, extended."""
    d, value = e.dtype, out.value(e)
    low, high = (d.min_value, d.max_value) if d.bits < 64 else (INT64_MIN, INT64_MAX)
    assert low is not None and high is not None
    if d.lanes > 1:
        return _vector_leaf(out, value, d, low, high)
    if isinstance(e, ir.IntImm):
        return ix.constant(e.value)
    if d.bits < 64:
        value = out.assign(f"{'sext' if d.is_int else 'zext'} i{d.bits} {value} to i64")
    return ix.atom_index(out.atom(value, out.level, low, high))


def _vector_leaf(out: Emitter, value: str, d: DType, low: int, high: int) -> Lanes:
    bits = 64 if d.bits == 64 or (d.bits == 32 and not d.is_int) else 32
    if d.bits < bits:
        value = out.assign(f"{'sext' if d.is_int else 'zext'} {vector_of(f'i{d.bits}', d.lanes)} {value} to "
                           f"{vector_of(f'i{bits}', d.lanes)}")
    return Lanes(value, bits, d.lanes, low, high)


def index_add(out: Emitter, e: ir.Add | ir.Sub) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    sign = 1 if isinstance(e, ir.Add) else -1
    if isinstance(a, Index) and isinstance(b, Index):
        return ix.add(a, b, sign)
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        return Ramp(ix.add(a.base, b.base, sign), a.stride + sign * b.stride, a.lanes)
    if isinstance(a, Lanes) and isinstance(b, Ramp) and not b.stride:
        return Lanes(a.name, a.bits, a.lanes, a.low, a.high, ix.add(a.base, b.base, sign))
    if isinstance(b, Lanes) and isinstance(a, Ramp) and not a.stride and sign == 1:
        return Lanes(b.name, b.bits, b.lanes, b.low, b.high, ix.add(a.base, b.base))
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    bounds = (al + bl, ah + bh) if sign == 1 else (al - bh, ah - bl)
    return _lanes_op(out, "add" if sign == 1 else "sub", a, b, bounds)


def index_mul(out: Emitter, e: ir.Mul) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    if isinstance(a, Index) and isinstance(b, Index):
        return _product(out, a, b)
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        if a.stride:
            a, b = b, a
        if not a.stride and (not b.stride or not a.base.terms):
            return Ramp(_product(out, a.base, b.base), b.stride * a.base.const if b.stride else 0, a.lanes)
    return _lanes_op(out, "mul", a, b, _product_bounds(a.bounds(), b.bounds()))


def _product_bounds(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _product(out: Emitter, a: Index, b: Index) -> Index:
    if not a.terms:
        return ix.scale(b, a.const)
    if not b.terms:
        return ix.scale(a, b.const)
    (x, lx), (y, ly) = out.register(a), out.register(b)
    low, high = _product_bounds(a.bounds(), b.bounds())
    level = max(lx, ly)
    if not INT64_MIN <= low <= high <= INT64_MAX:
        low, high = INT64_MIN, INT64_MAX
    return ix.atom_index(out.atom(out.pure(f"mul i64 {x}, {y}", level), level, low, high))


_DIVISIONS: dict[type[ir.Expr], Callable[[Integers, str, str, int | None, bool], str]] = {
    ir.FloorDiv: Integers.floordiv, ir.FloorMod: Integers.floormod, ir.Div: Integers.truncdiv, ir.Mod: Integers.truncmod}


def index_division(out: Emitter, e: ir.BinaryOp) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and not a.stride and not b.stride:
        return Ramp(_divide(out, type(e), a.base, b.base), 0, a.lanes)
    if isinstance(a, Index) and isinstance(b, Index):
        return _divide(out, type(e), a, b)
    bounds = _division_bounds(type(e), a.bounds(), b.bounds())
    bits = _common_bits(a, b, bounds)
    lanes = e.dtype.lanes
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    divisor = b.base.const if isinstance(b, Ramp) and not b.stride and not b.base.terms else None
    positive = a.bounds()[0] >= 0 and b.bounds()[0] > 0
    result = _DIVISIONS[type(e)](Integers(out.assign, bits, lanes, True), x, y, divisor, positive)
    return Lanes(result, bits, lanes, *bounds)


def _divide(out: Emitter, kind: type[ir.Expr], a: Index, b: Index) -> Index:
    divisor = b.const if not b.terms else None
    if divisor:
        exact = _divide_exactly(kind, a, divisor)
        if exact is not None:
            return exact
    low, high = _division_bounds(kind, a.bounds(), b.bounds())
    if low == high:
        return ix.constant(low)
    (x, lx), (y, ly) = out.register(a), out.register(b)
    level = max(lx, ly)
    positive = a.bounds()[0] >= 0 and a.bounds()[1] <= INT64_MAX and b.bounds()[0] > 0
    of = Integers(lambda rhs: out.pure(rhs, level), 64, 1, True)
    return ix.atom_index(out.atom(_DIVISIONS[kind](of, x, y, divisor, positive), level, low, high))


def _divide_exactly(kind: type[ir.Expr], a: Index, divisor: int) -> Index | None:
    """(c*k + rest) // c = k and (c*k + rest) % c = rest for a constant rest in [0, c)."""
    if kind not in (ir.FloorDiv, ir.FloorMod) or divisor < 0 or any(c % divisor for c in a.terms.values()):
        return None
    low, high = a.bounds()
    if not INT64_MIN <= low <= high <= INT64_MAX:
        return None
    if kind is ir.FloorMod:
        return ix.constant(a.const % divisor)
    return Index({atom: c // divisor for atom, c in a.terms.items()}, a.const // divisor)


def _division_bounds(kind: type[ir.Expr], a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if b[0] > 0 and kind is ir.FloorMod:
        return (a[0], a[1]) if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
    if b[0] > 0 and kind is ir.FloorDiv:
        corners = [x // y for x in a for y in b]
        return min(corners), max(corners)
    size = max(abs(a[0]), abs(a[1]), abs(b[0]), abs(b[1]))
    return max(-size, INT64_MIN), min(size, INT64_MAX)


def index_extremum(out: Emitter, e: ir.Min | ir.Max) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    best = min if isinstance(e, ir.Min) else max
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    for one, (_, high), other, (low, _) in ((a, (al, ah), b, (bl, bh)), (b, (bl, bh), a, (al, ah))):
        if high <= low:  # one <= other, always
            return one if isinstance(e, ir.Min) else other
    name = "smin" if isinstance(e, ir.Min) else "smax"
    bounds = best(al, bl), best(ah, bh)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and not a.stride and not b.stride:
        return Ramp(_extremum(out, name, a.base, b.base, bounds), 0, a.lanes)
    if isinstance(a, Index) and isinstance(b, Index):
        return _extremum(out, name, a, b, bounds)
    bits, lanes = _common_bits(a, b, bounds), e.dtype.lanes
    t, of = vector_of(f"i{bits}", lanes), suffix(dtype(f"int{bits}x{lanes}"))
    symbol = out.module.declare(f"llvm.{name}.{of}", f"declare {t} @llvm.{name}.{of}({t}, {t})")
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    return Lanes(out.here(f"call {t} {symbol}({t} {x}, {t} {y})"), bits, lanes, *bounds)


def _extremum(out: Emitter, name: str, a: Index, b: Index, bounds: tuple[int, int]) -> Index:
    (x, lx), (y, ly) = out.register(a), out.register(b)
    symbol = out.module.declare(f"llvm.{name}.i64", f"declare i64 @llvm.{name}.i64(i64, i64)")
    level = max(lx, ly)
    return ix.atom_index(out.atom(out.pure(f"call i64 {symbol}(i64 {x}, i64 {y})", level), level, *bounds))


def index_cast(out: Emitter, e: ir.Cast) -> AnyIndex:
    """Widening keeps the value; narrowing does if it provably fits."""
    if not e.value.dtype.is_integer:
        return index_leaf(out, e)
    if widens(e.value.dtype, e.dtype):
        return out.index(e.value)
    if is_index(out, e.value) and e.dtype.min_value is not None and e.dtype.max_value is not None:
        inner = out.index(e.value)
        low, high = inner.bounds()
        if e.dtype.min_value <= low and high <= min(e.dtype.max_value, INT64_MAX):
            return inner
    return index_leaf(out, e)


def index_choice(out: Emitter, e: ir.Select | ir.Call) -> AnyIndex:
    """A select or if_then_else of two indices; both sides are free of memory, so both are computed."""
    condition, yes, no = (e.condition, e.true_value, e.false_value) if isinstance(e, ir.Select) else e.args
    if not (is_index(out, yes) and is_index(out, no)):
        return index_leaf(out, e)
    chosen, a, b = out.value(condition), out.index(yes), out.index(no)
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    bounds = max(min(al, bl), INT64_MIN), min(max(ah, bh), INT64_MAX)
    if isinstance(a, Index) and isinstance(b, Index):
        (x, _), (y, _) = out.register(a), out.register(b)
        return ix.atom_index(out.atom(out.here(f"select i1 {chosen}, i64 {x}, i64 {y}"), out.level, *bounds))
    bits, lanes = _common_bits(a, b, bounds), e.dtype.lanes
    t, mask = vector_of(f"i{bits}", lanes), vector_of("i1", condition.dtype.lanes)
    return Lanes(out.assign(f"select {mask} {chosen}, {t} {as_lanes(out, a, bits)}, {t} {as_lanes(out, b, bits)}"), bits, lanes,
                 *bounds)


def index_call(out: Emitter, e: ir.Call) -> AnyIndex:
    return index_choice(out, e) if e.op.name == "tir.if_then_else" else index_leaf(out, e)


def index_let(out: Emitter, e: ir.Let) -> AnyIndex:
    from tedsl.codegen.llvm.expr import bind

    bind(out, e.var, e.value)
    return out.index(e.body)


def index_ramp(out: Emitter, e: ir.Ramp) -> AnyIndex:
    base, stride = out.scalar_index(e.base), out.scalar_index(e.stride)
    if not stride.terms:
        return Ramp(base, stride.const, e.lanes)
    low, high = _product_bounds(stride.bounds(), (0, e.lanes - 1))
    text, level = out.register(stride)
    moved = f"mul {vector_of('i64', e.lanes)} {splat_register(out, text, 'i64', e.lanes, level)}, {steps(64, 1, e.lanes)}"
    return Lanes(out.pure(moved, level), 64, e.lanes, max(low, INT64_MIN), min(high, INT64_MAX), base)


def index_broadcast(out: Emitter, e: ir.Broadcast) -> AnyIndex:
    return Ramp(out.scalar_index(e.value), 0, e.lanes)


# --- vectors ----------------------------------------------------------------------------------------------------------------

def splat_register(out: Emitter, value: str, element: str, lanes: int, level: int) -> str:
    """The scalar register or constant `value` in every lane."""
    if value[0] != "%":
        return "zeroinitializer" if value == "0" else f"splat ({element} {value})"
    t = f"<{lanes} x {element}>"
    first = out.pure(f"insertelement {t} poison, {element} {value}, i64 0", level)
    return out.pure(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer", level)


def narrow(out: Emitter, index: Index, d: DType) -> str:
    """The value of a scalar index as data of dtype `d`."""
    if not index.terms:
        from tedsl.ir.dtype import wrap_integer

        return str(wrap_integer(index.const, d))
    text, level = out.register(index)
    return text if d.bits == 64 else out.pure(f"trunc i64 {text} to i{d.bits}", level)


def ramp_lanes(out: Emitter, ramp: Ramp, bits: int) -> str:
    """A ramp in a vector register of integers of that width, wrapped to it."""
    text, level = out.register(ramp.base)
    element, t = f"i{bits}", vector_of(f"i{bits}", ramp.lanes)
    if text[0] == "%" and bits < 64:
        text = out.pure(f"trunc i64 {text} to {element}", level)
    elif bits < 64:
        half = 1 << (bits - 1)
        text = str(((int(text) + half) & (2 * half - 1)) - half)
    base = splat_register(out, text, element, ramp.lanes, level)
    if not ramp.stride:
        return base
    if base == "zeroinitializer":
        return steps(bits, ramp.stride, ramp.lanes)
    return out.pure(f"add {t} {base}, {steps(bits, ramp.stride, ramp.lanes)}", level)


def as_lanes(out: Emitter, value: AnyIndex, bits: int) -> str:
    """A vector index in a register of that width; it is known to fit."""
    if isinstance(value, Ramp):
        return ramp_lanes(out, value, bits)
    assert isinstance(value, Lanes)
    text, t = value.name, vector_of(f"i{bits}", value.lanes)
    if value.bits != bits:
        name = "sext" if value.bits < bits else "trunc"
        text = out.assign(f"{name} {vector_of(f'i{value.bits}', value.lanes)} {text} to {t}")
    if not value.base.terms and not value.base.const:
        return text
    return out.assign(f"add {t} {text}, {ramp_lanes(out, Ramp(value.base, 0, value.lanes), bits)}")


def _common_bits(a: AnyIndex, b: AnyIndex, bounds: tuple[int, int]) -> int:
    return 32 if all(low >= -2**31 and high < 2**31 for low, high in (a.bounds(), b.bounds(), bounds)) else 64


def _lanes_op(out: Emitter, name: str, a: AnyIndex, b: AnyIndex, bounds: tuple[int, int]) -> Lanes:
    bits = _common_bits(a, b, bounds)
    lanes = a.lanes if not isinstance(a, Index) else 1
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    return Lanes(out.assign(f"{name} {vector_of(f'i{bits}', lanes)} {x}, {y}"), bits, lanes,
                 max(bounds[0], INT64_MIN), min(bounds[1], INT64_MAX))


# --- as values ------------------------------------------------------------------------------------------------------------

def leaves_its_dtype(out: Emitter, *operands: ir.Expr) -> bool:
    """Whether one of the `operands`, all of them index arithmetic of 32 bits, may be a number that 32 bits do not hold."""
    return all(e.dtype.is_int and e.dtype.bits == 32 and is_index(out, e) for e in operands) and not all(
        low >= -2**31 and high < 2**31 for low, high in (out.index(e).bounds() for e in operands))


def as_value(out: Emitter, index: AnyIndex, d: DType) -> str:
    """An index as data of dtype `d`: what does not fit wraps here, not at a step on the way."""
    if isinstance(index, Index):
        return narrow(out, index, d)
    return ramp_lanes(out, index, d.bits) if isinstance(index, Ramp) else as_lanes(out, index, d.bits)


# --- conditions -----------------------------------------------------------------------------------------------------------

def emit_condition(out: Emitter, name: str, a: AnyIndex, b: AnyIndex) -> str:
    """The comparison `name` of two indices: i1, or a vector of them."""
    if isinstance(a, Index) and isinstance(b, Index):
        return _scalar_condition(out, name, a, b)
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        stride = a.stride - b.stride
        if not stride:
            return splat_condition(out, _scalar_condition(out, name, a.base, b.base), a.lanes)
        return _ramp_condition(out, name, stride, ix.add(b.base, a.base, -1), a.lanes)
    bits = _common_bits(a, b, (0, 0))
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    lanes = a.lanes if not isinstance(a, Index) else 1
    return out.assign(f"icmp {name} {vector_of(f'i{bits}', lanes)} {x}, {y}")


def _scalar_condition(out: Emitter, name: str, a: Index, b: Index) -> str:
    low, high = ix.add(a, b, -1).bounds()
    decided = decide(name, low, high)
    if decided is not None:
        return "true" if decided else "false"
    (x, lx), (y, ly) = out.register(a), out.register(b)
    return out.pure(f"icmp {name} i64 {x}, {y}", max(lx, ly))


def decide(name: str, low: int, high: int) -> bool | None:
    """Whether a number in [low, high] compares so with 0, if that is certain."""
    if name in ("eq", "ne"):
        if low > 0 or high < 0:
            return name == "ne"
        return name == "eq" if low == high == 0 else None
    yes, no = {"slt": (high < 0, low >= 0), "sle": (high <= 0, low > 0), "sgt": (low > 0, high <= 0),
               "sge": (low >= 0, high < 0)}[name]
    return True if yes else False if no else None


def splat_condition(out: Emitter, condition: str, lanes: int) -> str:
    """An i1 in every lane."""
    if condition in ("true", "false"):
        return int_splat(1, int(condition == "true"), lanes)
    return splat_register(out, condition, "i1", lanes, out.level)


def _ramp_condition(out: Emitter, name: str, stride: int, limit: Index, lanes: int) -> str:
    """`stride * lane <name> limit`: the limit is clamped to just beyond the lanes; no answer changes, and it fits 32 bits."""
    span = stride * (lanes - 1)
    below, above = min(0, span) - 1, max(0, span) + 1
    low, high = limit.bounds()
    decided = decide(name, min(0, span) - high, max(0, span) - low)
    if decided is not None:
        return int_splat(1, int(decided), lanes)
    text, level = out.register(limit)
    if low < below:
        text = _bound(out, "smax", text, below, level)
    if high > above:
        text = _bound(out, "smin", text, above, level)
    bits = 8 if lanes > 16 and below >= -128 and above < 128 else 32 if below >= -2**31 and above < 2**31 else 64
    element = f"i{bits}"
    if bits < 64:
        text = out.pure(f"trunc i64 {text} to {element}", level) if text[0] == "%" else text
    vector = splat_register(out, text, element, lanes, level)
    return out.pure(f"icmp {name} <{lanes} x {element}> {steps(bits, stride, lanes)}, {vector}", level)


def _bound(out: Emitter, name: str, text: str, limit: int, level: int) -> str:
    symbol = out.module.declare(f"llvm.{name}.i64", f"declare i64 @llvm.{name}.i64(i64, i64)")
    return out.pure(f"call i64 {symbol}(i64 {text}, i64 {limit})", level)
