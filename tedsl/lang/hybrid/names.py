"""The functions of hybrid script for a function that runs as plain Python on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from tedsl.errors import ArgumentTypeError
from tedsl.runtime.array import numpy_dtype

LOOPS = ("range", "serial", "parallel", "vectorize", "unroll", "const_range", "bind")
MATH = ("abs", "ceil", "cos", "erf", "exp", "floor", "log", "log10", "log2", "power", "round", "rsqrt", "sigmoid", "sin",
        "sqrt", "tan", "tanh", "trunc", "popcount", "fmod", "atan", "atan2", "sinh", "cosh", "log1p", "exp2")
CASTS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def allocate(shape: Any, dtype: str = "float32", scope: str = "global") -> Any:
    """A numpy array of zeros with this shape and dtype."""
    return numpy.zeros(shape, numpy_dtype(dtype))


def bind(tag: str, extent: int) -> range:
    """A serial loop over the threads of an axis: range(extent)."""
    if not isinstance(tag, str):
        raise ArgumentTypeError(f"bind takes the name of a thread axis first, not {tag!r}", hint='bind("threadIdx.x", 32)')
    return range(extent)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + numpy.exp(-x))


def _popcount(x: Any) -> int:
    return bin(int(x)).count("1")


def _cast(of: str) -> Callable[[Any], Any]:
    kind: Any = numpy.dtype(of).type
    return lambda value: kind(value)


_NUMPY = {"abs": numpy.abs, "power": numpy.power, "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
          "rsqrt": lambda x: 1 / numpy.sqrt(x), "sigmoid": _sigmoid, "popcount": _popcount, "erf": math.erf,
          "atan": numpy.arctan, "atan2": numpy.arctan2}

RUNTIME: dict[str, Any] = {
    "output_tensor": allocate, "allocate": allocate, "bind": bind, "likely": lambda condition: bool(condition),
    "ceil_div": lambda a, b: -(-a // b), "max_num_threads": lambda allow_none=True: 1,
    **dict.fromkeys(("serial", "parallel", "vectorize", "unroll", "const_range"), range),
    **{name: _NUMPY.get(name) or getattr(numpy, name) for name in MATH if name not in ("abs", "round")},
    **{name: _cast(name) for name in CASTS if name != "bool"},
}
