"""External functions in the interpreter: Python functions by name, and C symbols of the process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from tedsl.errors import LoweringError
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.functions import C_MATH, as_number, registered
from tedsl.ir.interpreter import arithmetic

External = Callable[..., Any]
_C_TYPES: dict[str, Any] = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool, "handle": ctypes.c_void_p, "void": None,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}}


def caller(given: Mapping[str, External], own: Mapping[str, External]) -> External:
    """The function by which interpreted programs call another one by name.

    It looks in `own` first, the functions of the same module, which take the kind of the call before its arguments, then in
    `given`.
    """
    def call(name: str, kind: str, result: DType, dtypes: tuple[DType, ...], *args: Any) -> Any:
        if name in own:
            return _number(own[name](kind, *args) or 0, result)
        if name in given:
            return given[name](*args)
        if kind == "call_packed":
            return _python(name, result, args)
        if name in C_MATH:
            return arithmetic.call_math(C_MATH[name], str(result), *args)
        return _c_function(name, result, dtypes)(*[a.ctypes.data if isinstance(a, np.ndarray) else a for a in args])

    return call


def _python(name: str, result: DType, args: tuple[Any, ...]) -> Any:
    entry = registered(name)
    answer = entry.function(*[entry.as_array(a) if isinstance(a, np.ndarray) else a.item() if isinstance(a, np.generic) else a
                              for a in args])
    return 0 if result is VOID else _number(as_number(name, answer, result), result)


def _number(value: Any, of: DType) -> Any:
    if of is VOID:
        return 0
    if of.is_float:
        return arithmetic.FROM_DOUBLE[str(of)](float(value))
    return bool(value) if of.is_bool else int(value)


@cache
def _c_function(name: str, result: DType, dtypes: tuple[DType, ...]) -> External:
    for of in (result, *dtypes):
        if str(of) not in _C_TYPES:
            raise LoweringError(f"the C function {name} cannot take or return {of}", hint="cast to float32 or float64")
    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        raise LoweringError(f"there is no C function {name!r} in this process",
                            hint="load its library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    typed = ctypes.CFUNCTYPE(_C_TYPES[str(result)], *[_C_TYPES[str(of)] for of in dtypes])(
        ctypes.cast(function, ctypes.c_void_p).value or 0)
    return lambda *args: _number(typed(*args) or 0, result)


def array_view(flat: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view with `shape` and `strides` (in elements) of a flat array, from element `offset` on."""
    size = flat.itemsize
    if 0 in shape:
        return np.empty(shape, flat.dtype)
    if not strides:
        return flat[offset:offset + int(np.prod(shape, dtype=np.int64))].reshape(shape)
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, [step * size for step in strides])


def elements_past_line(array: Any, elements: int, size: int) -> int:
    """How many elements of `size` bytes the memory of `array` begins behind a line of so many `elements`."""
    return int(array.ctypes.data) // size % elements
