"""Emits ramps, broadcasts and shuffles as values."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.forms import Ramp as IndexRamp
from tedsl.codegen.llvm.indices.values import is_index
from tedsl.codegen.llvm.indices.vectors import ramp_lanes, splat_register
from tedsl.codegen.llvm.types import register_type, steps
from tedsl.errors import LoweringError
from tedsl.ir.expr import Broadcast, Expr, IntImm, Ramp, Shuffle

_MERGED = 2  # shuffles, one of the result of the other, that LLVM may try to merge
_WIDE = 8  # lanes, below which that takes little time


def emit_ramp(out: Emitter, e: Ramp) -> str:
    d = e.dtype
    if not d.is_integer:
        raise LoweringError(f"a ramp of {d.element}: only integers make ramps")
    if isinstance(e.stride, IntImm) and is_index(out, e.base):
        index = out.index(e)
        assert isinstance(index, IndexRamp)
        return ramp_lanes(out, index, d.bits)
    t, element = register_type(d), register_type(d.element)
    base, stride = (splat_register(out, out.value(x), element, d.lanes, out.level) for x in (e.base, e.stride))
    moved = out.assign(f"mul {t} {stride}, {steps(d.bits, 1, d.lanes)}")
    return out.assign(f"add {t} {base}, {moved}")


def emit_broadcast(out: Emitter, e: Broadcast) -> str:
    value = out.value(e.value)
    element = register_type(e.value.dtype)
    if value[0] != "%" and e.value.dtype.is_float and value.strip("0x") == "":
        return "zeroinitializer"
    return splat_register(out, value, element, e.lanes, out.level)


def emit_shuffle(out: Emitter, e: Shuffle) -> str:
    element, lanes = e.dtype.element, sum(v.dtype.lanes for v in e.vectors)
    count = len(e.indices)
    if len(e.vectors) == 1 and lanes == 1:
        value = out.value(e.vectors[0])
        return value if count == 1 else splat_register(out, value, register_type(element), count, out.level)
    if len(e.vectors) == 2 and lanes == 2 * e.vectors[0].dtype.lanes > 2 and count > 1:
        a, b = (_apart(out, v) for v in e.vectors)
        t = register_type(e.vectors[0].dtype)
        order = out.module.cache.get(e.indices)  # a tile is turned by a few of them
        if order is None:
            order = out.module.cache[e.indices] = _order(_picks(e))
        result = out.assign(f"shufflevector {t} {a}, {t} {b}, <{count} x i32> {order}")
        if a != b:  # what becomes of copies of a row LLVM does merge
            out.shuffles[result] = 1 + min(out.shuffles.get(a, 0), out.shuffles.get(b, 0))
        return result
    picks = _picks(e)
    whole = _joined(out, e, lanes)
    t = register_type(element.with_lanes(lanes))
    if count == 1:
        return out.assign(f"extractelement {t} {whole}, i64 {picks[0]}")
    if picks == list(range(lanes)):
        return whole
    chosen = ", ".join(f"i32 {k}" for k in picks)
    return out.assign(f"shufflevector {t} {whole}, {t} poison, <{count} x i32> <{chosen}>")


def _apart(out: Emitter, e: Expr) -> str:
    """Returns the register of an operand of a shuffle; one that LLVM does not look through, if some shuffles led to it.

    LLVM tries to merge each shuffle with those that its operands come from. Of the 64 of a tile of 16 x 16 floats none can be
    merged, and that takes as long as all the rest of its machine code.
    """
    value, lanes, target = out.value(e), e.dtype.lanes, out.target
    is_register = e.dtype.element == "float32" and lanes * 32 == target.vector_bits and lanes >= _WIDE
    if out.shuffles.get(value, 0) < _MERGED or not is_register or target.architecture != "x86-64":
        return value
    t, name = register_type(e.dtype), f"llvm.arithmetic.fence.v{lanes}f32"  # no instruction
    symbol = out.module.declare(name, f"declare {t} @{name}({t})")
    return out.here(f"call {t} {symbol}({t} {value})")


def _picks(e: Shuffle) -> list[int]:
    return [i.value for i in e.indices if isinstance(i, IntImm)]


def _joined(out: Emitter, e: Shuffle, lanes: int) -> str:
    """Emits all vectors concatenated in one register."""
    if len(e.vectors) == 1:
        return out.value(e.vectors[0])
    element = e.dtype.element
    whole = register_type(element.with_lanes(lanes))
    if all(v.dtype.lanes == 1 for v in e.vectors):
        result = "poison"
        for k, v in enumerate(e.vectors):
            result = out.assign(f"insertelement {whole} {result}, {register_type(element)} {out.value(v)}, i64 {k}")
        return result
    result, have = "poison", 0
    for v in e.vectors:
        count = v.dtype.lanes
        value = out.value(v)
        if count == 1:
            result = out.assign(f"insertelement {whole} {result}, {register_type(element)} {value}, i64 {have}")
        else:
            wide = out.assign(f"shufflevector {register_type(v.dtype)} {value}, {register_type(v.dtype)} poison, "
                              f"<{lanes} x i32> {_order(k if k < count else -1 for k in range(lanes))}")
            merged = _order(k if k < have else lanes + k - have if k < have + count else -1 for k in range(lanes))
            result = out.assign(f"shufflevector {whole} {result}, {whole} {wide}, <{lanes} x i32> {merged}")
        have += count
    return result


def _order(picks: object) -> str:
    return "<" + ", ".join(f"i32 {k}" if k >= 0 else "i32 poison" for k in picks) + ">"  # type: ignore[attr-defined]
