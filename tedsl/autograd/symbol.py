"""Tensors without values, with the operators of tensors."""

from __future__ import annotations

from typing import Any, NoReturn

from tedsl.autograd.formulas import extents
from tedsl.autograd.operators import Operators
from tedsl.autograd.traced import Traced
from tedsl.errors import ArgumentTypeError
from tedsl.ir.dtype import DType


class Symbol(Operators, Traced):
    """What a function that is traced gets for a tensor: it has a shape, a dtype and operators, and no values."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return extents(self.formula)

    @property
    def dtype(self) -> DType:
        return self.formula.dtype

    @property
    def ndim(self) -> int:
        return self.formula.ndim

    @property
    def requires_grad(self) -> bool:
        return False

    def detach(self) -> Symbol:
        raise ArgumentTypeError("detach: in a function that is compiled as a whole a part cannot be left out of the gradient",
                                hint="pass it as an argument by which it is not differentiated")

    def _operand(self, other: Any) -> Any:
        return other

    def _extents(self) -> tuple[int, ...]:
        return self.shape

    def _without_values(self, *_: object) -> NoReturn:
        raise ArgumentTypeError("a tensor of a function that is compiled as a whole has no values while it is traced",
                                hint="choose by elements, op(topi.where)(condition, a, b); return what is to be looked at")

    __bool__ = __float__ = __int__ = __iter__ = __array__ = numpy = item = tolist = backward = _without_values
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"<traced {self.dtype}{list(self.shape)}>"


Traced.plain = Symbol
