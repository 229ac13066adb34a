"""The names that machine code may use without defining them: nothing else is ever linked.

An object that needs any other symbol is refused before linking (an unresolved symbol ends the process in the linker).
No address stands in an object; each name is bound when the object is linked, so objects are valid in any process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

# Functions of the interpreter, for entry points and callbacks.
CPYTHON = frozenset((
    "PyErr_NoMemory", "PyErr_Occurred", "PyErr_Clear", "PyEval_RestoreThread", "PyEval_SaveThread", "PyFloat_AsDouble",
    "PyGILState_Ensure", "PyGILState_Release", "PyLong_AsLongLongAndOverflow", "PyObject_CallMethod",
    "PyObject_VectorcallDict", "Py_DecRef", "Py_IncRef",
))

# Functions of libc and libm. Those that LLVM writes on its own (memset, ...) are here too.
PROCESS = frozenset((
    "memcpy", "memmove", "memset", "memcmp", "posix_memalign", "free", "calloc", "clock_gettime", "syscall", "sysconf",
    "pthread_create", "pthread_detach", "pthread_sigmask", "pthread_key_create", "pthread_getspecific", "pthread_setspecific",
    "sched_getcpu", "sched_getaffinity", "sched_setaffinity",
    *(name + suffix for suffix in ("", "f") for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
        "expm1", "floor", "fma", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "nearbyint", "nextafter",
        "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc")),
))

# Functions that tedsl writes in LLVM IR itself, with the source: a function () -> text, compiled on first use.
RUNTIME = {
    "tedsl_parallel_launch": "tedsl.runtime.parallel:pool_source",
    "tedsl_workspace_alloc": "tedsl.runtime.workspace:workspace_source",
    "tedsl_workspace_free": "tedsl.runtime.workspace:workspace_source",
    "tedsl_time_calls": "tedsl.runtime.timing:timer_source",
}

# Objects and memory of this process: a function () -> address.
DATA = {
    "tedsl_type_ndarray": "tedsl.runtime.symbols:numpy_array_type",
    "tedsl_type_NDArray": "tedsl.runtime.array:array_type_address",
    "tedsl_type_int": "tedsl.runtime.symbols:int_type",
    "tedsl_type_float": "tedsl.runtime.symbols:float_type",
    "tedsl_none": "tedsl.runtime.symbols:none_object",
    "tedsl_bfloat16_number": "tedsl.runtime.convert:bfloat16_number_address",
    "tedsl_pool_state": "tedsl.runtime.parallel:state_address",
}


def is_known(name: str) -> bool:
    """Whether machine code may use `name`."""
    return name in CPYTHON or name in PROCESS or name in RUNTIME or name in DATA


@cache
def address_of(name: str) -> int:
    """The address of a name of CPYTHON, PROCESS or DATA (those of RUNTIME belong to the JIT)."""
    if name in DATA:
        return int(provider(DATA[name])())
    library = ctypes.pythonapi if name in CPYTHON else ctypes.CDLL(None)
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def provider(path: str) -> Callable[[], Any]:
    """The function at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def numpy_array_type() -> int:
    import numpy

    return id(numpy.ndarray)


def int_type() -> int:
    return id(int)


def float_type() -> int:
    return id(float)


def none_object() -> int:
    return id(None)
