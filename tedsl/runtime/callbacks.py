"""Calls from a kernel into Python: `tir.call_packed`.

    void @tedsl_begin_callbacks(ptr frame)                      at the start of a kernel that calls functions
    i32 @tedsl_call_packed(ptr text, ptr slots, ptr frame)      the call; 3 if it raised: the exception is in `frame` then
    void @tedsl_publish_error(ptr frame)                        at the end of a kernel that fails: hands the exception on

`text` says which function is called with what (`describe`), `slots` are 64-bit words with the arguments, the first of them
takes the result. `frame` is on the stack of the kernel, and all threads of its parallel loops share it: the first exception,
which the kernel hands over on the thread that called it, where `CheckedCall.fail` raises it; that thread, and the signals that
it blocks. Workers of the pool block all signals; a function runs with the mask of the caller, which processes that it
starts inherit. The GIL is acquired on whatever thread this runs; every Python object created here is released.

A worker keeps the state that Python has for a thread from its first call to the end of the process. Python locks the list of
these states, without the GIL, to make or delete one; before 3.12, a process forked meanwhile waits for that lock for ever.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from tedsl.errors import ArgumentError
from tedsl.ir.dtype import VOID, DType, dtype
from tedsl.ir.functions import as_number, registered
from tedsl.runtime.array import NDArray, numpy_dtype
from tedsl.runtime.parallel import torn_from_region

_END = "\x1f"  # between the parts of a description
_pending = threading.local()
_calls = threading.local()
_WORD: dict[str, Any] = {"i": ctypes.c_int64, "u": ctypes.c_uint64, "f": ctypes.c_double, "b": ctypes.c_int64,
                         "p": ctypes.c_uint64}


def describe(name: str, result: str, arguments: Sequence[str]) -> str:
    """Returns the description of a call: the dtype of the result ("" if unused), the kind of each argument, then the name.

    i, u, f, b: an integer, an unsigned one, a float, a bool, in one word; p: an address; s: the address of a text;
    a/dtype/rank/rw/strided: an array in 1 + rank words (data, shape), and rank more if strided.
    """
    return _END.join((result, *arguments, name))


def call_from_kernel(text: int, words: int) -> None:
    """Runs the function that the description at address `text` names on the arguments at address `words`."""
    result, *kinds, name = ctypes.string_at(text).decode().split(_END)
    function = _own(name) or registered(name).function
    reader = _Reader(words)
    process = os.getpid()
    try:
        answer = function(*[reader.argument(kind) for kind in kinds])
    except BaseException as error:
        if os.getpid() != process:
            _end_of_child(name, error)
        only_read = [str(k) for k, kind in enumerate(kinds) if kind.startswith("a/") and "/r/" in kind]
        if type(error) is not ValueError or "read-only" not in str(error) or not only_read:
            raise
        raise _read_only(name, only_read, error) from error
    if os.getpid() != process:
        _end_of_child(name, None)
    del function
    of = dtype(result) if result else VOID
    value = 0 if of is VOID else as_number(name, answer, of)
    del answer
    reader.close(name)
    if of is not VOID:
        _result_word(of).from_address(words).value = value


@contextmanager
def own_functions(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Context manager in which kernels that this thread runs mean `functions` by their names, before registered ones."""
    before = getattr(_calls, "own", None)
    _calls.own = functions
    try:
        yield
    finally:
        _calls.own = before


def _own(name: str) -> Callable[..., Any] | None:
    functions: Mapping[str, Callable[..., Any]] | None = getattr(_calls, "own", None)
    return None if functions is None else functions.get(name)


def _end_of_child(name: str, error: BaseException | None) -> None:
    """Ends a call in the child of a fork that the function made, with `error` if it raised.

    A child forked in a parallel loop has only one of the loop's threads, and no result. On a worker, which has no caller to
    return to, the process exits like a program that ends with `error`; on the caller of the loop this raises.
    """
    torn = torn_from_region()
    if torn == "worker":
        code = 0 if error is None else 1
        if isinstance(error, SystemExit):
            code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
        elif error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    if torn == "caller" and error is None:
        raise ArgumentError(f"call_packed: {name} forked inside of a parallel loop and returned in the child, which has only a "
                            "part of the loop", hint="end the child in the function: os._exit(0)")


