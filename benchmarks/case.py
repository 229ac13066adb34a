"""A benchmark: contenders that compute one result, what that result is, and how much work it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

OURS = "tedsl"  # names of our forms begin with it


@dataclass(frozen=True)
class Contender:
    """A call that computes the result of a case, and the result of the last call as an array of the layout of the reference.

    A contender without `result` is not checked: it builds, or does nothing.
    """

    call: Callable[[], object]
    result: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Goal:
    """What a case has to reach: the time of the best contender over ours, and the part of the machine's limit; both, or one
    of them if `either`.
    """

    ratio: float | None = None
    share: float | None = None
    either: bool = False

    def met(self, ratio: float | None, share: float | None) -> bool | None:
        """Whether measured numbers reach the goal; None where there is nothing to compare."""
        asked = [(self.ratio, ratio), (self.share, share)]
        answers = [value >= wanted - 5e-4 for wanted, value in asked if wanted is not None and value is not None]
        if not answers:
            return None
        return any(answers) if self.either else all(answers)

    def __str__(self) -> str:
        parts = [f"{self.ratio:g}"] if self.ratio is not None else []
        parts += [f"{100 * self.share:.0f} %"] if self.share is not None else []
        return (" or " if self.either else ", ").join(parts)


@dataclass(frozen=True)
class Case:
    """One line of the table, whose name is that of its `Maker`.

    row: the key of its row in `benchmarks.goals`. reference: the result computed in float64; terms: the length of the
    sums in it, which says how far float32 may be off (0: equal). operations: a multiply-add counts two. read, written: bytes
    that have to be moved. factor: of the allowed difference. times: how often the case occurs in the networks of its row.
    budget: seconds that stand for the best contender where there is none. goal: where it is not that of the row. beside:
    contenders that are shown and do not count, since they are given more than the others.
    """

    row: str
    contenders: Mapping[str, Contender]
    reference: Callable[[], Any] | None = None
    terms: int = 1
    operations: float = 0.0
    read: float = 0.0
    written: float = 0.0
    factor: float = 1.0
    precision: float = float(np.finfo("float32").eps)
    times: int = 1
    budget: float | None = None
    goal: Goal | None = None
    beside: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Maker:
    """The name of a case and what makes it: one case's arrays live at a time, and only those that are asked for are built."""

    name: str
    make: Callable[..., Case]
    arguments: tuple[Any, ...]

    def __call__(self) -> Case:
        return replace(self.make(*self.arguments), name=self.name)


def maker(name: str, make: Callable[..., Case], *arguments: Any) -> Maker:
    """The case `make(*arguments)` under a name."""
    return Maker(name, make, arguments)


def difference(case: Case, result: Any, reference: Any) -> str:
    """How a result is wrong, or "" if it is right.

    Right is within 4 (4 + sqrt(terms)) units in the last place of the larger of the value and the root mean square of all:
    rounding errors of a sum grow about as the root of its length.
    """
    result, reference = np.asarray(result), np.asarray(reference)
    if result.shape != reference.shape:
        return f"its shape is {result.shape}, not {reference.shape}"
    if case.terms == 0:
        wrong = int(np.count_nonzero(result != reference))
        return f"{wrong} of {reference.size} elements differ" if wrong else ""
    wide = reference.astype("float64")
    scale = np.maximum(np.abs(wide), np.sqrt(np.mean(wide * wide)) if wide.size else 0.0)
    allowed = case.factor * 4.0 * (4.0 + case.terms**0.5) * case.precision * scale
    excess = np.abs(result.astype("float64") - wide) - allowed
    if not np.any(excess > 0) and not np.isnan(excess).any():
        return ""
    at = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    return f"element {tuple(int(i) for i in at)} is {result[at]}, not {wide[at]}, within {allowed[at]:.2g}"
