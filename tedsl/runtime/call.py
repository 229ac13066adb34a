"""The callable behind every kernel: checks the arguments in Python, runs the machine code, and raises the error for its
status.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, InternalError, entry
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Var
from tedsl.runtime.arguments import words
from tedsl.runtime.arguments.array_entry import refers_to, with_address
from tedsl.runtime.arguments.check import Prepared, prepare
from tedsl.runtime.callbacks import take_error
from tedsl.runtime.devices.device import Device, cpu
from tedsl.runtime.signature import Signature
from tedsl.runtime.timing import NO_PAUSES, Pauses, TimingResult, check_counts, measure

# What a kernel returns; codegen/kernels/abi.py says the same.
NO_MEMORY, CALLBACK_RAISED, FIRST_ASSERTION = 1, 3, 16

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02
_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)  # releases the GIL
_TIME = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class CheckedCall:
    """A kernel with its signature: checks a call's arguments, runs it and raises its errors. Compiled entry points fall back on
    it.

    general, compact: addresses of `i32 (ptr slots)`, for any strides the signature allows and for compact arrays (0: none);
    compact_scalars: the variables that the second takes. library: keeps the machine code alive. timer: returns the address of
    the timing loop, which is compiled on first use.
    """

    __slots__ = ("__dict__", "__weakref__", "_table")  # the last is for `arguments/array_entry.py`

    _table: bytes

    def __init__(self, signature: Signature, library: object, general: int, compact: int, compact_scalars: tuple[Var, ...],
                 messages: Sequence[str], timer: Callable[[], int]) -> None:
        self._link(library, general, compact, timer)
        self._check_by(signature, compact_scalars if compact else None, messages)

    def _link(self, library: object, general: int, compact: int, timer: Callable[[], int]) -> None:
        self._library = library
        self._addresses = {False: general, True: compact}
        self._timer = timer
        self._method: _MethodDef | None = None  # lives as long as the function made from it, which holds this object

    def _check_by(self, signature: Signature, compact_scalars: tuple[Var, ...] | None, messages: Sequence[str]) -> None:
        self.signature = signature
        self._compact_scalars = compact_scalars
        self._messages = tuple(messages)

    @entry
    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            self.refuse_names(*named)
        prepared = self.prepare(args)
        status = self.run(prepared)
        if status:
            self.fail(status)
        of = self.signature.result
        return None if of is None else number_in(prepared.slots[-1], of)

    @property
    def library(self) -> object:
        """What keeps the machine code alive."""
        return self._library

    @property
    def address(self) -> int:
        """The address of `i32 (ptr slots)` for any strides that the signature allows."""
        return self._addresses[False]

    @property
    def messages(self) -> tuple[str, ...]:
        return self._messages

    @property
    def timer(self) -> Callable[[], int]:
        """Returns the address of the timing loop."""
        return self._timer

    @property
    def described(self) -> tuple[str, str]:
        """The name of the function, and its documentation: how it is called."""
        of = self.signature
        return of.name, of.described

    def run(self, prepared: Prepared) -> int:
        """Runs the machine code, and returns its status."""
        return int(_CALL(self._addresses[prepared.compact])(ctypes.addressof(prepared.slots)))

    def run_many(self, prepared: Prepared, count: int, status: ctypes.c_int32) -> float:
        """Runs the machine code `count` times, or until one fails, whose status is in `status` then; returns the seconds."""
        timer = _TIME(self._timer())
        return float(timer(self._addresses[prepared.compact], ctypes.addressof(prepared.slots), count,
                           ctypes.addressof(status))) * 1e-9

    def refuse_names(self, *names: str) -> None:
        """Raises ArgumentTypeError: arguments cannot be given by name."""
        raise ArgumentTypeError(f"{self.signature.name} takes its arguments in their order, not by name: {', '.join(names)}",
                                hint=f"call {self.signature.name}({self.signature.names})")

    def prepare(self, args: Sequence[Any]) -> Prepared:
        """Returns the checked arguments."""
        return prepare(self.signature, args, self._compact_scalars)

    def place_of(self, args: Sequence[Any]) -> Device:
        """Returns the device on which a call with `args` runs."""
        return cpu()

    def fail(self, status: int) -> None:
        """Raises the error for a non-zero status."""
        error = take_error()  # also one that came too late to decide the status
        if status == CALLBACK_RAISED and error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        if status == NO_MEMORY:
            raise MemoryError(words.no_memory(self.signature))
        if 0 <= status - FIRST_ASSERTION < len(self._messages):
            raise ArgumentError(f"{self.signature.name}: {self._messages[status - FIRST_ASSERTION]}")
        raise InternalError(f"{self.signature.name} returned the unknown status {status}")

    def time(self, args: Sequence[Any], number: int, repeat: int, min_repeat_ms: float,
             pauses: Pauses = NO_PAUSES) -> TimingResult:
        """Measures the machine code in seconds per call, without the checks of arguments."""
        check_counts(number, repeat, min_repeat_ms)
        with self.timed(args) as run:
            return measure(run, number, repeat, min_repeat_ms, pauses)

    @contextmanager
    def timed(self, args: Sequence[Any]) -> Iterator[Callable[[int], float]]:
        """Context manager of a function that calls the machine code n times with `args`, which are checked once, and returns
        the seconds.
        """
        prepared = self.prepare(args)
        status = ctypes.c_int32(0)

        def run(count: int) -> float:
            elapsed = self.run_many(prepared, count, status)
            if status.value:
                self.fail(status.value)
            return elapsed

        yield run

    def __reduce__(self) -> tuple[Any, ...]:
        raise unpicklable(f"the function {self.signature.name}")

    def with_shared_entry(self, table: bytes, address: int) -> Callable[..., Any]:
        """Returns the builtin function whose machine code is the shared entry point at `address`, which checks calls by
        `table`; this object, where the entry point does not find it.
        """
        self._table = with_address(table, self.address)
        return self.with_entry(address) if refers_to(self, self._table) else self

    def with_entry(self, address: int, library: object = None) -> Callable[..., Any]:
        """Returns the builtin function whose machine code is the entry point at `address`; its `self` is this object.

        library: keeps the entry point alive, if it is not in that of the kernel.
        """
        self._library = (self._library, library)
        make: Any = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        name, doc = self.described
        self._method = _MethodDef(name.encode(), address, _METH_FASTCALL | _METH_KEYWORDS, doc.encode())
        return make(ctypes.addressof(self._method), self, None)  # type: ignore[no-any-return]


def number_in(slot: int, of: DType) -> int | float | bool:
    """Returns the number of dtype `of` in a 64-bit slot, where a kernel has stored it as `codegen/kernels/abi.py` says."""
    if of.is_bool:
        return bool(slot)
    if of.is_float:
        form = "<d" if of.bits == 64 else "<f"
        return float(struct.unpack_from(form, slot.to_bytes(8, "little", signed=True))[0])
    return slot if of.is_int else slot & (1 << 64) - 1


def unpicklable(what: str) -> ArgumentTypeError:
    """Returns the error for machine code that a program tries to pickle, as when it is sent to another process."""
    return ArgumentTypeError(f"{what} is machine code of this process and cannot be pickled",
                             hint="pickle the schedule or the IRModule of lower, and build it in the other process")
