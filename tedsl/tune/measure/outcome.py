"""What a search proposes, and what measuring says of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.schedule.handles import Schedule

# The kinds of failures: the candidate has no schedule (it, or a template, refused); the schedule does not compile; the process
# that built or ran it died; it took longer than its limit; its results differ from those expected; the call raised an error.
FAILURES = ("refused", "compile", "crash", "timeout", "wrong", "run")
Scheduled: TypeAlias = tuple[Schedule, Sequence[Tensor | Var]]


class Candidate(Protocol):
    """What a search proposes."""

    def schedule(self) -> Scheduled:
        """The schedule and the arguments of its function. Called in the process that builds it; whatever it raises makes the
        trial a failure of the kind "refused".
        """

    def to_json(self) -> object:
        """The candidate as numbers, texts, lists and dicts, of which the search that proposed it makes it again."""


def candidates_in(given: object, what: str, methods: Sequence[str] = ("schedule", "to_json")) -> Iterator[Candidate]:
    """The candidates that a caller has given, one by one. Raises ArgumentTypeError for what lacks one of the `methods`."""
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{what} takes candidates, a list or an iterator of them, not {given!r}")
    return (_candidate(one, what, methods) for one in given)


def _candidate(one: Any, what: str, methods: Sequence[str]) -> Candidate:
    missing = [f"{method}()" for method in methods if not callable(getattr(one, method, None))]
    if missing:
        raise ArgumentTypeError(f"{what}: a candidate has the method {' and '.join(missing)}, and {one!r} has not")
    found: Candidate = one
    return found


@record
class Failure:
    """Why a candidate has no time. kind: one of FAILURES."""

    kind: str
    message: str

    def __post_init__(self) -> None:
        if self.kind not in FAILURES:
            raise ArgumentError(f"Failure: there is no kind {self.kind!r}", hint=f"choose one of {', '.join(FAILURES)}")

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@record
class Outcome:
    """What measuring says of a candidate.

    costs: seconds per call, one number for each repetition; empty after a failure. build_seconds: of the schedule and its code.
    all_seconds: of building, checking and running. timestamp: when it ended, in seconds since 1970. machine: the model of the
    one that ran it; "": this one.
    """

    costs: tuple[float, ...]
    failure: Failure | None = None
    build_seconds: float = 0.0
    all_seconds: float = 0.0
    timestamp: float = 0.0
    machine: str = ""

    @property
    def cost(self) -> float:
        """The median of the costs, in seconds; infinity after a failure."""
        from statistics import median  # few programs measure anything

        return median(self.costs) if self.costs and self.failure is None else math.inf
