"""The rules by which the emitter evaluates each kind of node of index arithmetic.

Vectors of indices stay a base and a stride as long as possible: a comparison of such a ramp with a bound (a masked tail) is
one vector comparison of small constants.
"""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.expr import COMPARISONS, bind
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.conditions import scalar_condition
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, AnyIndex, Index, Lanes, Ramp
from tedsl.codegen.llvm.indices.values import is_index
from tedsl.codegen.llvm.indices.vectors import as_lanes, common_bits, lanes_op, splat_register
from tedsl.codegen.llvm.types import steps, suffix, vector_of
from tedsl.ir import expr as ir
from tedsl.ir.calls.lines import most_past_line
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.ops import ELEMENTS_PAST_LINE, IF_THEN_ELSE
from tedsl.ir.walk.index_arithmetic import widens


def index_int(out: Emitter, e: ir.IntImm) -> AnyIndex:
    return ix.constant(e.value)


def index_var(out: Emitter, e: ir.Var) -> AnyIndex:
    known = out.scope.index.get(e)
    return known if known is not None else index_leaf(out, e)


def index_leaf(out: Emitter, e: ir.Expr) -> AnyIndex:
    """Emits a node that is not index arithmetic: a value of its dtype, extended to 64 bits."""
    d, value = e.dtype, out.value(e)
    low, high = (d.min_value, d.max_value) if d.bits < 64 else (INT64_MIN, INT64_MAX)
    if isinstance(e, ir.Call) and e.op is ELEMENTS_PAST_LINE:
        low, high = 0, most_past_line(e)
    assert low is not None and high is not None
    if d.lanes > 1:
        return _vector_leaf(out, value, d, low, high)
    if isinstance(e, ir.IntImm):
        return ix.constant(e.value)
    bits = 32 if out.prefers_short and (d.bits < 32 or (d.is_int and d.bits == 32)) else 64
    if d.bits < bits:
        value = out.assign(f"{'sext' if d.is_int else 'zext'} i{d.bits} {value} to i{bits}")
    return ix.atom_index(out.atom(value, out.level, low, high, bits))


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
        return Lanes(a.name, a.bits, a.lanes, a.low, a.high, ix.add(a.base, b.base, sign), a.known)
    if isinstance(b, Lanes) and isinstance(a, Ramp) and not a.stride and sign == 1:
        return Lanes(b.name, b.bits, b.lanes, b.low, b.high, ix.add(a.base, b.base), b.known)
    left, right = _places(a), _places(b)
    if left is not None and right is not None and not isinstance(a, Index) and not isinstance(b, Index):
        both = ix.known_lanes(ix.add(a.base, b.base, sign), tuple(x + sign * y for x, y in zip(left, right)))
        if both is not None:
            return both
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    bounds = (al + bl, ah + bh) if sign == 1 else (al - bh, ah - bl)
    return lanes_op(out, "add" if sign == 1 else "sub", a, b, bounds)


def index_mul(out: Emitter, e: ir.Mul) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    if isinstance(a, Index) and isinstance(b, Index):
        return _product(out, a, b)
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        if a.stride:
            a, b = b, a
        if not a.stride and (not b.stride or not a.base.terms):
            return Ramp(_product(out, a.base, b.base), b.stride * a.base.const if b.stride else 0, a.lanes)
    for lanes, factor in ((a, b), (b, a)):
        if isinstance(lanes, Lanes) and lanes.known is not None and isinstance(factor, Ramp) and not factor.stride \
                and not factor.base.terms:
            by = factor.base.const
            scaled = ix.known_lanes(ix.scale(lanes.base, by), tuple(by * place for place in lanes.known))
            if scaled is not None:
                return scaled
    return lanes_op(out, "mul", a, b, _product_bounds(a.bounds(), b.bounds()))


