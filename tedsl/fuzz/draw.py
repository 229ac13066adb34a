"""Sources of random choices: a seeded generator, or hypothesis, which shrinks them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Draw:
    """Choices from a seed. Other sources override only `which(n)`: a number from 0 to n-1, 0 being the simplest."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def which(self, n: int) -> int:
        return self.random.randrange(n)

    def chance(self, percent: int) -> bool:
        """True with a probability of `percent`; False is the simpler choice."""
        return self.which(100) >= 100 - percent

    def between(self, low: int, high: int) -> int:
        return low + self.which(high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        return items[self.which(len(items))]

    def weighted(self, table: Mapping[T, int]) -> T:
        """A key of `table`, a dict from choices to weights, with probability proportional to its weight."""
        at = self.which(sum(table.values()))
        for key, weight in table.items():
            at -= weight
            if at < 0:
                return key
        raise AssertionError("the weights are positive")

    def sample(self, items: Iterable[T], count: int) -> list[T]:
        left = list(items)
        return [left.pop(self.which(len(left))) for _ in range(count)]


class HypothesisDraw(Draw):
    """Choices by hypothesis: `HypothesisDraw(data)` inside a test with `data=st.data()`."""

    def __init__(self, data: Any) -> None:
        from hypothesis import strategies

        self.data, self.integers = data, strategies.integers

    def which(self, n: int) -> int:
        return int(self.data.draw(self.integers(0, n - 1))) if n > 1 else 0
