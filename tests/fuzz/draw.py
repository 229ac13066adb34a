"""Where choices come from: a seeded generator, or hypothesis, which shrinks them."""

import random


class Draw:
    """Choices by a seed. `which(n)` is all a source has to give: a number from 0 to n-1, 0 being the simplest."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def which(self, n):
        return self.random.randrange(n)

    def chance(self, percent):
        """True in so many of 100 cases; False is simpler."""
        return self.which(100) >= 100 - percent

    def between(self, low, high):
        return low + self.which(high - low + 1)

    def choice(self, items):
        return items[self.which(len(items))]

    def weighted(self, table):
        """One of the keys of a dict of weights."""
        at = self.which(sum(table.values()))
        for key, weight in table.items():
            at -= weight
            if at < 0:
                return key
        raise AssertionError("the weights are positive")

    def sample(self, items, count):
        items = list(items)
        return [items.pop(self.which(len(items))) for _ in range(count)]


class HypothesisDraw(Draw):
    """Choices by hypothesis: `HypothesisDraw(data)` inside a test with `data=st.data()`."""

    def __init__(self, data):
        from hypothesis import strategies

        self.data, self.integers = data, strategies.integers

    def which(self, n):
        return self.data.draw(self.integers(0, n - 1)) if n > 1 else 0
