"""Families of expressions by the names of TVM's tir.expr, for `isinstance`: no expression is made of them."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from tedsl.errors import ArgumentTypeError
from tedsl.ir.expr import EQ, NE, BinaryOp, CompareOp, Expr, FloatImm, IntImm, LogicalOp, Not, StringImm
from tedsl.ir.iters import IterVar
from tedsl.ir.operators import LazyEqual
from tedsl.lang.tensor import Tensor, TensorSlice


class _Family(type):
    """The class of families: nodes of their `members`, but not of `others`, are their instances."""

    members: tuple[type, ...]
    others: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, LazyEqual):
            instance = instance.asobject()
        return isinstance(instance, cls.members) and not isinstance(instance, cls.others)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.members) and not issubclass(subclass, cls.others)

    def __call__(cls, *args: Any, **named: Any) -> NoReturn:
        raise ArgumentTypeError(f"{cls.__name__} is a family of expressions, of which none is made",
                                hint=f"one of {', '.join(member.__name__ for member in cls.members)}, or its subclasses")


class ExprOp(metaclass=_Family):
    """All that has the operators of expressions."""

    members: ClassVar[tuple[type, ...]] = (Expr, IterVar, Tensor, TensorSlice)
    others: ClassVar[tuple[type, ...]] = ()


class PrimExprWithOp(ExprOp):
    """All expressions."""

    members = (Expr,)


class ConstExpr(ExprOp):
    """Constants."""

    members = (IntImm, FloatImm, StringImm)


class BinaryOpExpr(ExprOp):
    """Arithmetic of two operands."""

    members, others = (BinaryOp,), (CompareOp, LogicalOp)


class CmpExpr(ExprOp):
    """Comparisons."""

    members = (CompareOp,)


class LogicalExpr(ExprOp):
    """Conditions of conditions."""

    members = (LogicalOp, Not)


class EqualOp(ExprOp):
    """What `a == b` of two expressions is."""

    members = (EQ,)


class NotEqualOp(ExprOp):
    """What `a != b` of two expressions is."""

    members = (NE,)
