"""Conversion of operands of a formula to scalar expressions. Whole tensors and arrays are refused, with a hint."""

from __future__ import annotations

from typing import Any, NoReturn

from tedsl.errors import ArgumentTypeError, DTypeError, ExpressionError
from tedsl.ir import build
from tedsl.ir.builder import BufferVar
from tedsl.ir.calls.signatures import misfit
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr
from tedsl.ir.script import shown
from tedsl.lang.tensor import Tensor


def as_value(value: Any, where: str, like: DType | None = None) -> Expr:
    """`value` as an expression, a Python number as a constant of dtype `like`; `where` opens the message of an error."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Tensor):
        refuse_whole_tensor(value, where)
    if isinstance(value, BufferVar):
        return value.as_expr()
    if is_array(value):
        refuse_array(value, where)
    return build.as_expr(value, like)


def is_array(value: object) -> bool:
    """Whether `value` is an array of data: a numpy array of rank 1 or more, or another array-like object."""
    return (not isinstance(value, Tensor) and hasattr(value, "dtype") and getattr(value, "shape", ()) != ()) \
        or isinstance(value, (list, tuple, range, bytes, bytearray))


def refuse_whole_tensor(tensor: Tensor, where: str) -> NoReturn:
    """Raise the error for a tensor where one element is expected."""
    element = f"{tensor.name}[{', '.join('ijklmnopqr'[:tensor.ndim])}]" if tensor.ndim else f"{tensor.name}()"
    raise ExpressionError(f"{where}: {tensor.name} is a whole tensor of rank {tensor.ndim}, and one value is wanted here",
                          hint=f"read an element, {element}; for whole tensors use operators (a + b) or topi")


def refuse_array(value: Any, where: str) -> NoReturn:
    """Raise the error for an array of data where a tensor or a value is expected."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    given = f"{kind} of shape {tuple(shape)}" if shape is not None else f"{kind} {_short(value)}"
    raise ArgumentTypeError(f"{where}: got a {given}: data that exists now, where the program is only written down",
                            hint="declare te.placeholder(shape, dtype) instead, and pass the array when the built function is "
                                 "called")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def as_condition(value: Any, where: str) -> Expr:
    """`value` as a bool expression."""
    condition = as_value(value, where)
    if not condition.dtype.is_bool:
        raise DTypeError(f"{where}: the condition {shown(value)} is of dtype {condition.dtype}, not bool",
                         hint="compare first, for example x != 0")
    return condition


def check_call(e: Call, where: str) -> None:
    """DTypeError, opened by `where`, unless the operator of `e` takes its arguments and gives its dtype."""
    problem = misfit(e)
    if problem:
        raise DTypeError(f"{where}: {problem}",
                         hint="name the dtype that the operator gives; convert arguments and result with .astype")
