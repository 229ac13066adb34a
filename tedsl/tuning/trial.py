"""A trial of a search, and what a search is: whoever proposes candidates and learns from their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tedsl.ir.expr import Var
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.target.target import Target
from tedsl.tune.measure.outcome import Candidate, Outcome


@record(eq=False)
class Trial:
    """A candidate that was measured. choices: its decisions with their values as text; seconds: when it ended, since the search
    began, negative for trials of an earlier search; predicted: seconds per call that the model of the search expected, None
    without one.
    """

    candidate: Candidate
    outcome: Outcome
    choices: Mapping[str, str]
    seconds: float
    predicted: float | None = None

    @property
    def cost(self) -> float:
        """Seconds per call; infinity after a failure."""
        return self.outcome.cost


class Search(Protocol):
    """What proposes candidates. name: of what is tuned; flop: operations of a call."""

    name: str
    target: Target
    flop: float

    def propose(self, count: int) -> list[Candidate]:
        """The candidates that are measured next, at most `count`; none where all were."""

    def predicted(self, candidate: Candidate) -> float | None:
        """Seconds per call that the search expects of a candidate; None if it does not know."""

    def choices(self, candidate: Candidate) -> Mapping[str, str]:
        """The decisions of a candidate with their values as text."""

    def learn(self, trials: Sequence[Trial]) -> None:
        """Learns from trials."""

    def default(self) -> Candidate:
        """The candidate that topi's rules make, which is measured first."""

    def args(self) -> Sequence[Tensor | Var] | None:
        """The arguments of the kernel; None where decisions change their shapes, so that results cannot be compared."""

    def load(self, path: Path) -> list[Trial]:
        """The trials of a file, which are not proposed again."""

    def append(self, path: Path, trial: Trial) -> None:
        """Writes a trial to the end of a file."""
