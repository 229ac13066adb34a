"""Amounts that programs give: counts of calls and trials, seconds. What no machine can count or wait for is refused."""

from __future__ import annotations

import math
import sys

from tedsl.errors import ArgumentError

MOST = sys.maxsize  # of a count: as much as machine code counts
LONGEST = 1e6  # seconds of a wait: more than a search has, and what the clocks of systems still count
_LONG = 1 << 70  # an int is not shown digit by digit beyond


def check_count(what: str, name: str, value: object, least: int) -> None:
    """Raises ArgumentError unless `value`, the parameter `name` of `what`, is an int from `least` to MOST."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{what}: {name} is an int of at least {least}, not {_shown(value)}")
    if value > MOST:
        raise ArgumentError(f"{what}: {name} is an int of at most 2**{MOST.bit_length()} - 1, not {_shown(value)}")


def check_number(what: str, name: str, value: object, words: str = "a number", may_be_zero: bool = False) -> None:
    """Raises ArgumentError unless `value`, the parameter `name` of `what`, is a finite number above 0. words: of what it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value >= 0 if may_be_zero else value > 0):
        raise ArgumentError(f"{what}: {name} is {words} {'of at least' if may_be_zero else 'above'} 0, not {_shown(value)}")
    if not value < math.inf or value > sys.float_info.max:
        raise ArgumentError(f"{what}: {name} is {words} of at most {sys.float_info.max:.2g}, not {_shown(value)}")


def _shown(value: object) -> str:
    """A value as a message shows it: of a long int how many digits it has."""
    if not isinstance(value, int) or abs(value) < _LONG:
        return repr(value)
    digits = int((abs(value).bit_length() - 1) * math.log10(2)) + 1
    return f"{'a negative' if value < 0 else 'an'} int of about {digits} digits"
