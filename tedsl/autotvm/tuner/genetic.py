"""A genetic search: points are lists of choices, of which the better ones have children."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tedsl.amounts import check_count
from tedsl.autotvm.measure.batch import flops_of
from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.tuner.tuner import Tuner
from tedsl.errors import ArgumentError

Genes = tuple[int, ...]
_TRIES = 100  # for a child that was not there yet, before a random point is taken


def genes_of(number: int, dims: Sequence[int]) -> Genes:
    """The choices of a point, from its number."""
    found: list[int] = []
    for count in dims:
        number, at = divmod(number, count)
        found.append(at)
    return tuple(found)


def number_of(genes: Sequence[int], dims: Sequence[int]) -> int:
    """The number of a point, from its choices."""
    number = 0
    for at, count in zip(reversed(genes), reversed(dims)):
        number = number * count + at
    return number


class GATuner(Tuner):
    """pop_size: points of a generation. elite_num: of the best ever, which may be parents. mutation_prob: of each choice."""

    def __init__(self, task: Task, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1, seed: int = 0) -> None:
        super().__init__(task)
        for name, value, least in (("pop_size", pop_size, 1), ("elite_num", elite_num, 0)):
            check_count("GATuner", name, value, least)
        if isinstance(mutation_prob, bool) or not isinstance(mutation_prob, (int, float)) or not 0 <= mutation_prob <= 1:
            raise ArgumentError(f"GATuner: mutation_prob is a number from 0 to 1, not {mutation_prob!r}")
        self.pop_size = min(pop_size, len(task.config_space))
        self.elite_num, self.mutation_prob = min(elite_num, self.pop_size), mutation_prob
        self.draw = random.Random(seed)
        self.dims = task.config_space.dims
        self.visited: set[int] = set()
        self.scores: dict[int, float] = {}
        self.elites: list[tuple[float, int]] = []
        self.waiting = self.draw.sample(range(len(task.config_space)), self.pop_size)
        self.generation = list(self.waiting)

    def has_next(self) -> bool:
        return len(self.visited) < len(self.task.config_space)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        found: list[ConfigEntity] = []
        while len(found) < batch_size and self.has_next():
            if not self.waiting:
                if len(self.scores) < len(self.generation):
                    break  # the rest of this generation is still being measured
                self._breed()
            number = self.waiting.pop(0)
            if number in self.visited:  # a record of it was loaded
                self.scores.setdefault(number, 0.0)
                continue
            self.visited.add(number)
            found.append(self.task.config_space.get(number))
        return found

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            if inp.config.index is not None:
                self.scores[inp.config.index] = flops_of(inp, result)
                self.visited.add(inp.config.index)

    def _breed(self) -> None:
        """Makes the next generation of the last one and of the best ever."""
        ranked = sorted(((score, number) for number, score in self.scores.items()), reverse=True)
        self.elites = sorted({*self.elites, *ranked[:self.elite_num]}, reverse=True)[:self.elite_num]
        parents = [*ranked, *self.elites]
        weights = [score + 1e-8 for score, _ in parents]
        left = len(self.task.config_space) - len(self.visited)
        children: dict[int, None] = {}
        while len(children) < min(self.pop_size, left):
            child = self._child([number for _, number in parents], weights, children)
            children[child] = None
        self.generation, self.waiting, self.scores = list(children), list(children), {}

    def _child(self, parents: Sequence[int], weights: Sequence[float], taken: dict[int, None]) -> int:
        for _ in range(_TRIES):
            one, other = (genes_of(number, self.dims) for number in self.draw.choices(parents, weights, k=2))
            at = self.draw.randrange(len(self.dims)) if self.dims else 0
            genes = [self.draw.randrange(count) if self.draw.random() < self.mutation_prob else gene
                     for gene, count in zip((*one[:at], *other[at:]), self.dims)]
            number = number_of(genes, self.dims)
            if number not in self.visited and number not in taken:
                return number
        return next(number for number in iter(lambda: self.draw.randrange(len(self.task.config_space)), None)
                    if number not in self.visited and number not in taken)
