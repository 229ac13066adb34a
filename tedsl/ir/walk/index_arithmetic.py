"""Recognition of index arithmetic: expressions of constants, loop variables, sizes and places within lines of memory alone, in
int32 or int64.

It never wraps in intermediate steps (the head of `tedsl/ir/expr.py`): it is evaluated in 64 bits, and the result is converted
to its dtype where it meets data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import (
    Add,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
)
from tedsl.ir.ops import ELEMENTS_PAST_LINE, IF_THEN_ELSE

_ARITHMETIC = frozenset((Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max))


def is_index_arithmetic(root: Expr, is_index_var: Callable[[Var], bool], known: dict[Expr, bool]) -> bool:
    """Whether `root` is index arithmetic, no step of which wraps.

    is_index_var: whether an integer variable holds index arithmetic. known: a cache of results for inner nodes, kept between
    calls, as deep expressions are queried level by level.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        parts = _operands(node)
        answer: bool | None = False
        if parts is not None:
            answer = _all(parts, is_index_var, known)
        if answer is None:
            stack.extend(part for part in parts or () if not isinstance(part, Var) and part not in known)
        else:
            known[node] = answer
            stack.pop()
    return known[root]


def _operands(node: Expr) -> Sequence[Expr] | None:
    """The operands that must be index arithmetic for `node` to be; None if `node` is data in any case."""
    wide = node.dtype.is_int and node.dtype.bits >= 32  # narrow and unsigned arithmetic is data, it wraps
    if isinstance(node, BinaryOp):
        return (node.a, node.b) if wide and type(node) in _ARITHMETIC else None
    if isinstance(node, (IntImm, Var)):
        return (node,) if node.dtype.is_integer else None
    if isinstance(node, Cast):
        return (node.value,) if widens(node.value.dtype, node.dtype) else None
    if isinstance(node, Call):
        return node.args[1:] if is_choice(node) or node.op is ELEMENTS_PAST_LINE else None
    if isinstance(node, Select):
        return (node.true_value, node.false_value) if wide else None
    if isinstance(node, Ramp):
        return (node.base, node.stride) if wide else None
    return (node.value,) if isinstance(node, Broadcast) and wide else None


def _all(parts: Sequence[Expr], is_index_var: Callable[[Var], bool], known: dict[Expr, bool]) -> bool | None:
    """Whether all `parts` are index arithmetic; None if some are not known yet and none is known to be data."""
    answer: bool | None = True
    for part in parts:
        is_index = True if type(part) is IntImm and part.dtype.is_integer else \
            part.dtype.is_integer and is_index_var(part) if isinstance(part, Var) else known.get(part)
        if is_index is False:
            return False
        if is_index is None:
            answer = None
    return answer


def is_choice(node: Expr) -> bool:
    """Whether `node` is a Select or if_then_else between two integers."""
    return (isinstance(node, Select) or (isinstance(node, Call) and node.op is IF_THEN_ELSE)) and (
        node.dtype.is_int and node.dtype.bits >= 32)


def widens(source: DType, target: DType) -> bool:
    """Whether a cast from integer dtype `source` to `target` preserves every value."""
    return source.is_integer and target.is_integer and (
        (source.code == target.code and source.bits <= target.bits) or (source.is_uint and source.bits < target.bits))


_LOOKED_INTO = 4  # levels of an index: parts may be shared, and are looked at once for each use


def difference(a: Expr, b: Expr) -> Expr:
    """Returns a - b without what both begin with: (x + y) - x is y."""
    if alike(a, b):
        return build.const(0, a.dtype)
    return a.b if type(a) is Add and alike(a.a, b) else build.sub(a, b)


def alike(a: Expr, b: Expr, depth: int = _LOOKED_INTO) -> bool:
    """Tells whether two indices are written alike, as far as it looks into them."""
    if a is b:
        return True
    if type(a) is not type(b) or a.dtype is not b.dtype:
        return False
    if isinstance(a, BinaryOp) and isinstance(b, BinaryOp):
        return depth > 0 and alike(a.a, b.a, depth - 1) and alike(a.b, b.b, depth - 1)
    return isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value


def wraps(e: Expr) -> bool:
    """Tells whether `e` must be computed as data even inside an index: narrow and unsigned arithmetic wraps there too."""
    return type(e) in _WRAPPING and not (e.dtype.is_int and e.dtype.bits >= 32)


_WRAPPING = frozenset((Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod))
