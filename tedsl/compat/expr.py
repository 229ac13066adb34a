"""tvm.expr of TVM 0.6: the expressions of tir. Constants of unsigned integers, and of bool, had a class of their own there."""

from __future__ import annotations

from typing import Any

from tedsl import tir
from tedsl.compat import make
from tedsl.errors import DTypeError
from tedsl.ir.dtype import dtype as _dtype
from tedsl.ir.expr import IntImm


class _OldUIntImm(type):
    """The class of `UIntImm`: today's constants of unsigned integers are its instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, IntImm) and (instance.dtype.is_uint or instance.dtype.is_bool)

    def __call__(cls, dtype: Any, value: int) -> IntImm:
        of = _dtype(dtype)
        if not (of.is_uint or of.is_bool):
            raise DTypeError(f"UIntImm: {of} is no dtype of unsigned integers", hint='for example UIntImm("uint32", 1)')
        return IntImm(of, value)


class UIntImm(metaclass=_OldUIntImm):
    """A constant of an unsigned integer or bool: UIntImm(dtype, value)."""


def __getattr__(name: str) -> Any:
    return getattr(make, name) if name == "Call" else getattr(tir, name)
