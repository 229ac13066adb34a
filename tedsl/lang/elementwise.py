"""Operators on whole tensors: element by element, with the shapes broadcast as in numpy.

`a + b` is a compute named T_add. Its `op.info` is an ElementwiseOp, its tag "broadcast" for two tensors and "elemwise" for one.
The dtype of the result follows the rules of promotion for elements (`ir/build.py`). Two dimensions fit if they are equal or
one is the constant 1; symbolic ones must be provably equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError, ExpressionError, OptionError, ShapeError
from tedsl.ir import build
from tedsl.ir.dtype import FLOAT32
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr, IntImm
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import variables
from tedsl.lang import arithmetic
from tedsl.lang.declare import define
from tedsl.lang.operation import is_axis_variable
from tedsl.lang.scope import scope_tag
from tedsl.lang.tensor import Tensor
from tedsl.lang.value import as_value, is_array, refuse_array
from tedsl.record import record


@record
class ElementwiseOp:
    """The record of an operator on whole tensors: its name in topi (`operator`), and whether it broadcasts two tensors."""

    operator: str
    broadcasts: bool = False


def _floor_mod(a: Any, b: Any) -> Expr:
    """`a % b` as in numpy: exact for floats, also where an operand is infinite (te.floormod is faster and neither)."""
    x, y = build.match_operands(a, b)
    if not x.dtype.is_float:
        return build.floormod(x, y)
    rest = build.call("tir.fmod", x, y)
    return build.select(_opposite(rest, y), build.add(rest, y), rest)


def _floor_divide(a: Any, b: Any) -> Expr:
    """`a // b` as in numpy: for floats (a - `_floor_mod(a, b)`) / b, rounded to an integral value; of 16 bits in float32."""
    x, y = build.match_operands(a, b)
    if not x.dtype.is_float:
        return build.floordiv(x, y)
    if x.dtype.bits == 16:
        wide = FLOAT32.with_lanes(x.dtype.lanes)
        return build.cast(x.dtype, _floor_divide(build.cast(wide, x), build.cast(wide, y)))
    rest = build.call("tir.fmod", x, y)
    towards_zero = build.div(build.sub(x, rest), y)
    whole = build.call("tir.round", build.select(_opposite(rest, y), build.sub(towards_zero, 1.0), towards_zero))
    return build.select(build.equal(y, 0.0), build.div(x, y), whole)


def _fmod(a: Any, b: Any) -> Expr:
    """The remainder with the sign of `a`, as numpy.fmod."""
    x, y = build.match_operands(a, b)
    return build.call("tir.fmod", x, y) if x.dtype.is_float else build.truncmod(x, y)


def _opposite(rest: Expr, divisor: Expr) -> Expr:
    """Whether a remainder that is not zero has the opposite sign of its divisor."""
    return build.logical_and(build.not_equal(rest, 0.0), build.not_equal(build.less(rest, 0.0), build.less(divisor, 0.0)))


BINARY: dict[str, Callable[[Any, Any], Expr]] = {
    "add": build.add, "subtract": build.sub, "multiply": build.mul, "divide": build.div,
    "floor_divide": _floor_divide, "floor_mod": _floor_mod, "truncdiv": build.truncdiv, "mod": build.truncmod,
    "fmod": _fmod,
    "power": build.power, "maximum": build.maximum, "minimum": build.minimum,
    "left_shift": build.shift_left, "right_shift": build.shift_right,
    "bitwise_and": build.bitwise_and, "bitwise_or": build.bitwise_or, "bitwise_xor": build.bitwise_xor,
    "less": build.less, "less_equal": build.less_equal, "greater": build.greater, "greater_equal": build.greater_equal,
    "equal": build.equal, "not_equal": build.not_equal,
    "logical_and": build.logical_and, "logical_or": build.logical_or, "logical_xor": build.not_equal,
}
UNARY: dict[str, Callable[[Any], Expr]] = {
    "negative": build.negative, "abs": arithmetic.abs, "bitwise_not": build.bitwise_not, "logical_not": build.logical_not,
}
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))


def binary(operator: str, a: Any, b: Any, *, name: str = "", tag: str = "") -> Any:
    """The elementwise `a operator b`, broadcast as in numpy; at least one operand is a tensor, the other may be a scalar value.

    Returns NotImplemented, which Python reports, for any other operand. name, tag: of the compute, instead of the usual ones.
    """
    function = BINARY[operator]
    where = f"{operator} of tensors"
    for value in (a, b):
        if not isinstance(value, Tensor) and is_array(value):
            refuse_array(value, where)
        if not isinstance(value, Tensor) and not build.is_operand(value):
            return NotImplemented
    name = name or f"T_{operator}"
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        shape = broadcast_shape(a, b, where)
        return _compute(shape, lambda i: function(broadcast_element(a, i, shape), broadcast_element(b, i, shape)), name,
                        tag or "broadcast", ElementwiseOp(operator, broadcasts=True))
    if isinstance(a, Tensor):
        right = _scalar(b, a, where)
        return _compute(a.shape, lambda i: function(a(*i), right), name, tag or "elemwise", ElementwiseOp(operator))
    left = _scalar(a, b, where)
    return _compute(b.shape, lambda i: function(left, b(*i)), name, tag or "elemwise", ElementwiseOp(operator))


def unary(operator: str, x: Tensor) -> Tensor:
    """The elementwise `operator(x)`, of the shape of x."""
    output: Tensor = map_elements(operator, UNARY[operator], x)
    return output


def cast(x: Tensor, dtype: object) -> Tensor:
    """The tensor of the elements of `x` converted to `dtype`."""
    of = as_dtype(dtype)
    output: Tensor = map_elements("cast", lambda e: build.cast(of, e), x)
    return output


def map_elements(operator: str, function: Callable[[Any], Any], x: Any, *, name: str = "", tag: str = "") -> Any:
    """`function` applied to each element of the tensor `x`, recorded as `operator`; `function(x)` if x is a scalar value."""
    if not isinstance(x, Tensor):
        return function(as_value(x, operator))
    return _compute(x.shape, lambda i: function(x(*i)), name or f"T_{operator}", tag or "elemwise", ElementwiseOp(operator))


def combine_elements(operator: str, a: Any, b: Any, *, name: str = "", tag: str = "") -> Any:
    """`a operator b` for tensors and values, broadcast; an expression if both are scalar values. operator: its name in topi."""
    if operator not in BINARY:
        raise OptionError(f"there is no operator {operator!r} on tensors", hint=f"one of {', '.join(BINARY)}")
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return BINARY[operator](as_value(a, operator), as_value(b, operator))
    output = binary(operator, a, b, name=name, tag=tag)
    if output is NotImplemented:
        raise ArgumentTypeError(f"{operator} of {shown(a)} and {shown(b)}: both must be tensors or values",
                                hint="values are numbers, variables and elements of tensors")
    return output


def is_comparison(tensor: Tensor) -> bool:
    """Whether `tensor` was made by an ordering of whole tensors, `a < b`."""
    info = getattr(tensor.op, "info", None)
    return isinstance(info, ElementwiseOp) and info.operator in COMPARISONS


def broadcast_shape(a: Tensor, b: Tensor, where: str) -> tuple[Expr, ...]:
    """The shape that both shapes broadcast to, aligned at the last dimension.

    Raises ShapeError for shapes that do not broadcast.
    """
    rank = max(a.ndim, b.ndim)
    shape = []
    for position in range(rank):
        of_a, of_b = position - rank + a.ndim, position - rank + b.ndim
        if of_a < 0 or of_b < 0:
            shape.append(a.shape[of_a] if of_b < 0 else b.shape[of_b])
        else:
            shape.append(_joined(a, b, position - rank, where))
    return tuple(shape)


def _joined(a: Tensor, b: Tensor, position: int, where: str) -> Expr:
    mine, other = a.shape[position], b.shape[position]
    if build.as_int(mine) == 1:
        return other
    if build.as_int(other) == 1 or same_extent(mine, other):
        return mine
    known = isinstance(mine, IntImm) and isinstance(other, IntImm)
    raise ShapeError(f"{where}: the shapes {_shape(a)} of {a.name} and {_shape(b)} of {b.name} do not broadcast: "
                     f"dimension {position} is {shown(mine)} and {shown(other)}, "
                     + ("neither of them 1" if known else "which cannot be proved equal"),
                     hint="dimensions are aligned at the last one, as in numpy; each pair must be equal or one of them 1"
                     if known else "declare both with one te.var, or write the index yourself in te.compute")


def same_extent(a: Expr, b: Expr) -> bool:
    """Whether two extents are equal for all values of their variables."""
    if a is b:
        return True
    if isinstance(a, IntImm) or isinstance(b, IntImm):
        return isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value
    return Analyzer().can_prove(build.equal(a, b))


def broadcast_element(tensor: Tensor, indices: Sequence[Any], shape: tuple[Expr, ...]) -> Expr:
    """The element of `tensor` that broadcasts to `indices` of `shape`."""
    skipped = len(shape) - tensor.ndim
    own = [build.const(0, extent.dtype) if build.as_int(extent) == 1 and build.as_int(joined) != 1 else index
           for extent, joined, index in zip(tensor.shape, shape[skipped:], indices[skipped:])]
    return tensor(*own)


def _scalar(value: Any, beside: Tensor, where: str) -> Any:
    """The scalar operand `value` of an operator on a tensor; a Python number stays one, so that it takes the dtype of the
    elements.
    """
    if isinstance(value, (bool, int, float)):
        return value
    expr = as_value(value, where)
    axes = [v.name for v in variables(expr) if is_axis_variable(v)]
    if axes:
        read = f"{beside.name}[{', '.join(axes[:beside.ndim])}]" if beside.ndim else f"{beside.name}()"
        raise ExpressionError(f"{where}: {shown(value)} belongs to a formula over {', '.join(axes)}, and {beside.name} is "
                              f"a whole tensor of rank {beside.ndim}", hint=f"read an element of it, for example {read}")
    return expr


def _compute(shape: tuple[Expr, ...], at: Callable[[tuple[Any, ...]], Expr], name: str, tag: str,
             info: ElementwiseOp) -> Tensor:
    """A compute over axes named ax0, ax1, ... as in TVM. The tag of an enclosing tag_scope takes precedence over `tag`."""
    names = [f"ax{position}" for position in range(len(shape))]
    return Tensor(define(shape, lambda *i: at(i), names, name, tag=scope_tag() or tag, info=info))


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(shown, tensor.shape))})"
