"""Arrays of random numbers by the names of TVM's contrib.random: numpy draws them when the kernel runs.

    A = random.uniform(0, 1, size=(m, n))                          # a tensor
    tedsl.get_global_func("tvm.contrib.random.seed")(7)            # the numbers of this thread begin anew

`topi.random` has numbers that depend on nothing but a generator that the kernel is given.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, entries, type_in_words
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.runtime.array import NDArray
from tedsl.runtime.functions import register_func

_PREFIX = "tvm.contrib.random"
_HERE = threading.local()


def _generator() -> np.random.Generator:
    """The generator of this thread."""
    if not hasattr(_HERE, "generator"):
        _HERE.generator = np.random.default_rng()
    found: np.random.Generator = _HERE.generator
    return found


@register_func(f"{_PREFIX}.seed")
def _seed(seed: int) -> None:
    _HERE.generator = np.random.default_rng(abs(int(seed)))


@register_func(f"{_PREFIX}.randint")
def _randint(low: int, high: int, out: NDArray) -> None:
    out[:] = _generator().integers(int(low), int(high), out.shape, dtype=out.numpy().dtype)


@register_func(f"{_PREFIX}.uniform")
def _uniform(low: float, high: float, out: NDArray) -> None:
    drawn = low + (high - low) * _generator().random(out.shape)
    of = out.numpy().dtype
    out[:] = np.minimum(drawn.astype(of), np.nextafter(of.type(high), of.type(low)))  # rounding may give `high`


@register_func(f"{_PREFIX}.normal")
def _normal(loc: float, scale: float, out: NDArray) -> None:
    out[:] = _generator().normal(loc, scale, out.shape)


@register_func(f"{_PREFIX}.random_fill")
def _random_fill(out: NDArray) -> None:
    """Whole numbers of one digit in arrays of integers, else numbers from 0 to 10: operands that overflow nothing."""
    kind = out.numpy().dtype.kind
    numbers = _generator().random(out.shape) * 10
    out[:] = numbers < 5 if kind == "b" else numbers.astype("int8") if kind in "iu" else numbers


register_func(f"{_PREFIX}.random_fill_for_measure", _random_fill)


def randint(low: int, high: int, size: Any, dtype: Any = "int32") -> te.Tensor:
    """A tensor of random integers from `low` to below `high`.

    Raises DTypeError where `dtype` is no dtype of integers, ArgumentError where there is no such number in it.
    """
    of = as_dtype(dtype)
    least, most = of.min_value, of.max_value
    if least is None or most is None or not (of.is_integer and of.lanes == 1):
        raise DTypeError(f"randint draws integers, and {of} is not a dtype of them", hint='dtype="int32"')
    first, end = int(_number("randint", "low", low)), int(_number("randint", "high", high))
    most = min(most, 2**63 - 2)  # numpy is told an int64
    if not least <= first < end <= most + 1:
        raise ArgumentError(f"randint: there is no {of} from {first} to below {end}" if first >= end else
                            f"randint: {first} to below {end} is not within {least} to {most}, what there is of {of}",
                            hint="randint(low, high, size): high itself is not drawn")
    ends = [tir.const(number, "int64") for number in (first, end)]
    return _drawn("randint", ends, size, of)


def uniform(low: float, high: float, size: Any) -> te.Tensor:
    """A tensor of float32 that are distributed evenly from `low` to below `high`."""
    ends = [_number("uniform", name, value) for name, value in (("low", low), ("high", high))]
    return _drawn("uniform", ends, size, "float32")


def normal(loc: float, scale: float, size: Any) -> te.Tensor:
    """A tensor of float32 that are distributed normally, with the mean `loc` and the standard deviation `scale`."""
    if _number("normal", "scale", scale) < 0:
        raise ArgumentError(f"normal: the standard deviation {scale} is negative", hint="normal(loc, scale, size)")
    return _drawn("normal", [_number("normal", "loc", loc), float(scale)], size, "float32")


def _drawn(function: str, numbers: list[Any], size: Any, dtype: Any) -> te.Tensor:
    shape = tuple(size) if isinstance(size, (list, tuple)) else (size,)
    given = [tir.const(number, "float64") if isinstance(number, float) else number for number in numbers]
    made: te.Tensor = te.extern(shape, [], lambda ins, outs: tir.call_packed(f"{_PREFIX}.{function}", *given, outs[0]),
                                name=function, dtype=dtype)
    return made


def _number(function: str, name: str, value: Any) -> float | int:
    """A number of Python, or a constant expression, as a number; a float where it has a fraction or `function` draws floats."""
    constant = getattr(value, "value", value)
    if isinstance(constant, bool) or not isinstance(constant, (int, float, np.number)):
        raise ArgumentTypeError(f"{function}: {name} is {value!r}, {type_in_words(value)}", hint=f"give {name} as a number")
    return int(constant) if function == "randint" else float(constant)


entries(globals())
