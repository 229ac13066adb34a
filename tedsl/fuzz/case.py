"""A test case as text: a program with its schedule and data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tedsl.fuzz.values import Array, converted, is_float, numpy_type
from tedsl.record import record
from tedsl.target.current import as_target


@record
class Data:
    """An input array: dtype, shape, seed of its values, and layout in memory (compact, transposed, every second element)."""

    dtype: str
    shape: tuple[int, ...]
    seed: int
    special: bool = False
    layout: str = "compact"

    def values(self) -> Array:
        rng = np.random.default_rng(self.seed)
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if is_float(self.dtype):
            array = rng.integers(-16, 17, self.shape) / 4.0
            if self.special and array.size:
                some = rng.integers(0, array.size, max(1, array.size // 8))
                array.reshape(-1)[some] = rng.choice([np.nan, np.inf, -np.inf, -0.0], len(some))
            return np.asarray(converted(array, "float64", self.dtype))
        limits = np.iinfo(self.dtype)
        array = rng.integers(max(limits.min, -9), 10, self.shape).astype(self.dtype)
        if self.special and array.size:
            some = rng.integers(0, array.size, max(1, array.size // 6))
            extremes = [limits.min, limits.max, limits.max // 3]
            array.reshape(-1)[some] = rng.choice(np.array(extremes, self.dtype), len(some))
        return array


@dataclass
class Case:
    """lines declare tensors; schedule: directives on `s`; args, outputs: names of tensors and variables."""

    lines: list[str]
    outputs: list[str]
    args: list[str]
    sizes: dict[str, float] = field(default_factory=dict)
    data: dict[str, Data] = field(default_factory=dict)
    schedule: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    target: str = "llvm"
    simple_mode: bool = False
    exact: bool = True
    tolerance: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)  # of the directives, as `directives.py` calls them

    def script(self) -> str:
        """The text of a Python program that checks this case."""
        lines, schedule = ("".join(f"\n    {line!r}," for line in some) for some in (self.lines, self.schedule))
        defaults = Case([], [], [])
        named = ("outputs", "args", "sizes", "data", "config", "target", "simple_mode", "exact", "tolerance")
        fields = "".join(f"    {name}={getattr(self, name)!r},\n" for name in named
                         if getattr(self, name) != getattr(defaults, name))
        imports = "from tedsl.fuzz.check import check, show"
        if as_target(self.target).kind.device_backend:
            imports = "from tedsl.fuzz.check import show\nfrom tedsl.fuzz.targets.on_device import check"
        return (f"from tedsl.fuzz.case import Case, Data\n{imports}\n\ncase = Case(\n"
                f"    lines=[{lines}\n    ],\n    schedule=[{schedule}\n    ],\n{fields})\nshow(case)\ncheck(case)\n")


def laid_out(array: Array, layout: str) -> tuple[Array, Array]:
    """`array` with the strides of `layout`, inside new memory with guard values around it.

    Returns the view and the memory; the guard values must stay unchanged.
    """
    shape = array.shape
    if layout == "transposed":
        view, memory = _inside(shape[::-1], array.dtype)
        view = view.T
    elif layout == "strided" and shape:
        view, memory = _inside((*shape[:-1], 2 * shape[-1]), array.dtype)
        view = view[..., ::2]
    else:
        view, memory = _inside(shape, array.dtype)
    view[...] = array
    return view, memory


MARGIN = 256  # bytes of canaries on either side, at least
LINE = 64  # bytes


def _inside(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    count = int(np.prod(shape)) * dtype.itemsize
    behind = 7 * sum(shape) * dtype.itemsize % LINE  # a line of memory, if the memory begins at one
    memory = np.full(count + 2 * MARGIN + LINE, 0x5A, np.uint8)
    return memory[MARGIN + behind:MARGIN + behind + count].view(dtype).reshape(shape), memory


def empty_result(shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    """An output array filled with guard values, and its memory."""
    array, memory = _inside(shape, numpy_type(dtype))
    if dtype == "bool":
        array[...] = False
    return array, memory