def _product_bounds(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _product(out: Emitter, a: Index, b: Index) -> Index:
    if not a.terms:
        return ix.scale(b, a.const)
    if not b.terms:
        return ix.scale(a, b.const)
    low, high = _product_bounds(a.bounds(), b.bounds())
    bits, ((x, lx), (y, ly)) = out.sized_register(a, b)
    if bits == 32 and not (low >= -2**31 and high < 2**31):
        bits, (x, lx), (y, ly) = 64, out.register(a), out.register(b)
    level = max(lx, ly)
    if not INT64_MIN <= low <= high <= INT64_MAX:
        low, high = INT64_MIN, INT64_MAX
    return ix.atom_index(out.atom(out.pure(f"mul i{bits} {x}, {y}", level), level, low, high, bits))


def index_extremum(out: Emitter, e: ir.Min | ir.Max) -> AnyIndex:
    a, b = out.index(e.a), out.index(e.b)
    best = min if isinstance(e, ir.Min) else max
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    for chosen, (_, high), other, (low, _) in ((a, (al, ah), b, (bl, bh)), (b, (bl, bh), a, (al, ah))):
        if high <= low:  # one <= other, always
            return chosen if isinstance(e, ir.Min) else other
    name = "smin" if isinstance(e, ir.Min) else "smax"
    bounds = best(al, bl), best(ah, bh)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and not a.stride and not b.stride:
        return Ramp(_extremum(out, name, a.base, b.base, bounds), 0, a.lanes)
    if isinstance(a, Index) and isinstance(b, Index):
        return _extremum(out, name, a, b, bounds)
    known = _constants(a), _constants(b)
    if known[0] is not None and known[1] is not None:
        both = ix.known_lanes(ix.ZERO, tuple(map(best, known[0], known[1])))
        if both is not None:
            return both
    bits, lanes = common_bits(a, b, bounds), e.dtype.lanes
    t, of = vector_of(f"i{bits}", lanes), suffix(dtype(f"int{bits}x{lanes}"))
    symbol = out.module.declare(f"llvm.{name}.{of}", f"declare {t} @llvm.{name}.{of}({t}, {t})")
    x, y = as_lanes(out, a, bits), as_lanes(out, b, bits)
    return Lanes(out.here(f"call {t} {symbol}({t} {x}, {t} {y})"), bits, lanes, *bounds)


def _places(index: AnyIndex) -> tuple[int, ...] | None:
    """Returns how far the lanes of an index are from its base, if all of that is constant."""
    if isinstance(index, Ramp):
        return tuple(index.stride * lane for lane in range(index.lanes))
    return index.known if isinstance(index, Lanes) else None


def _constants(index: AnyIndex) -> tuple[int, ...] | None:
    """Returns the lanes of an index, if all of them are constants."""
    if isinstance(index, Index) or index.base.terms:
        return None
    if isinstance(index, Ramp):
        return tuple(index.base.const + index.stride * lane for lane in range(index.lanes))
    return None if index.known is None else tuple(index.base.const + lane for lane in index.known)


def _extremum(out: Emitter, name: str, a: Index, b: Index, bounds: tuple[int, int]) -> Index:
    bits, ((x, lx), (y, ly)) = out.sized_register(a, b)
    t = f"i{bits}"
    symbol = out.module.declare(f"llvm.{name}.{t}", f"declare {t} @llvm.{name}.{t}({t}, {t})")
    level = max(lx, ly)
    return ix.atom_index(out.atom(out.pure(f"call {t} {symbol}({t} {x}, {t} {y})", level), level, *bounds, bits))


def index_cast(out: Emitter, e: ir.Cast) -> AnyIndex:
    """Emits a cast as index arithmetic where it keeps the value: it widens, or it narrows a value that provably fits."""
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
    """Emits a select or if_then_else of two indices; both sides access no memory, so both are computed."""
    condition, yes, no = (e.condition, e.true_value, e.false_value) if isinstance(e, ir.Select) else e.args
    if not (is_index(out, yes) and is_index(out, no)):
        return index_leaf(out, e)
    a, b = out.index(yes), out.index(no)
    (al, ah), (bl, bh) = a.bounds(), b.bounds()
    bounds = max(min(al, bl), INT64_MIN), min(max(ah, bh), INT64_MAX)
    if isinstance(a, Index) and isinstance(b, Index):
        chosen, level = _choice(out, condition)
        bits, ((x, lx), (y, ly)) = out.sized_register(a, b)
        level = max(level, lx, ly)
        return ix.atom_index(out.atom(out.pure(f"select i1 {chosen}, i{bits} {x}, i{bits} {y}", level), level, *bounds, bits))
    chosen = out.value(condition)
    bits, lanes = common_bits(a, b, bounds), e.dtype.lanes
    t, mask = vector_of(f"i{bits}", lanes), vector_of("i1", condition.dtype.lanes)
    return Lanes(out.assign(f"select {mask} {chosen}, {t} {as_lanes(out, a, bits)}, {t} {as_lanes(out, b, bits)}"), bits, lanes,
                 *bounds)


def _choice(out: Emitter, condition: ir.Expr) -> tuple[str, int]:
    """Emits a scalar condition. Returns the number of the region that defines it, too: the choice stands outside of loops that
    it does not depend on.
    """
    if isinstance(condition, ir.CompareOp) and condition.a.dtype.is_integer and is_index(out, condition.a) and \
            is_index(out, condition.b):
        a, b = out.index(condition.a), out.index(condition.b)
        if isinstance(a, Index) and isinstance(b, Index):
            return scalar_condition(out, COMPARISONS[type(condition)][0], a, b)
    return out.value(condition), out.level


def index_call(out: Emitter, e: ir.Call) -> AnyIndex:
    return index_choice(out, e) if e.op is IF_THEN_ELSE else index_leaf(out, e)


def index_let(out: Emitter, e: ir.Let) -> AnyIndex:
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
