"""Kernels that change parameters in place: one for each rule and dtype, for arrays of any number of elements.

    @update_rule(written=("p", "m"), read=("g",), scalars=("rate", "momentum"))
    def momentum_step(p, m, g, rate, momentum):
        m = momentum * m + g
        return p - rate * m, m

    momentum_step(parameter, state, gradient, rate=0.1, momentum=0.9)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tedsl import te, tir
from tedsl.driver import build
from tedsl.errors import ArgumentError, DTypeError, ShapeError

Formula = Callable[..., tuple[Any, ...]]
_CHUNK = 1 << 16  # elements that one thread changes before it takes the next: 1.3 MB of five float32 arrays
_FLOATS = ("float32", "float64")


class UpdateRule:
    """A formula over the elements of arrays, which replaces those of the `written` ones.

    The formula takes an element of each written array, one of each read array, and the scalars, all of the dtype of the
    arrays; it returns the new elements of the written arrays. Called with arrays of one shape and dtype, contiguous.
    """

    def __init__(self, formula: Formula, written: Sequence[str], read: Sequence[str], scalars: Sequence[str]) -> None:
        self.formula, self.written, self.read, self.scalars = formula, tuple(written), tuple(read), tuple(scalars)
        self.name = getattr(formula, "__name__", "update")
        self._kernels: dict[np.dtype[Any], Any] = {}

    def __call__(self, *arrays: np.ndarray[Any, Any], **scalars: float) -> None:
        first = arrays[0]
        kernel = self._kernels.get(first.dtype)
        if kernel is None:
            kernel = self._built(first.dtype)
        for name, array in zip((*self.written, *self.read), arrays, strict=True):
            if array.shape != first.shape or array.dtype != first.dtype:
                raise self._misfit(name, array, first)
        for name, array in zip(self.written, arrays):
            flags = array.flags
            if not (flags.c_contiguous and flags.writeable):
                raise ArgumentError(f"{self.name}: {name} cannot be changed in place: it is "
                                    f"{'not contiguous' if flags.writeable else 'read-only'}",
                                    hint="make the parameter of a contiguous array that can be written: numpy.array(a)")
        kernel(*[array.reshape(-1) for array in arrays], *[scalars[name] for name in self.scalars])

    def _misfit(self, name: str, array: np.ndarray[Any, Any], first: np.ndarray[Any, Any]) -> Exception:
        if array.shape != first.shape:
            return ShapeError(f"{self.name}: {name} has shape {array.shape}, and {self.written[0]} has {first.shape}")
        return DTypeError(f"{self.name}: {name} has dtype {array.dtype}, and {self.written[0]} has {first.dtype}")

    def _built(self, dtype: np.dtype[Any]) -> Any:
        if dtype.name not in _FLOATS:
            raise DTypeError(f"{self.name}: {self.written[0]} has dtype {dtype}; parameters are {' or '.join(_FLOATS)}")
        return self._kernels.setdefault(dtype, build(self.function(dtype.name)))

    def function(self, dtype: str) -> tir.PrimFunc:
        """The loops of this rule over arrays of `dtype`, whose number of elements is a variable."""
        n = te.var("n")
        buffers = [tir.decl_buffer((n,), dtype, name=name) for name in (*self.written, *self.read)]
        scalars = [te.var(name, dtype) for name in self.scalars]
        ib = tir.ir_builder.create()
        arrays = [ib.buffer_ptr(buffer) for buffer in buffers]
        chunks = (n + (_CHUNK - 1)) // _CHUNK
        with (ib.for_range(0, chunks, name="chunk", kind="parallel") as chunk,
              ib.for_range(0, te.min(_CHUNK, n - chunk * _CHUNK), name="i") as i):
            place = chunk * _CHUNK + i
            new = self.formula(*[array[place] for array in arrays], *scalars)
            named = [ib.let(f"new_{name}", value) for name, value in zip(self.written, new, strict=True)]
            for array, value in zip(arrays, named):
                array[place] = value
        handles = [te.var(buffer.name, "handle") for buffer in buffers]
        func = tir.PrimFunc((*handles, *scalars), ib.get(), buffer_map=dict(zip(handles, buffers)))
        return func.with_attr("global_symbol", self.name).with_attr("tir.noalias", True)


def update_rule(*, written: Sequence[str], read: Sequence[str], scalars: Sequence[str]) -> Callable[[Formula], UpdateRule]:
    """Decorator: makes an `UpdateRule` of a formula."""
    return lambda formula: UpdateRule(formula, written, read, scalars)
