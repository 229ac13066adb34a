"""Schedules from those who know better: what `topi.schedules.schedule` asks before it chooses one by its rules.

An adviser is a function (tensors, target) that returns a schedule of the tensors, or None if it knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target

Adviser: TypeAlias = Callable[[Sequence[Tensor], Target], Schedule | None]
_ADVISERS: ContextVar[tuple[Adviser, ...]] = ContextVar("tedsl_advisers", default=())


@contextmanager
def advised_by(*advisers: Adviser) -> Iterator[None]:
    """Context manager in which these advisers are asked, the first one first, then those of the blocks around it; nobody is
    asked where none is given.
    """
    before = _ADVISERS.set((*advisers, *_ADVISERS.get()) if advisers else ())
    try:
        yield
    finally:
        _ADVISERS.reset(before)


def is_advised() -> bool:
    """Whether an adviser is in force: what `topi.schedules.schedule` returns is then not known from the formulas alone."""
    return bool(_ADVISERS.get())


def advised_schedule(outs: Sequence[Tensor], target: Target) -> Schedule | None:
    """The schedule of `outs` that an adviser in force knows for `target`; None if none does."""
    advisers = _ADVISERS.get()
    if not advisers:
        return None
    with advised_by():  # an adviser that asks topi is answered by its rules
        for adviser in advisers:
            advice = adviser(outs, target)
            if advice is not None:
                return advice
    return None
