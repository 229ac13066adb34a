"""A search that measures the points of which a model expects most; the model learns from what was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tedsl.amounts import check_count
from tedsl.autotvm.measure.batch import flops_of
from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.tuner.cost_model import CostModel, as_array, default_model
from tedsl.autotvm.tuner.genetic import genes_of, number_of
from tedsl.autotvm.tuner.tuner import Tuner
from tedsl.errors import ArgumentError, entries

_WALKERS = 64  # of simulated annealing
_STEPS = 60
_AT_RANDOM = 0.1  # of the points of a plan, so that the model sees what it does not expect
_EVERYTHING = 4096  # points, up to which all of a space are predicted


class ModelBasedTuner(Tuner):
    """plan_size: points between two fits of the model. model: None is the default one. seed: the same one, the same order."""

    def __init__(self, task: Task, plan_size: int = 64, model: CostModel | None = None, seed: int = 0) -> None:
        super().__init__(task)
        check_count(type(self).__name__, "plan_size", plan_size, 1)
        self.target, self.space, self.plan_size = task.target, task.config_space, plan_size
        self.model = default_model() if model is None else model
        self.draw = random.Random(seed)
        self.dims = self.space.dims
        self.visited: set[int] = set()
        self.features: list[list[float]] = []
        self.rates: list[float] = []
        self.plan: list[int] = []
        self._fitted, self._scale = 0, 0.0

    def has_next(self) -> bool:
        return len(self.visited) < len(self.space)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        found: list[ConfigEntity] = []
        while len(found) < batch_size and self.has_next():
            if not self.plan:
                self._make_plan()
            number = self.plan.pop(0)
            if number not in self.visited:
                self.visited.add(number)
                found.append(self.space.get(number))
        return found

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            self.features.append(inp.config.get_flatten_feature())
            self.rates.append(flops_of(inp, result))
            if inp.config.index is not None:
                self.visited.add(inp.config.index)
        if len(self.rates) - self._fitted >= self.plan_size and max(self.rates) > 0:
            self.model.fit(as_array(self.features), as_array([[rate / max(self.rates)] for rate in self.rates])[:, 0])
            self._fitted, self._scale = len(self.rates), max(self.rates)
            self.plan = []

    def predicted_rate(self, config: ConfigEntity) -> float | None:
        """Operations per second that the model expects of a point; None before it has learnt from any."""
        if not self._fitted:
            return None
        return float(self.model.predict(as_array([config.get_flatten_feature()]))[0]) * self._scale

    def _make_plan(self) -> None:
        """The points of which the model expects most, and some at random; all at random before the first fit."""
        count = len(self.task.config_space)
        left = min(self.plan_size, count - len(self.visited))
        best = self._expected() if self._fitted else []
        chosen = dict.fromkeys(best[:left - int(left * _AT_RANDOM)])
        while len(chosen) < left:
            number = self.draw.randrange(count)
            if number not in self.visited:
                chosen[number] = None
        self.plan = list(chosen)

    def _expected(self) -> list[int]:
        """Points that were not measured, those of the highest predicted rates first."""
        count = len(self.task.config_space)
        numbers = [n for n in range(count) if n not in self.visited] if count <= _EVERYTHING else self._annealed()
        rates = self._predicted(numbers)
        return [numbers[at] for at in sorted(range(len(numbers)), key=lambda at: -rates[at])]

    def _annealed(self) -> list[int]:
        """Points on walks that go to better neighbours, and at first to worse ones too (simulated annealing)."""
        here = [self.draw.randrange(len(self.task.config_space)) for _ in range(_WALKERS)]
        rates = list(self._predicted(here))
        seen = dict(zip(here, rates))
        for step in range(_STEPS):
            heat = (1 - step / _STEPS) * (max(rates) - min(rates) + 1e-9)
            there = [self._neighbour(number) for number in here]
            for at, (number, rate) in enumerate(zip(there, self._predicted(there))):
                seen[number] = rate
                if rate > rates[at] or self.draw.random() < math.exp((rate - rates[at]) / (heat + 1e-9)):
                    here[at], rates[at] = number, rate
        return [number for number in seen if number not in self.visited]

    def _neighbour(self, number: int) -> int:
        """The point with one choice changed."""
        genes = list(genes_of(number, self.dims))
        knobs = [at for at, count in enumerate(self.dims) if count > 1]
        if knobs:
            at = self.draw.choice(knobs)
            genes[at] = (genes[at] + self.draw.randrange(1, self.dims[at])) % self.dims[at]
        return number_of(genes, self.dims)

    def _predicted(self, numbers: Sequence[int]) -> list[float]:
        features = [self.task.config_space.get(number).get_flatten_feature() for number in numbers]
        return [float(rate) for rate in self.model.predict(as_array(features))] if features else []


class XGBTuner(ModelBasedTuner):
    """A tuner with a model of cost, by the name that programs of TVM use. The model is of lightgbm (the extra `tune`) or a
    ridge regression, over the knobs.

    feature_type, loss_type, num_threads, optimizer, diversity_filter_ratio, log_interval: accepted.
    """

    def __init__(self, task: Task, plan_size: int = 64, feature_type: str = "itervar", loss_type: str = "rank",
                 num_threads: int | None = None, optimizer: Any = "sa", diversity_filter_ratio: float | None = None,
                 log_interval: int = 50, seed: int = 0) -> None:
        for name, value, known in (("feature_type", feature_type, ("itervar", "knob", "curve")),
                                   ("loss_type", loss_type, ("reg", "rank", "rank-binary"))):
            if value not in known:
                raise ArgumentError(f"XGBTuner: {name} is one of {', '.join(map(repr, known))}, not {value!r}")
        super().__init__(task, plan_size, seed=seed)


entries(globals())
