"""The registered function that kernels of checked mode call when a check fails: `tedsl.checked.fault`."""

from __future__ import annotations

from typing import NoReturn

from tedsl.errors import AccessError
from tedsl.runtime.functions import register_func

FAULT = "tedsl.checked.fault"
ANY = -(1 << 63)  # among the integers: no particular one


def provide_faults() -> None:
    """Registers the function, unless it is registered."""
    register_func(FAULT, _fault, override=True)


def _fault(template: str, *values: int) -> NoReturn:
    """Raises AccessError with the integers `values` in the gaps of `template`."""
    raise AccessError(template.format(*["one of several" if value == ANY else value for value in values]))
