"""The registered function that kernels of checked mode call when a check fails: `tedsl.checked.fault`."""

from __future__ import annotations

from typing import NoReturn

from tedsl.errors import AccessError
from tedsl.runtime.functions import register_func

FAULT = "tedsl.checked.fault"
ANY = -(1 << 63)  # among the integers: no particular one


def provide_faults() -> None:
    """Registers the function unless it is registered already."""
    register_func(FAULT, _fault, override=True)


class _Number(int):
    """A signed 64-bit integer that `{:u}` prints as the unsigned one of the same bits, and `{}` as "one of several" if it is
    `ANY`."""

    def __format__(self, spec: str) -> str:
        return str(self % 2**64) if spec == "u" else "one of several" if self == ANY else str(self)


def _fault(template: str, *values: int) -> NoReturn:
    """Raises AccessError with `template`, its placeholders filled with the integers `values`."""
    raise AccessError(template.format(*map(_Number, values)))
