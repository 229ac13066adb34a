"""Rules for Cast: casts through another type that keeps the value, and numbers made of bools."""

from __future__ import annotations

from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, DType, dtype
from tedsl.ir.expr import Add, Cast, CompareOp, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, Sub, Var

# The bits of the significand, with the leading one: integers up to 2**bits are exact.
_EXACT = {dtype("float16"): 11, dtype("bfloat16"): 8, dtype("float32"): 24, dtype("float64"): 53}


def fold_cast(e: Cast, known: Bounds) -> Expr | None:
    """Returns a simpler form of `e`, or None."""
    folded = build.cast(e.dtype, e.value)
    if not isinstance(folded, Cast):
        return folded
    inner = e.value
    if not isinstance(inner, Cast):
        return _narrow(e, known)
    if e.dtype.lanes != 1:
        return None
    if e.dtype is BOOL and inner.value.dtype is BOOL and inner.dtype.is_integer:   # bool(int(p)) → p
        return inner.value
    if not e.dtype.is_integer or not inner.value.dtype.is_integer:
        return None
    if _holds(inner.dtype, inner.value.dtype) and _in_type(inner.value, known):    # int32(int64(x)) → int32(x)
        return build.cast(e.dtype, inner.value)
    x = known.sum(inner.value)
    if inner.dtype.is_integer and known.fits(x, inner.dtype) and known.fits(x, e.dtype):
        return build.cast(e.dtype, inner.value)                                    # int32(int8(x)) → x if x fits int8
    return _through_float(e, inner, known) if inner.dtype in _EXACT else None


_KEPT_NARROW = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)
MAX_NARROWED = 8  # nodes between a cast and the casts below it


def _narrow(e: Cast, known: Bounds) -> Expr | None:
    """Simplifies int32(int64(x) // 4) → x // 4: integer arithmetic on casts of narrower values, all of which fit."""
    if not isinstance(e.value, _KEPT_NARROW) or not e.value.dtype.is_integer or not e.dtype.is_integer or e.dtype.lanes != 1:
        return None
    if not _holds(e.value.dtype, e.dtype):
        return None  # what wraps in the narrower type fits the wider one
    return _narrowed(e.value, e.dtype, known, [MAX_NARROWED])


def _narrowed(node: Expr, dtype: DType, known: Bounds, left: list[int]) -> Expr | None:
    """Returns the value of `node` as an expression of `dtype` without casts of the results, or None."""
    left[0] -= 1
    if isinstance(node, IntImm):
        assert dtype.min_value is not None and dtype.max_value is not None
        return IntImm(dtype, node.value) if dtype.min_value <= node.value <= dtype.max_value else None
    if isinstance(node, Cast):
        return node.value if node.value.dtype is dtype and _holds(node.dtype, dtype) and _in_type(node.value, known) else None
    if left[0] < 0 or not isinstance(node, _KEPT_NARROW):
        return None
    among_operands = isinstance(node, (Min, Max)) or (
        isinstance(node, (FloorDiv, FloorMod, Div, Mod)) and isinstance(node.b, IntImm) and node.b.value > 0)
    if not among_operands and not known.fits(known.sum(node), dtype):
        return None
    a = _narrowed(node.a, dtype, known, left)
    b = None if a is None else _narrowed(node.b, dtype, known, left)
    kind: Any = type(node)
    return None if b is None else kind(a, b)


def _in_type(value: Expr, known: Bounds) -> bool:
    """Tells whether a value is one of its type. Index arithmetic may exceed int32; then the casts wrap it."""
    return isinstance(value, Var) or known.fits(known.sum(value), value.dtype)


def _holds(wide: DType, narrow: DType) -> bool:
    """Tells whether each value of one type of integers is one of the other."""
    ends = wide.min_value, narrow.min_value, narrow.max_value, wide.max_value
    return None not in ends and list(ends) == sorted(ends)  # type: ignore[type-var]


def _through_float(e: Cast, inner: Cast, known: Bounds) -> Expr | None:
    """Simplifies int(float(x)) → int(x) for integers x that both types represent."""
    exact = 1 << _EXACT[inner.dtype]
    low, high = known.range(inner.value)
    least, most = e.dtype.min_value, e.dtype.max_value
    if low is None or high is None or least is None or most is None or max(-exact, least) > low or min(exact, most) < high:
        return None
    return build.cast(e.dtype, inner.value)


def compare_number_of_bool(e: CompareOp) -> Expr | None:
    """Simplifies int(p) != 0 → p, int(p) < 1 → !p, int(p) < 2 → true: a comparison of a bool's number with a constant."""
    for cast, other in ((e.a, e.b), (e.b, e.a)):
        if isinstance(cast, Cast) and cast.value.dtype is BOOL and isinstance(other, IntImm):
            kind: Any = type(e)
            no, yes = (build.fold(kind, *((IntImm(cast.dtype, n), other) if cast is e.a else (other, IntImm(cast.dtype, n))))
                       for n in (0, 1))
            if not isinstance(no, IntImm) or not isinstance(yes, IntImm):
                return None
            if no.value == yes.value:
                return yes
            return cast.value if yes.value else build.logical_not(cast.value)
    return None
