"""Pipelines: tuples of passes that read top-down; observers (dump, time, verify) are attached from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.ir.func import PrimFunc
from tedsl.record import record

Pass = Callable[[PrimFunc], PrimFunc]
Observer = Callable[[str, PrimFunc], None]


@record
class Pipeline:
    """Passes in the order they run. `observe(name, func)` is called with each result."""

    passes: tuple[Pass, ...]

    def __call__(self, func: PrimFunc, observe: Observer | None = None) -> PrimFunc:
        for step in self.passes:
            func = step(func)
            if observe is not None:
                observe(pass_name(step), func)
        return func

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline(self.passes + other.passes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(pass_name, self.passes))


def with_options(step: Callable[..., PrimFunc], *leading: Any, **options: Any) -> Pass:
    """Returns the pass `step` with its options bound; it keeps the name."""

    def bound(func: PrimFunc) -> PrimFunc:
        return step(func, *leading, **options)

    bound.__name__, bound.__doc__ = pass_name(step), step.__doc__
    return bound


def pass_name(step: Pass) -> str:
    """Returns the name that observers get: the name of the function."""
    return getattr(step, "__name__", None) or type(step).__name__
