"""Many proposals: drawn at random, and bred from those that were fast."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence

from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.proposal import DEFAULT, SKETCH, Proposal, proposed
from tedsl.auto_scheduler.sketch.choices import Choices, crossed, mutated

Predict = Callable[[Sequence[list[float]]], list[float]]
_TRIES = 4  # draws for each proposal that is wanted, of which some are refused and some were there before
_CROSSED = 0.3  # of the children
_LIKE_DEFAULT = 0.15  # of random proposals


class Breeder:
    """Makes proposals, each schedule once. draw: the only source of chance, so that a seed gives an order."""

    def __init__(self, problem: Problem, draw: random.Random) -> None:
        self.problem, self.draw = problem, draw
        self.seen: set[str] = set()
        self.refused = 0
        self.until = math.inf  # by the monotonic clock: what there is by then must do

    def at_random(self, count: int) -> list[Proposal]:
        """Up to `count` proposals of any sketch; fewer where a program has no more."""
        def one() -> Proposal | None:
            sketch = DEFAULT if self.draw.random() < _LIKE_DEFAULT else SKETCH
            return proposed(self.problem, sketch, Choices(self.draw))

        return self._several(count, one)

    def children(self, parents: Sequence[Proposal], count: int) -> list[Proposal]:
        """Up to `count` proposals made of `parents`, the first of them most often."""
        weights = [1.0 / (2 + rank) for rank in range(len(parents))]

        def one() -> Proposal | None:
            mother, father = self.draw.choices(parents, weights, k=2)
            if mother.sketch == father.sketch and mother is not father and self.draw.random() < _CROSSED:
                choices = crossed(self.draw, mother.decisions, father.decisions)
            else:
                choices = mutated(self.draw, mother.decisions, mother.free)
            return proposed(self.problem, mother.sketch, choices)

        return self._several(count, one) if parents else []

    def evolved(self, parents: Sequence[Proposal], predict: Predict, size: int, generations: int) -> list[Proposal]:
        """Proposals bred over some generations, the most promising ones first."""
        pool: list[Proposal] = []
        alive = list(parents)
        for _ in range(generations):
            pool += self.children(alive, size)
            alive = best_first([*parents, *pool], predict)[:max(4, size // 2)]
        return best_first(pool, predict)

    def _several(self, count: int, make: Callable[[], Proposal | None]) -> list[Proposal]:
        found: list[Proposal] = []
        for _ in range(count * _TRIES):
            if len(found) == count or (found and time.monotonic() >= self.until):
                break
            made = make()
            if made is None:
                self.refused += 1
            elif made.text not in self.seen:
                self.seen.add(made.text)
                if made.has_loops:
                    found.append(made)
                else:
                    self.refused += 1
        return found


def best_first(proposals: Sequence[Proposal], predict: Predict) -> list[Proposal]:
    """The proposals in the order of their predicted times."""
    times = predict([one.features for one in proposals])
    return [proposals[at] for at in sorted(range(len(proposals)), key=times.__getitem__)]
