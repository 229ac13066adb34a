"""The search over the configurations of a template of autotvm, with records in files that autotvm reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import topi.schedules
from tedsl.autotvm.callback import log_to_file
from tedsl.autotvm.measure.batch import Point, outcome_of, result_of
from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.record import config_of, load_from_file
from tedsl.autotvm.task.entities import AnnotateEntity, SplitEntity
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.tuner.model_based import ModelBasedTuner
from tedsl.cache.place import warn_once
from tedsl.ir.expr import Var
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.tune.measure.outcome import Candidate, Scheduled
from tedsl.tune.records import last_of_each
from tedsl.tuning.trial import Trial

_PLAN = 24  # points between two fits of the model


class Default:
    """The schedule that topi's rules make of the formulas of a task."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def schedule(self) -> Scheduled:
        _, args = self.task.plain()
        return topi.schedules.schedule(_results(args), self.task.target), args

    def to_json(self) -> object:
        return {"default": True}


def _shapes(args: Sequence[Any]) -> list[str]:
    return [f"{arg.shape} {arg.dtype}" if isinstance(arg, Tensor) else "" for arg in args]


class TemplateSearch:
    """Points of a task, at random until there is a model of their times, then those of which it expects most."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.name, self.target, self.flop = task, task.name, task.target, float(task.flop)
        self.tuner = ModelBasedTuner(task, _PLAN, seed=seed)

    def propose(self, count: int) -> list[Candidate]:
        return [Point(self.task, config) for config in self.tuner.next_batch(count)] if self.tuner.has_next() else []

    def predicted(self, candidate: Candidate) -> float | None:
        rate = self.tuner.predicted_rate(candidate.config) if isinstance(candidate, Point) else None
        return self.flop / rate if rate is not None and rate > 0 else None

    def choices(self, candidate: Candidate) -> Mapping[str, str]:
        return choices_of(candidate.config) if isinstance(candidate, Point) else {}

    def learn(self, trials: Sequence[Trial]) -> None:
        pairs = [self._pair(trial) for trial in trials if isinstance(trial.candidate, Point)]
        if pairs:
            self.tuner.update([inp for inp, _ in pairs], [result for _, result in pairs])

    def default(self) -> Candidate:
        return Default(self.task)

    def args(self) -> Sequence[Tensor | Var] | None:
        _, args = self.task.plain()
        space = self.task.config_space
        for index in {0, len(space) - 1}:
            with suppress(Exception):  # what the template refuses, or raises, has no shapes
                if _shapes(self.task.instantiate(space.get(index))[1]) != _shapes(args):
                    return None
        return args

    def load(self, path: Path) -> list[Trial]:
        """The trials in a file of autotvm. Those of points that the template does not have, as it has changed, are skipped with
        a warning.
        """
        found = []
        for inp, result in last_of_each(load_from_file(path), config_of, lambda pair: outcome_of(pair[1])):
            config = self._point(inp.config) if inp.task == self.task else None
            if config is not None:
                found.append(Trial(Point(self.task, config), outcome_of(result), choices_of(config), -1.0))
        self.learn(found)
        return found

    def append(self, path: Path, trial: Trial) -> None:
        if isinstance(trial.candidate, Point):
            inp, result = self._pair(trial)
            log_to_file(path)(None, [inp], [result])

    def _point(self, config: ConfigEntity) -> ConfigEntity | None:
        """The point of the space that a record holds; None, with a warning, if the template has other knobs by now."""
        space = self.task.config_space
        if config.index is not None and space.is_index_valid(config.index) and space.get(config.index) == config:
            return space.get(config.index)
        warn_once(f"a record of {self.name} is skipped: it holds {config}, which the space of the template does not have")
        return None

    def _pair(self, trial: Trial) -> tuple[MeasureInput, MeasureResult]:
        assert isinstance(trial.candidate, Point)
        return MeasureInput(self.target, self.task, trial.candidate.config), result_of(trial.outcome)


def choices_of(config: ConfigEntity) -> dict[str, str]:
    """The knobs of a point with their values: of a split the extent of each loop but the outermost."""
    said: dict[str, str] = {}
    for name in config:
        entity = config[name]
        if isinstance(entity, SplitEntity):
            said |= {f"{name}[{at}]": str(size) for at, size in enumerate(entity.size) if at}
        elif isinstance(entity, AnnotateEntity):
            said |= {f"{name}[{at}]": str(annotation) for at, annotation in enumerate(entity.anns)}
        else:
            said[name] = repr(entity)
    return said


def _results(args: Sequence[Any]) -> list[Tensor]:
    return [arg for arg in args if isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp)]
