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


def loops(make: Callable[[Any], Callable[..., None]], arrays: Sequence[Any], like: Any, threads: int) -> Contender | None:
    """make(numba.prange)(*arrays, out), compiled; None without numba."""
    numba = numba_or_none()
    if numba is None:
        return None
    compiled = numba.njit(make(numba.prange), fastmath=True, parallel=threads > 1)
    out = np.empty(like.shape, like.dtype)
    return Contender(lambda: compiled(*arrays, out), lambda: out)
