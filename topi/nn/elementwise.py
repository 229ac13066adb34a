"""Activations."""

from __future__ import annotations

from tedsl import te


def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0); NaN stays NaN."""
    made: te.Tensor = te.map_elements("relu", lambda e: te.max(e, te.const(0, x.dtype)), x)
    return made


def leaky_relu(x: te.Tensor, alpha: float) -> te.Tensor:
    """x where x > 0, else x * alpha, in the dtype of `x`."""
    made: te.Tensor = te.map_elements("leaky_relu", lambda e: te.select(e > 0, e, e * te.const(alpha, x.dtype)), x)
    return made
