"""Random numbers: first values of parameters, and which elements dropout keeps."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError


class _Generator(threading.local):
    def __init__(self) -> None:
        self.numbers = np.random.default_rng()


_GENERATOR = _Generator()


def manual_seed(seed: int) -> None:
    """Starts the generator of this thread anew, so that what follows repeats."""
    if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
        raise ArgumentError(f"manual_seed: {seed!r} is not an integer from 0")
    _GENERATOR.numbers = np.random.default_rng(seed)


def generator() -> np.random.Generator:
    """The generator of this thread."""
    return _GENERATOR.numbers


def checked_sizes(where: str, **sizes: object) -> None:
    """Raises ArgumentError for a size of a layer that is not an integer from 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"{where}: {name} is {size!r}, not a number from 1")


def kaiming_normal(shape: tuple[int, ...], fan_in: int, gain: float = math.sqrt(2), dtype: Any = "float32") -> Tensor:
    """A parameter with normal numbers of standard deviation gain / sqrt(fan_in) (He et al. 2015)."""
    return _parameter(generator().standard_normal(shape) * (gain / math.sqrt(max(fan_in, 1))), dtype)


def uniform(shape: tuple[int, ...], bound: float, dtype: Any = "float32") -> Tensor:
    """A parameter with numbers from -bound to bound."""
    return _parameter(generator().uniform(-bound, bound, shape), dtype)


def constant(shape: tuple[int, ...], value: float, dtype: Any = "float32") -> Tensor:
    """A parameter with one value."""
    return _parameter(np.full(shape, value), dtype)


def _parameter(values: Any, dtype: Any) -> Tensor:
    return Tensor(values, dtype, requires_grad=True)
