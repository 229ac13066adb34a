"""What users give to directives."""

from __future__ import annotations

import operator
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr


def whole_number(value: Any) -> int | None:
    """The int that `value` is: an int, a constant expression, an integer of numpy. None for all else, also for a bool."""
    if isinstance(value, (bool, Expr)):
        return None if isinstance(value, bool) else build.as_int(value)
    try:
        return operator.index(value)
    except TypeError:
        return None
