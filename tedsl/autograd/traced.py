"""Tensors without values, of which functions that are compiled as a whole are traced."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from tedsl.autograd.value import Value
from tedsl.errors import ArgumentTypeError
from tedsl.lang.declare import placeholder
from tedsl.lang.tensor import Tensor


class Traced:
    """A tensor of te with the operators of tensors that hold values. plain: the class of results."""

    __slots__ = ("formula",)
    plain: ClassVar[type[Any]]

    def __init__(self, formula: Tensor) -> None:
        self.formula = formula

    @classmethod
    def results(cls, made: Any) -> Any:
        """The tensors that a function of formulas returned."""
        return cls.plain(made) if isinstance(made, Tensor) else tuple(cls.plain(part) for part in made)


class _Tracing(threading.local):
    traces: tuple[Trace, ...] = ()


_TRACING = _Tracing()


class Trace:
    """Context manager in which a function is traced. captured: the tensors with values that it reads besides its arguments,
    each with the placeholder that stands for it.
    """

    def __init__(self) -> None:
        self.captured: dict[int, tuple[Value, Tensor]] = {}

    def __enter__(self) -> Trace:
        _TRACING.traces = (*_TRACING.traces, self)
        return self

    def __exit__(self, *_: object) -> None:
        _TRACING.traces = _TRACING.traces[:-1]

    def read(self, value: Value) -> Tensor:
        """The placeholder of a tensor with values."""
        known = self.captured.get(id(value))
        if known is None:
            stands = placeholder(value._kind.shape, value._kind.dtype, name=f"captured{len(self.captured)}")
            known = self.captured[id(value)] = value, stands
        return known[1]


def formula_of(value: Any) -> Any:
    """The tensor of te that an operand stands for, in the function that is traced; other values as they are."""
    if isinstance(value, Traced):
        return value.formula
    if not isinstance(value, Value):
        return value
    if not _TRACING.traces:
        raise ArgumentTypeError("a tensor of a traced function is used after the function was traced",
                                hint="return it from the function")
    return _TRACING.traces[-1].read(value)
