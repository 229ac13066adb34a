"""External functions by name: Python functions that `call_packed` calls, and C functions that are operators of the language."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError
from tedsl.ir.dtype import DType
from tedsl.ir.ops import MATH_BINARY, MATH_UNARY
from tedsl.record import record


@record
class Registered:
    """A registered Python function; `as_array` wraps a numpy array, without a copy, as the array that the function takes."""

    function: Callable[..., Any]
    as_array: Callable[[Any], Any]


FUNCTIONS: dict[str, Registered] = {}  # filled by runtime/functions.py
# By the begin of their names, the modules that register functions.
_SHIPPED = {"tvm.contrib.cblas.": "tedsl.contrib.cblas", "tvm.contrib.random.": "tedsl.contrib.random",
            "tvm.contrib.sort.": "tedsl.contrib.sort", "test.op.": "tedsl.lower.intrinsics.inferred"}


def find_function(name: object) -> Registered | None:
    """The function called `name`, also one that a module of ours registers; None if there is none."""
    if isinstance(name, str) and name not in FUNCTIONS:
        for begin, module in _SHIPPED.items():
            if name.startswith(begin):
                import_module(module)
    return FUNCTIONS.get(name) if isinstance(name, str) else None


def listed() -> list[str]:
    """The names of the functions registered by users, without those of checked mode."""
    return sorted(name for name in FUNCTIONS if not name.startswith("tedsl.checked."))


def registered(name: str) -> Registered:
    """The function called `name`; OptionError if there is none."""
    entry = find_function(name)
    if entry is None:
        raise OptionError(f"call_packed: no Python function is registered as {name!r}; registered: "
                          f"{', '.join(listed()) or '(none)'}", hint=f"tedsl.register_func({name!r}, function)")
    return entry


def as_number(name: str, answer: Any, of: DType) -> int | float:
    """The return value of the function `name` as a number of dtype `of`; None counts as 0.

    An integral float such as 2.0 is accepted for an integer; ArgumentError for a value that `of` cannot represent.
    """
    if answer is None:
        return 0
    of = of.element
    kind = getattr(getattr(answer, "dtype", None), "kind", "")  # numpy's texts, dates and complex numbers convert themselves
    if not hasattr(answer, "__float__" if of.is_float else "__int__") or getattr(answer, "shape", ()) != () or (
            kind and kind in "SUMmc"):
        raise ArgumentTypeError(f"call_packed: {name} returned {_shown(answer)}, and the program uses it as a number",
                                hint="return a number; a call that stands alone, as a statement, may return anything")
    try:
        return float(answer) if of.is_float else _whole(answer, of)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ArgumentError(f"call_packed: {name} returned {_shown(answer)}, and the program uses it as {of}: {error}",
                            hint=_hint(of)) from None


def _whole(answer: Any, of: DType) -> int:
    """`answer` as an integer of dtype `of`."""
    number = int(answer)
    if number != answer:
        raise ValueError("it is not a whole number")
    low, high = (0, 2**64 - 1) if of.min_value is None or of.max_value is None else (of.min_value, of.max_value)
    if not low <= number <= high:
        raise ValueError(f"that holds {low} to {high}")
    return number


def _shown(answer: Any) -> str:
    try:
        text = repr(answer)
    except ValueError:  # Python writes only so many digits
        return f"an {type(answer).__name__} of too many digits"
    return text if len(text) <= 80 else f"{text[:60]}..."


def _hint(of: DType) -> str:
    if of.is_float:
        return "return a number that a float can hold"
    return "return a whole number that fits, or call it with another dtype: " \
        "tir.call_intrin('float64', 'tir.call_packed', name, ...)"


# Names of the C library that mean an operator of the language: those are computed as the language says, also on vectors.
C_MATH = {name: name for name in (*MATH_UNARY, *MATH_BINARY) if name not in ("rsqrt", "sigmoid", "exp10")}
C_MATH["rint"] = "nearbyint"
C_MATH |= {f"{name}f": op for name, op in C_MATH.items()}
