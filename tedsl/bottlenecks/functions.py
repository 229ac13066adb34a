"""What functions such as exp cost on this machine: measured once a process, in vectors, on data of the first cache."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from tedsl import te
from tedsl.driver import build
from tedsl.errors import TedslError
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, FloatImm, IntImm
from tedsl.ir.ops import MATH_BINARY, MATH_UNARY, Op
from tedsl.lang.tensor import Tensor
from tedsl.runtime.array import numpy_dtype
from tedsl.runtime.parallel import get_num_threads
from tedsl.target.target import Target

_COUNT = 2048  # elements: in the first cache, and long beside the call of a kernel
_FUNCTIONS = frozenset(f"tir.{name}" for name in (*MATH_UNARY, *MATH_BINARY))


def seconds_of_element(call: Call, target: Target) -> float | None:
    """The seconds of one value of a function where all threads compute values; None if it is no function of the language."""
    if call.op.name not in _FUNCTIONS:
        return None
    kinds = tuple([(str(arg.dtype.element), _number(arg)) for arg in call.args])
    each = _seconds(target, call.op.name, str(call.dtype.element), kinds)
    return None if each is None else each / get_num_threads()


def _number(arg: Expr) -> float | int | None:
    """The value of a number, in all lanes, such as an exponent; None for what is computed."""
    arg = getattr(arg, "value", arg)
    value = arg.value if isinstance(arg, (FloatImm, IntImm)) else arg
    return value if isinstance(value, (int, float)) else None


@functools.lru_cache(maxsize=256)
def _seconds(target: Target, name: str, dtype: str, kinds: tuple[tuple[str, float | int | None], ...]) -> float | None:
    given = [te.placeholder((_COUNT,), kind, name=f"a{at}") for at, (kind, number) in enumerate(kinds) if number is None]
    if not given:
        return None

    def value(i: Expr) -> Expr:
        tensors = iter(given)
        args: list[Any] = [next(tensors)[i] if number is None else te.const(number, kind) for kind, number in kinds]
        return Call(DType(dtype), Op.get(name), tuple(args))

    try:
        result = te.compute((_COUNT,), value, name="values")
        kernel = build(_vectorized(result, target), [*given, result], target)
        arrays = [numpy.linspace(0.5, 1.5, _COUNT).astype(numpy_dtype(DType(one.dtype))) for one in (*given, result)]
        return kernel.time_evaluator(kernel.entry_name, number=4, repeat=15)(*arrays).min / _COUNT
    except TedslError:  # of a dtype for which there is no code
        return None


def _vectorized(result: Tensor, target: Target) -> te.Schedule:
    s = te.create_schedule(result.op)
    _, inner = s[result].split(result.op.axis[0], target.vector_lanes(result.dtype))
    s[result].vectorize(inner)
    return s
