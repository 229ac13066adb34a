"""The arrays of a call of a network: checked, contiguous, in the order of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.dimensions import with_extents
from tedsl.graph.value import Value
from tedsl.ir.expr import Var
from tedsl.runtime.array import NDArray, numpy_dtype


class Inputs:
    """The inputs of a network, and what is said of arrays that do not fit them."""

    def __init__(self, name: str, values: Sequence[Value]) -> None:
        self.name = name
        self.values = tuple(values)
        self._number = {value.name: at for at, value in enumerate(values)}
        self._dtypes = [numpy_dtype(value.dtype) for value in values]
        self._shapes = [tuple(value.shape) for value in values]
        self.variables = tuple(dict.fromkeys([extent for shape in self._shapes for extent in shape if isinstance(extent, Var)]))
        self._computed = [at for at, shape in enumerate(self._shapes)  # the inputs with extents such as n * 2
                          if any(not isinstance(extent, (int, Var)) for extent in shape)]

    def arrays(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The arrays of a call, contiguous. Raises ArgumentError, which names the input, for one that does not fit."""
        arrays = self._ordered(given, named) if named or len(given) != len(self.values) else list(given)
        for at, array in enumerate(arrays):
            if type(array) is not numpy.ndarray:
                array = arrays[at] = self._as_array(at, array)
            if array.dtype != self._dtypes[at] or array.shape != self._shapes[at]:
                self._check(at, array)
            if not array.flags.c_contiguous:
                arrays[at] = numpy.ascontiguousarray(array).reshape(array.shape)
            elif not array.flags.aligned:
                arrays[at] = array.copy()
        return arrays

    def extents(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """The extents of the variables for checked arrays. Raises ArgumentError where two arrays disagree."""
        known: dict[Var, tuple[int, Value]] = {}
        for value, array in zip(self.values, arrays):
            for extent, here in zip(value.shape, array.shape):
                if isinstance(extent, Var) and known.setdefault(extent, (here, value))[0] != here:
                    before, other = known[extent]
                    raise ArgumentError(f"{self.name}: {extent.name} is {before} by its input {other.name} and {here} by its "
                                        f"input {value.name}: {value.spec}")
        found = {var: known[var][0] for var in self.variables}
        for at in self._computed:
            value, shape = self.values[at], arrays[at].shape
            if any(with_extents(extent, found) != here for extent, here in zip(value.shape, shape)):
                raise ArgumentError(f"{self.name}: its input {value.name} is an array of {value.spec}, not of the shape "
                                    f"{shape}, for {', '.join([f'{var.name} = {number}' for var, number in found.items()])}")
        return tuple(found.values())

    def _ordered(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        listed = ", ".join(f"{value.name}: {value.spec}" for value in self.values) or "none"
        if len(given) > len(self.values):
            raise ArgumentError(f"{self.name} takes {len(self.values)} arrays, not {len(given)}", hint=f"its inputs: {listed}")
        arrays: list[Any] = [*given, *[None] * (len(self.values) - len(given))]
        for name, array in named.items():
            at = self._number.get(name)
            if at is None:
                raise ArgumentError(f"{self.name} has no input {name!r}", hint=f"its inputs: {listed}")
            if at < len(given):
                raise ArgumentError(f"{self.name}: its input {name} is given by its place and by its name")
            arrays[at] = array
        missing = [value.name for at, value in enumerate(self.values) if at >= len(given) and value.name not in named]
        if missing:
            raise ArgumentError(f"{self.name}: no array for its input {' and its input '.join(missing)}",
                                hint=f"its inputs: {listed}")
        return arrays

    def _as_array(self, at: int, given: Any) -> Any:
        if isinstance(given, numpy.ndarray):
            return given
        if isinstance(given, NDArray):
            return given.numpy()
        if isinstance(given, numpy.generic) or (type(given) in (bool, int, float) and self._shapes[at] == ()):
            return numpy.asarray(given, None if isinstance(given, numpy.generic) else self._dtypes[at])
        if hasattr(given, "__dlpack__"):
            try:
                return numpy.from_dlpack(given)
            except (BufferError, TypeError, RuntimeError) as error:
                value = self.values[at]
                raise ArgumentTypeError(f"{self.name}: its input {value.name} is an array of {value.spec}, and this one cannot "
                                        f"be read: {error}", hint="give an array of numpy") from error
        value = self.values[at]
        raise ArgumentTypeError(f"{self.name}: its input {value.name} is an array of {value.spec}, not {type_in_words(given)}",
                                hint="numpy.asarray(..., dtype) makes one")

    def _check(self, at: int, array: Any) -> None:
        value = self.values[at]
        if array.dtype != self._dtypes[at]:
            raise ArgumentError(f"{self.name}: its input {value.name} is an array of {value.spec}, not of {array.dtype}",
                                hint=f'x.astype("{value.dtype}") converts the elements')
        if len(array.shape) != len(value.shape) or any(isinstance(extent, int) and extent != here
                                                       for extent, here in zip(value.shape, array.shape)):
            raise ArgumentError(f"{self.name}: its input {value.name} is an array of {value.spec}, not of the shape "
                                f"{array.shape}")


def check_outputs(name: str, values: Sequence[Value], results: Sequence[tuple[tuple[int, ...], Any]], out: Any,
                  inputs: Sequence[Any]) -> list[Any]:
    """The arrays that a caller gives for the outputs. ArgumentError names the output that one misfits."""
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) != len(values):
        raise ArgumentError(f"{name} has {len(values)} outputs, and out= has {len(given)} arrays")
    for at, (array, value, (shape, dtype)) in enumerate(zip(given, values, results)):
        where = f"{name}: the array for its output {value.name}"
        if not isinstance(array, numpy.ndarray):
            raise ArgumentTypeError(f"{where} is {type_in_words(array)}",
                                    hint="out= takes arrays of numpy; numpy.from_dlpack(a) of an array of tedsl is one")
        if array.shape != shape or array.dtype != dtype:
            raise ArgumentError(f"{where} is {array.dtype}{list(array.shape)}, not {value.dtype}{list(shape)}")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ArgumentError(f"{where} is {'read-only' if array.flags.c_contiguous else 'not contiguous'}")
        if any(numpy.may_share_memory(array, other) for other in [*inputs, *given[:at]]):
            raise ArgumentError(f"{where} shares memory with an input or with another output",
                                hint="give an array of its own")
    return given