def _result_word(of: DType) -> Any:
    """Returns the ctypes type in which a result of dtype `of` is stored."""
    return ctypes.c_double if of.is_float else ctypes.c_int64 if of.is_int or of.is_bool else ctypes.c_uint64


def _read_only(name: str, which: Sequence[str], error: ValueError) -> ArgumentError:
    """Returns the error for a function that writes to a read-only array; numpy's names neither the function nor the reason."""
    several = f"s {', '.join(which)}" if len(which) > 1 else f" {which[0]}"
    return ArgumentError(f"call_packed: {name} writes to a read-only array ({error}); the program lets it only read its "
                         f"argument{several}, counted from 0",
                         hint="write to an output of te.extern, outs[0], or to a copy: x.numpy()")


class _Reader:
    """Reads the arguments of a call, and keeps the arrays that it creates for them."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.arrays: list[NDArray] = []
        self.memory: list[weakref.ref[Any]] = []

    def word(self, kind: Any) -> Any:
        value = kind.from_address(self.address).value
        self.address += 8
        return value

    def argument(self, kind: str) -> Any:
        if kind == "s":
            return ctypes.string_at(self.word(ctypes.c_uint64)).decode()
        if kind[0] == "a":
            return self.array(kind)
        value = self.word(_WORD[kind])
        return bool(value) if kind == "b" else value

    def array(self, kind: str) -> NDArray:
        """Returns an array on the kernel's memory."""
        _, dtype, rank, access, layout = kind.split("/")
        data, of, n = self.word(ctypes.c_uint64), numpy_dtype(dtype), int(rank)
        shape = [self.word(ctypes.c_int64) for _ in range(n)]
        steps = [self.word(ctypes.c_int64) for _ in range(n)] if layout else _compact(shape)
        if min(shape, default=1) < 0:
            raise ArgumentError(f"call_packed: an array of shape {tuple(shape)}")
        if 0 in shape:
            return NDArray(numpy.empty(shape, of))
        low = sum((size - 1) * step for size, step in zip(shape, steps) if step < 0) * of.itemsize
        high = sum((size - 1) * step for size, step in zip(shape, steps) if step > 0) * of.itemsize
        block: Any = (ctypes.c_char * (high - low + of.itemsize)).from_address(data + low)
        view = numpy.ndarray(shape, of, block, -low, [step * of.itemsize for step in steps])
        view.flags.writeable = access == "rw"
        self.memory.append(weakref.ref(block))
        self.arrays.append(NDArray(view))
        return self.arrays[-1]

    def close(self, name: str) -> None:
        """Ends the call: an NDArray to which the function kept a reference becomes a copy. Other views of the memory are not
        changed.
        """
        while self.arrays:
            array = self.arrays.pop()
            if sys.getrefcount(array) > 2:
                array._array = array.numpy()
            del array
        if any(memory() is not None for memory in self.memory):
            gc.collect()  # it may hang in a cycle of the function's own objects
            if any(memory() is not None for memory in self.memory):
                raise ArgumentError(f"call_packed: {name} kept a view of an array of the kernel, whose memory may be gone "
                                    "after the call", hint="keep a copy: x.numpy()")


def _compact(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[k + 1:]) for k in range(len(shape))]


# --- exceptions on their way to the caller --------------------------------------------------------------------------

def publish(error: BaseException) -> None:
    """Records the exception that the kernel on this thread will raise."""
    _pending.error = error


def take_error() -> BaseException | None:
    """Returns and clears the exception that a kernel on this thread has recorded; None if there is none."""
    error: BaseException | None = getattr(_pending, "error", None)
    _pending.error = None
    return error


def call_address() -> int:
    return id(call_from_kernel)


def publish_address() -> int:
    return id(publish)


# --- machine code ---------------------------------------------------------------------------------------------------

def callback_source() -> str:
    """Returns the IR of `tedsl_begin_callbacks`, `tedsl_call_packed` and `tedsl_publish_error`."""
    return _SOURCE


# What functions of a kernel share, on its stack: the exception, the thread that called the kernel (a pthread_t), its sigset_t.
FRAME = "{ ptr, i64, [16 x i64] }"

