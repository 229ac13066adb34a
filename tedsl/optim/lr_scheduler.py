"""Schedules of the learning rate: each sets "lr" of every group of an optimiser from the number of steps taken.

    schedule = CosineAnnealingLR(optimizer, T_max=100)
    for epoch in range(100):
        ...
        schedule.step()

The first rate is that which the optimiser had when the schedule was made; `last_epoch` counts the steps of the schedule.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, entries, type_in_words
from tedsl.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "ExponentialLR", "LRSchedule", "LambdaLR", "LinearLR", "MultiStepLR", "StepLR"]


class LRSchedule:
    """Base of schedules: `factor(step)` times the first rate of each group."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"{type(self).__name__}: expected an optimiser, not {type_in_words(optimizer)}")
        self.optimizer = optimizer
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_epoch = 0
        self._set()

    def factor(self, step: int) -> float:
        """What the first rates are multiplied by after `step` steps."""
        raise NotImplementedError

    def rate(self, first: float, step: int) -> float:
        """The rate after `step` steps of a group whose first rate is `first`."""
        return first * self.factor(step)

    def step(self) -> None:
        """Goes on by one step, usually an epoch."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self) -> list[float]:
        """The rate of each group now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The first rates and the number of steps."""
        return {"base_lrs": list(self.base_lrs), "last_epoch": self.last_epoch}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes to the step that `state_dict` gave."""
        if not isinstance(saved, Mapping) or not {"base_lrs", "last_epoch"} <= saved.keys() or \
                len(saved["base_lrs"]) != len(self.base_lrs):
            raise ArgumentError(f"{type(self).__name__}: {type_in_words(saved)} is not what state_dict() of a schedule of "
                                f"{len(self.base_lrs)} groups gave")
        self.base_lrs, self.last_epoch = list(saved["base_lrs"]), int(saved["last_epoch"])
        self._set()

    def _set(self) -> None:
        for group, first in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.rate(first, self.last_epoch)


def _check_steps(where: str, name: str, steps: object) -> None:
    if not isinstance(steps, (int, float)) or steps < 1:
        raise ArgumentError(f"{where}: {name} is {steps!r}, not a number from 1")


class LambdaLR(LRSchedule):
    """first rate * lr_lambda(step)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        if not callable(lr_lambda):
            raise ArgumentTypeError(f"LambdaLR: lr_lambda is {type_in_words(lr_lambda)}, not a function of the step")
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.lr_lambda(step)


class StepLR(LRSchedule):
    """first rate * gamma ** (step // step_size)."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        _check_steps("StepLR", "step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma ** (step // self.step_size)


class MultiStepLR(LRSchedule):
    """first rate * gamma ** (number of `milestones` reached)."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        if not isinstance(milestones, Sequence) or not all(isinstance(one, (int, float)) for one in milestones):
            raise ArgumentTypeError(f"MultiStepLR: milestones are a list of steps, not {type_in_words(milestones)}")
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(LRSchedule):
    """first rate * gamma ** step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma ** step


class LinearLR(LRSchedule):
    """A factor that goes from `start_factor` to `end_factor` in `total_iters` steps, and stays there."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 total_iters: int = 5) -> None:
        _check_steps("LinearLR", "total_iters", total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * min(step, self.total_iters) / self.total_iters


class CosineAnnealingLR(LRSchedule):
    """From the first rate down to `eta_min` in `T_max` steps along half a cosine, and up again (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        _check_steps("CosineAnnealingLR", "T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, first: float, step: int) -> float:
        return self.eta_min + (first - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


entries(globals(), instead={"LRScheduler": "LRSchedule"})
