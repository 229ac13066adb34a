"""The arrays that functions of other compilers are called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.value import Spec
from tedsl.runtime.array import NDArray, numpy_dtype


def as_numpy(name: str, given: Any) -> Any:
    """An argument of the function `name` as an array of numpy on the same memory."""
    if isinstance(given, NDArray):
        return numpy.from_dlpack(given)
    if not isinstance(given, numpy.ndarray):
        raise ArgumentTypeError(f"{name}: its arguments are arrays of numpy or NDArrays, not {type_in_words(given)}")
    return given


def checked(name: str, specs: Sequence[Spec], given: Sequence[Any]) -> list[Any]:
    """Arguments as arrays of numpy. Raises ArgumentError unless there is one of each shape and dtype."""
    takes = ", ".join(map(str, specs))
    if len(given) != len(specs):
        raise ArgumentError(f"{name} takes {len(specs)} arrays, not {len(given)}", hint=f"it takes {takes}")
    arrays = [as_numpy(name, one) for one in given]
    for at, (array, spec) in enumerate(zip(arrays, specs)):
        if array.shape != spec.shape or array.dtype != numpy_dtype(spec.dtype):
            raise ArgumentError(f"{name}: array {at} is {array.dtype}{list(array.shape)}, not {spec}", hint=f"it takes {takes}")
    return arrays