_SOURCE = f"%Frame = type {FRAME}\n" + """
@tedsl_python_call = external global i8
@tedsl_python_publish = external global i8
@words = private unnamed_addr constant [3 x i8] c"LL\\00"
@object = private unnamed_addr constant [2 x i8] c"O\\00"
declare ptr @PyGILState_GetThisThreadState()
declare i32 @PyGILState_Ensure()
declare ptr @PyEval_SaveThread()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare i32 @PyException_SetTraceback(ptr, ptr)
declare void @Py_DecRef(ptr)
declare i64 @pthread_self()
declare i32 @pthread_sigmask(i32, ptr, ptr)

define void @tedsl_begin_callbacks(ptr %frame) {
  %caller_at = getelementptr %Frame, ptr %frame, i32 0, i32 1
  %mask_at = getelementptr %Frame, ptr %frame, i32 0, i32 2
  store ptr null, ptr %frame, align 8
  %self = call i64 @pthread_self()
  store i64 %self, ptr %caller_at, align 8
  %r = call i32 @pthread_sigmask(i32 0, ptr null, ptr %mask_at)
  ret void
}

define i32 @tedsl_call_packed(ptr %text, ptr %slots, ptr %frame) {
  %old = alloca [16 x i64], align 8
  %caller_at = getelementptr %Frame, ptr %frame, i32 0, i32 1
  %mask_at = getelementptr %Frame, ptr %frame, i32 0, i32 2
  %caller = load i64, ptr %caller_at, align 8
  %self = call i64 @pthread_self()
  %own = icmp eq i64 %self, %caller
  br i1 %own, label %here, label %elsewhere
here:
  %status = call i32 @call_python(ptr %text, ptr %slots, ptr %frame)
  ret i32 %status
elsewhere:
  %known = call ptr @PyGILState_GetThisThreadState()
  %unknown = icmp eq ptr %known, null
  br i1 %unknown, label %introduce, label %worker
introduce:
  %kept = call i32 @PyGILState_Ensure()
  %released = call ptr @PyEval_SaveThread()
  br label %worker
worker:
  %m1 = call i32 @pthread_sigmask(i32 2, ptr %mask_at, ptr %old)
  %there = call i32 @call_python(ptr %text, ptr %slots, ptr %frame)
  %m2 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  ret i32 %there
}

define internal i32 @call_python(ptr %text, ptr %slots, ptr %error) {
entry:
  %type = alloca ptr, align 8
  %value = alloca ptr, align 8
  %trace = alloca ptr, align 8
  %gil = call i32 @PyGILState_Ensure()
  %t = ptrtoint ptr %text to i64
  %s = ptrtoint ptr %slots to i64
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr @tedsl_python_call, ptr @words, i64 %t, i64 %s)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raised, label %fine
fine:
  call void @Py_DecRef(ptr %answer)
  br label %done
raised:
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  call void @PyErr_NormalizeException(ptr %type, ptr %value, ptr %trace)
  %exception = load ptr, ptr %value
  %frames = load ptr, ptr %trace
  %bare = icmp eq ptr %frames, null
  br i1 %bare, label %keep, label %traced
traced:
  %set = call i32 @PyException_SetTraceback(ptr %exception, ptr %frames)
  br label %keep
keep:
  %class = load ptr, ptr %type
  call void @Py_DecRef(ptr %class)
  call void @Py_DecRef(ptr %frames)
  %swap = cmpxchg ptr %error, ptr null, ptr %exception seq_cst seq_cst
  %first = extractvalue { ptr, i1 } %swap, 1
  br i1 %first, label %done, label %later
later:  ; another one was raised before
  call void @Py_DecRef(ptr %exception)
  br label %done
done:
  %status = phi i32 [ 0, %fine ], [ 3, %keep ], [ 3, %later ]
  call void @PyGILState_Release(i32 %gil)
  ret i32 %status
}

define void @tedsl_publish_error(ptr %error) {
entry:
  %exception = load ptr, ptr %error
  %none = icmp eq ptr %exception, null
  br i1 %none, label %done, label %some
some:
  %gil = call i32 @PyGILState_Ensure()
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr @tedsl_python_publish, ptr @object, ptr %exception)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %lost, label %given
lost:
  call void @PyErr_Clear()
  br label %end
given:
  call void @Py_DecRef(ptr %answer)
  br label %end
end:
  call void @Py_DecRef(ptr %exception)
  call void @PyGILState_Release(i32 %gil)
  br label %done
done:
  ret void
}
"""
