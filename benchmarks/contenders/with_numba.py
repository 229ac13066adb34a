"""numba as a contender: loops compiled with fast mathematics, in parallel where there are threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Contender


def numba_or_none() -> Any:
    """The module numba, or None where it is not installed."""
    try:
        import numba
    except ImportError:
        return None
    return numba


def loops(function: Callable[..., None], arrays: Sequence[Any], like: Any, threads: int) -> Contender | None:
    """`function(*arrays, out)`, whose outer loop is over numba.prange, compiled; None without numba."""
    numba = numba_or_none()
    if numba is None:
        return None
    compiled = numba.njit(function, fastmath=True, parallel=threads > 1)
    out = np.empty(like.shape, like.dtype)
    return Contender(lambda: compiled(*arrays, out), lambda: out)
