"""Functions that tests call to see how values and errors pass through calls, by TVM's names."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from tedsl import error
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.runtime.devices.device import Device, device


def nop(*args: Any) -> None:
    """Takes anything and does nothing."""


def echo(x: Any) -> Any:
    """Returns what it is given."""
    return x.item() if hasattr(x, "item") and getattr(x, "shape", None) == () else x


def device_test(dev: Device, dtype: int, did: int) -> Device:
    """Returns `dev`; AssertionError unless its type and number are these."""
    if (dev.device_type, dev.device_id) != (int(dtype), int(did)):
        raise AssertionError(f"{dev} is not device {did} of type {dtype}")
    return device(dev.device_type, dev.device_id)


context_test = device_test  # before 0.8


def object_use_count(obj: Any) -> int:
    """How many references to an object the program holds, as far as Python counts them: that of a variable is one."""
    return max(sys.getrefcount(obj) - _OF_THE_CALL, 1)


_OF_THE_CALL = 4  # what the call itself holds: the argument here and in the entry around it


def test_wrap_callback(cb: Callable[[], Any]) -> Callable[[], Any]:
    """A function that calls `cb`; its errors come through as they are."""
    return lambda: cb()


def test_raise_error_callback(msg: str) -> Callable[[], NoReturn]:
    """A function that raises the error that `msg` names before its colon: "OpNotImplemented: text"."""
    kind = getattr(error, msg.partition(":")[0], None)

    def fail() -> NoReturn:
        raise (kind if isinstance(kind, type) and issubclass(kind, Exception) else TedslError)(msg)

    return fail


def test_check_eq_callback(msg: str) -> Callable[[Any, Any], None]:
    """A function of two values that raises the error that `msg` names unless they are equal."""
    fail = test_raise_error_callback(msg)

    def check(x: Any, y: Any) -> None:
        if x != y:
            fail()

    return check


def ErrorTest(x: int, y: int) -> int:
    """Returns y; ArgumentError, a ValueError, unless x equals y."""
    if x != y:
        raise ArgumentError(f"expect x and y to be equal: {x} and {y}")
    return y


def identity_after(x: Any, sleep: float) -> Any:
    """Returns x after so many seconds."""
    time.sleep(sleep)
    return x


def terminate_self() -> NoReturn:
    """Ends the process with status -1."""
    sys.exit(-1)


def slow(fn: Any) -> Any:
    """Decorator of long tests: they run."""
    return fn


def skip_if_32bit(func: Any = None, reason: str = "") -> Any:
    """Decorator of tests that need 64 bits: they run where Python has them."""
    if not callable(func) and func is not None:
        raise ArgumentTypeError(f"skip_if_32bit is a decorator, and {func!r} is no test", hint='skip_if_32bit(reason="...")')
    if sys.maxsize > 2**32:
        return func if func is not None else lambda test: test
    import pytest

    mark = pytest.mark.skip(reason=reason or "needs 64 bits")
    return mark if func is None else mark(func)


skip_if_wheel_test = slow
