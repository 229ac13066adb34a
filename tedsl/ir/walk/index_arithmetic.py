"""Which expressions are index arithmetic: made of constants, loop variables and sizes alone, in int32 or int64.

They are numbers that never wrap on the way (the head of `tedsl/ir/expr.py`): they are evaluated in 64 bits, and the result
becomes a value of its dtype where it meets data.
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.ir.dtype import DType
from tedsl.ir.expr import (
    Add,
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

_INNER = frozenset((Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max, Ramp, Broadcast))


def is_index_arithmetic(root: Expr, is_index_var: Callable[[Var], bool]) -> bool:
    """Whether no step of `root` can wrap. is_index_var: whether an integer variable stands for such a number itself."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is IntImm or isinstance(node, Var):
            if not node.dtype.is_integer or (kind is not IntImm and not is_index_var(node)):  # type: ignore[arg-type]
                return False
        elif kind in _INNER:
            if id(node) not in seen:
                seen.add(id(node))
                if not node.dtype.is_int or node.dtype.bits < 32:  # narrow and unsigned arithmetic is data, it wraps
                    return False
                stack.extend(node.child_nodes())  # type: ignore[arg-type]
        elif isinstance(node, Cast) and widens(node.value.dtype, node.dtype):
            stack.append(node.value)
        elif is_choice(node):
            stack.extend(node.child_nodes()[1:])  # type: ignore[arg-type]
        else:
            return False
    return True


def is_choice(node: Expr) -> bool:
    """Whether `node` is one of two integers, by a condition."""
    return (isinstance(node, Select) or (isinstance(node, Call) and node.op.name == "tir.if_then_else")) and (
        node.dtype.is_int and node.dtype.bits >= 32)


def widens(source: DType, target: DType) -> bool:
    """Whether a cast from `source` to `target` keeps every number."""
    return source.is_integer and target.is_integer and (
        (source.code == target.code and source.bits <= target.bits) or (source.is_uint and source.bits < target.bits))
