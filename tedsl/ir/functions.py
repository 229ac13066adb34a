"""Functions outside of a program, by name: Python's, which `call_packed` calls, and C's that are operators of the language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tedsl.errors import ArgumentTypeError, OptionError
from tedsl.ir.ops import MATH_BINARY, MATH_UNARY


@dataclass(frozen=True)
class Registered:
    """A Python function; `as_array` makes the array that it gets from one of numpy on the same memory."""

    function: Callable[..., Any]
    as_array: Callable[[Any], Any]


FUNCTIONS: dict[str, Registered] = {}  # filled by runtime/functions.py


def listed() -> list[str]:
    """The names of the functions of the program; what checked mode registers for itself is none of them."""
    return sorted(name for name in FUNCTIONS if not name.startswith("tedsl.checked."))


def registered(name: str) -> Registered:
    """The function called `name`; OptionError if there is none."""
    found = FUNCTIONS.get(name)
    if found is None:
        raise OptionError(f"call_packed: no Python function is registered as {name!r}; registered: "
                          f"{', '.join(listed()) or '(none)'}", hint=f"tedsl.register_func({name!r}, function)")
    return found


def as_number(name: str, answer: Any, is_float: bool) -> int | float:
    """What the function `name` returned, as the number that the program uses; None counts as 0."""
    if answer is None:
        return 0
    if not hasattr(answer, "__float__" if is_float else "__int__") or getattr(answer, "shape", ()) != ():
        raise ArgumentTypeError(f"call_packed: {name} returned {answer!r}, and the program uses it as a number",
                                hint="return a number; a call that stands alone, as a statement, may return anything")
    return float(answer) if is_float else int(answer)


# Names of the C library that mean an operator of the language: those are computed as the language says, also on vectors.
C_MATH = {name: name for name in (*MATH_UNARY, *MATH_BINARY) if name not in ("rsqrt", "sigmoid", "exp10")}
C_MATH["rint"] = "nearbyint"
C_MATH |= {f"{name}f": op for name, op in C_MATH.items()}
