"""What tuners and templates written for TVM ask for: points at random, ranks of scores, rates in words, values of constants."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.autotvm.absent import OF_UTILS
from tedsl.errors import ArgumentError, entries
from topi.utils import get_const_int, get_const_tuple

__all__ = ["format_si_prefix", "get_const_int", "get_const_tuple", "get_func_name", "get_rank", "sample_ints"]
SI_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def sample_ints(low: int, high: int, m: int) -> list[int]:
    """`m` different numbers from `low` up to, and without, `high`, at random by `random.seed`."""
    if not all(type(number) is int for number in (low, high, m)) or m < 0 or high - low < m:
        raise ArgumentError(f"sample_ints: there are no {m!r} different numbers from {low!r} up to {high!r}",
                            hint="min(m, len(task.config_space)) points are all of a space")
    return random.sample(range(low, high), m)


def get_rank(values: Sequence[float]) -> list[int]:
    """For each value how many are larger: 0 for the largest. Equal ones are ranked in their order."""
    order = sorted(range(len(values)), key=lambda at: -values[at])
    ranks = [0] * len(values)
    for rank, at in enumerate(order):
        ranks[at] = rank
    return ranks


def get_func_name(func: Callable[..., Any]) -> str:
    """The name of a function; of a partial one, that of the function inside."""
    inside = getattr(func, "func", func)
    return str(getattr(inside, "__name__", type(inside).__name__))


def format_si_prefix(x: float, si_prefix: str) -> float:
    """`x` in units of a prefix: 2.5e9 in "G" is 2.5."""
    return x / scale_of(si_prefix)


def scale_of(si_prefix: str) -> float:
    """The number that a prefix stands for. Raises ArgumentError for others than those of SI_PREFIXES."""
    if si_prefix not in SI_PREFIXES:
        raise ArgumentError(f"si_prefix is one of {', '.join(map(repr, SI_PREFIXES))}, not {si_prefix!r}")
    return SI_PREFIXES[si_prefix]


entries(globals(), absent=OF_UTILS, later={"EmptyContext": "contextlib:nullcontext"})
