"""Comparing results."""

from __future__ import annotations

from typing import Any

from tedsl.runtime.array import NDArray

__all__ = ["assert_allclose"]


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """AssertionError unless shapes agree and |actual - desired| <= atol + rtol * |desired| everywhere; NaNs are equal."""
    import numpy

    left, right = (numpy.asanyarray(x.numpy() if isinstance(x, NDArray) else x) for x in (actual, desired))
    if left.shape != right.shape:
        raise AssertionError(f"the shapes differ: {left.shape} and {right.shape}")
    numpy.testing.assert_allclose(left, right, rtol=rtol, atol=atol, verbose=True)
