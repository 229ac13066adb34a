"""The symbols that machine code may use without defining them, and their addresses.

An object that needs any other symbol is refused before linking (an unresolved symbol ends the process in the linker).
Objects contain no addresses; each name is bound when the object is linked, so objects are valid in any process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tedsl.errors import LoweringError

# Functions of the interpreter, for entry points and callbacks.
CPYTHON = frozenset((
    "PyBool_FromLong", "PyErr_NoMemory", "PyErr_Occurred", "PyErr_Clear", "PyErr_Fetch", "PyErr_NormalizeException",
    "PyEval_RestoreThread", "PyEval_SaveThread", "PyException_SetTraceback", "PyFloat_AsDouble", "PyFloat_FromDouble",
    "PyGILState_Ensure", "PyGILState_GetThisThreadState", "PyGILState_Release", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyObject_CallFunction", "PyObject_CallMethod",
    "PyObject_VectorcallDict", "Py_DecRef", "Py_IncRef",
))

LIBM = frozenset(name + suffix for suffix in ("", "f") for name in (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "floor", "fma", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "nearbyint", "nextafter",
    "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"))

# Functions of libc and libm. Those that LLVM writes on its own (memset, ...) are here too.
PROCESS = LIBM | frozenset((
    "memcpy", "memmove", "memset", "memcmp", "posix_memalign", "free", "calloc", "clock_gettime", "syscall", "sysconf",
    "pthread_create", "pthread_detach", "pthread_self", "pthread_sigmask", "pthread_key_create", "pthread_getspecific",
    "pthread_setspecific", "sched_getcpu", "sched_yield", "sched_getaffinity", "sched_setaffinity",
))

# Functions that tedsl writes in LLVM IR itself, with the source: a function () -> text, compiled on first use.
RUNTIME = {
    "tedsl_parallel_launch": "tedsl.runtime.parallel:pool_source",
    "tedsl_workspace_alloc": "tedsl.runtime.workspace:workspace_source",
    "tedsl_workspace_free": "tedsl.runtime.workspace:workspace_source",
    "tedsl_time_calls": "tedsl.runtime.timing:timer_source",
    "tedsl_begin_callbacks": "tedsl.runtime.callbacks:callback_source",
    "tedsl_call_packed": "tedsl.runtime.callbacks:callback_source",
    "tedsl_publish_error": "tedsl.runtime.callbacks:callback_source",
}

# Objects and memory of this process: a function () -> address.
DATA = {
    "tedsl_type_ndarray": "tedsl.runtime.symbols:numpy_array_type",
    "tedsl_type_NDArray": "tedsl.runtime.array:array_type_address",
    "tedsl_type_int": "tedsl.runtime.symbols:int_type",
    "tedsl_type_float": "tedsl.runtime.symbols:float_type",
    "tedsl_none": "tedsl.runtime.symbols:none_object",
    "tedsl_bfloat16_number": "tedsl.runtime.foreign:bfloat16_number_address",
    "tedsl_pool_state": "tedsl.runtime.parallel:state_address",
    "tedsl_python_call": "tedsl.runtime.callbacks:call_address",
    "tedsl_python_publish": "tedsl.runtime.callbacks:publish_address",
}


EXTERN = "tedsl.extern."  # before the name of a C function that the program calls: ours and LLVM's names stay apart


def is_known(name: str) -> bool:
    """Tells whether machine code may use `name`."""
    return name in CPYTHON or name in PROCESS or name in RUNTIME or name in DATA or name.startswith(EXTERN)


def extern_address(name: str) -> int | None:
    """Returns the address of the C function `name` in this process; None if no loaded library has it."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, ValueError):
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


def _extern(name: str) -> int:
    address = extern_address(name)
    if not address:
        raise LoweringError(f"there is no C function {name!r} in this process that machine code could call",
                            hint="load its library first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    return address


def address_of(name: str) -> int:
    """Returns the address of a name of CPYTHON, PROCESS or DATA (those of RUNTIME belong to the JIT), or of a C function."""
    return _extern(name.removeprefix(EXTERN)) if name.startswith(EXTERN) else _own_address(name)


@cache
def _own_address(name: str) -> int:
    if name in DATA:
        return int(provider(DATA[name])())
    function = getattr(ctypes.pythonapi if name in CPYTHON else ctypes.CDLL(None), name)
    return ctypes.c_void_p.from_address(ctypes.addressof(function)).value or 0  # as ctypes.cast, in a third of its time


def provider(path: str) -> Callable[..., Any]:
    """Returns the function at `module:name`."""
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
