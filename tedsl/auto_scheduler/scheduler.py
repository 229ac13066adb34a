"""`TaskScheduler`: several tasks that share trials, of which each round gets the task that is expected to gain the most.

The gain of a round is the derivative of the objective by the trials of a task (Zheng et al., "Ansor: Generating
High-Performance Tensor Programs for Deep Learning", OSDI 2020, section 6.2): alpha times what its last rounds gained, and
1 - alpha times what may be hoped for: its time over its rounds so far or, if that is more, its time above beta times that of a
similar task, scaled to as much work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.auto_scheduler.policy import PreloadMeasuredStates, RandomModel, SketchPolicy, XGBModel, check_params
from tedsl.auto_scheduler.search.search import FINAL_SHARE, MANY, Search, Trial
from tedsl.auto_scheduler.task import SearchTask, TuningOptions
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, type_in_words
from tedsl.tune.measure.machine import ESTIMATED, is_estimated

Objective = Callable[[Sequence[float]], float]
_MODELS: dict[str, type[XGBModel]] = {"default": XGBModel, "sketch.xgb": XGBModel, "sketch.random": RandomModel}
_NUDGE = 1e-3  # of a time, by which the derivative of an objective is taken


class TaskScheduler:
    """Tunes several tasks together.

    tasks: SearchTasks. task_weights: how often a program calls each; objective_func: what is made small, a function of the
    seconds of all tasks; None: their sum by the weights. strategy: "gradient" or "round-robin". load_log_file: trials of an
    earlier search, which are not measured again. alpha, beta, backward_window_size: of the rule above: its mixture, how many
    times longer than similar tasks one is expected to take, and how many rounds back a gain is looked for. callbacks:
    TaskSchedulerCallbacks, called around each round; None: a line is printed after each. load_model_file and gamma are without
    effect.
    """

    def __init__(self, tasks: Sequence[SearchTask], task_weights: Sequence[float] | None = None,
                 objective_func: Objective | None = None, strategy: str = "gradient", load_model_file: Any = None,
                 load_log_file: Any = None, alpha: float = 0.2, beta: float = 2, gamma: float = 0.5,
                 backward_window_size: int = 3, callbacks: Any = None) -> None:
        self.tasks = _tasks_in(tasks)
        if strategy not in ("gradient", "round-robin"):
            raise ArgumentError(f'TaskScheduler: strategy is "gradient" or "round-robin", not {strategy!r}')
        if task_weights is not None and len(task_weights) != len(self.tasks):
            raise ArgumentError(f"TaskScheduler: there are {len(self.tasks)} tasks, and {len(task_weights)} weights")
        if objective_func is not None and not callable(objective_func):
            raise ArgumentTypeError(f"TaskScheduler: objective_func is a function of a list of seconds, not {objective_func!r}")
        weights = [1.0] * len(self.tasks) if task_weights is None else [float(one) for one in task_weights]
        self.objective: Objective = objective_func or (lambda costs: math.fsum(w * cost for w, cost in zip(weights, costs)))
        self.strategy, self.alpha, self.beta, self.window = strategy, alpha, beta, backward_window_size
        self.records = [] if load_log_file is None else PreloadMeasuredStates(load_log_file).records
        self.best_costs = [math.inf] * len(self.tasks)  # seconds
        self.task_cts = [0] * len(self.tasks)  # rounds
        self.callbacks = _callbacks_in(callbacks)
        self.tune_option: TuningOptions | None = None
        self.tic, self.ct = time.time(), 0  # when the search began, and trials of all tasks
        self.trials_of = [0] * len(self.tasks)
        self.costs_of_rounds: list[list[float]] = [[] for _ in self.tasks]
        self._kinds = ["".join(letter for letter in str(task.compute_dag) if not letter.isdigit()) for task in self.tasks]

    @property
    def cur_score(self) -> float:
        """The objective now."""
        return self.objective(self.best_costs)

    def tune(self, tune_option: TuningOptions, search_policy: str | Sequence[SketchPolicy] = "default",
             search_policy_params: Any = None, adaptive_training: bool = False,
             per_task_early_stopping: int | None = None) -> None:
        """Searches until the trials or seconds of the options are used up by all tasks together. Ctrl-C ends it early.

        search_policy: "default", "sketch.xgb", "sketch.random", or a SketchPolicy for each task. per_task_early_stopping: a
        task ends after so many trials without a faster one. After seconds, and for tasks of many trials, the default and the
        fastest of each task are measured once more. The other parameters are TVM's and without effect.
        """
        if not isinstance(tune_option, TuningOptions):
            raise ArgumentTypeError(f"tune takes TuningOptions, not {type_in_words(tune_option)}")
        check_params("tune: search_policy_params", search_policy_params)
        begun, total = time.monotonic(), tune_option.num_measure_trials or None
        self.tune_option, self.tic, self.ct = tune_option, time.time(), 0
        policies = self._policies(search_policy, tune_option.seed)
        searches = [self._search(at, policy, tune_option, per_task_early_stopping) for at, policy in enumerate(policies)]
        size = tune_option.num_measures_per_round
        if total is not None:
            size = max(1, min(size, total // len(self.tasks)))
        alive = list(range(len(self.tasks)))
        most, done = tune_option.seconds, 0
        try:
            while alive and (total is None or done < total):
                left = None if most is None else most * (1 - FINAL_SHARE) - (time.monotonic() - begun)
                if left is not None and left <= 0:
                    break
                at = self._next(alive)
                before = searches[at].count
                self._tell("pre_tune", at)
                self._round(at, searches[at], left, size if total is None else min(size, total - done))
                done += searches[at].count - before
                self.ct, self.trials_of[at] = done, searches[at].count
                self._tell("post_tune", at)
                if searches[at].count - before < size and (total is None or done < total):
                    alive.remove(at)  # it has no more schedules, or ends early
                self._print(tune_option, done, time.monotonic() - begun)
                if searches[at].interrupted:
                    return
            for at, search in enumerate(searches):
                if most is not None or search.count >= MANY:
                    self.best_costs[at] = search.finished(None if most is None else most / len(searches)).cost
        except KeyboardInterrupt:
            return

    def _tell(self, moment: str, at: int) -> None:
        for callback in self.callbacks or ():
            getattr(callback, moment)(self, at)

    def _policies(self, given: str | Sequence[SketchPolicy], seed: int) -> list[SketchPolicy]:
        if isinstance(given, str):
            if given not in _MODELS:
                raise ArgumentError(f"tune: there is no policy {given!r}", hint=f"there are {', '.join(_MODELS)}")
            return [SketchPolicy(task, _MODELS[given](), seed=seed) for task in self.tasks]
        if not isinstance(given, (list, tuple)) or len(given) != len(self.tasks) \
                or not all(isinstance(one, SketchPolicy) for one in given):
            raise ArgumentTypeError(f"tune: search_policy is a name, or a SketchPolicy for each of the {len(self.tasks)} tasks")
        return list(given)

    def _search(self, at: int, policy: SketchPolicy, options: TuningOptions, early: int | None) -> Search:
        def on_trial(trial: Trial) -> None:
            for callback in options.measure_callbacks:
                callback(trial)

        made = Search(self.tasks[at].problem, policy.seed, rounds=options.num_measures_per_round, early_stopping=early,
                      model=policy.model, build=options.builder.option, run=options.runner.option, on_trial=on_trial,
                      cluster=options.runner.cluster)
        made.preload([*policy.records, *self.records])
        return made

    def _round(self, at: int, search: Search, seconds: float | None, trials: int) -> None:
        """A round of one task. A task none of whose trials gave a time is worth nothing more."""
        try:
            self.best_costs[at] = search.run(seconds, trials, again=False).cost
        except TedslError:
            if search.count == 0:
                raise
        self.task_cts[at] += 1
        self.costs_of_rounds[at].append(self.best_costs[at])

    def _next(self, alive: Sequence[int]) -> int:
        """The task of the next round: first each of them once, then the one that is expected to gain the most."""
        fresh = [at for at in alive if not self.task_cts[at]]
        if fresh or self.strategy == "round-robin":
            return min(fresh or alive, key=lambda at: self.task_cts[at])
        return max(alive, key=self.gain)

    def gain(self, at: int) -> float:
        """What another round of a task is expected to take from the objective; 0 where no trial gave a time."""
        cost, rounds = self.best_costs[at], self.task_cts[at]
        if not all(map(math.isfinite, self.best_costs)):
            return 0.0 if not math.isfinite(cost) else cost
        past = self.costs_of_rounds[at]
        back = max(0, len(past) - 1 - self.window)
        behind = (past[back] - cost) / (len(past) - 1 - back) if len(past) > 1 and math.isfinite(past[back]) else 0.0
        flop = self.tasks[at].compute_dag.flop_ct
        similar = [self.tasks[k].compute_dag.flop_ct / self.best_costs[k] for k, kind in enumerate(self._kinds)
                   if kind == self._kinds[at] and k != at and self.best_costs[k] > 0]
        hoped = cost / rounds
        if similar and flop > 0 and max(similar) > 0:
            hoped = max(hoped, cost - self.beta * flop / max(similar))
        nudged = [one * (1 - _NUDGE) if k == at else one for k, one in enumerate(self.best_costs)]
        slope = (self.objective(self.best_costs) - self.objective(nudged)) / (cost * _NUDGE) if cost > 0 else 0.0
        return slope * (self.alpha * behind + (1 - self.alpha) * hoped)

    def _print(self, options: TuningOptions, trials: int, seconds: float) -> None:
        """A line after each round, unless callbacks tell: the seconds of all tasks."""
        if options.verbose and self.callbacks is None:
            word = f" ({ESTIMATED})" if any(is_estimated(task.target) for task in self.tasks) else ""
            times = ", ".join(f"{cost * 1e3:.4f}" if math.isfinite(cost) else "none" for cost in self.best_costs)
            print(f"{trials} trials, {seconds:.0f} s: best of each task {times} ms{word}; rounds {self.task_cts}")


def _callbacks_in(given: Any) -> list[Any] | None:
    """Callbacks of a TaskScheduler, each of which has both methods; None for None."""
    if given is None:
        return None
    wrong = next((one for one in given if not all(callable(getattr(one, name, None)) for name in ("pre_tune", "post_tune"))),
                 None) if isinstance(given, (list, tuple)) else given
    if wrong is not None:
        raise ArgumentTypeError(f"TaskScheduler: callbacks is a list of objects with pre_tune and post_tune, not {wrong!r}",
                                hint="derive them from auto_scheduler.TaskSchedulerCallback")
    return list(given)


def _tasks_in(tasks: object) -> list[SearchTask]:
    if isinstance(tasks, (list, tuple)) and not tasks:
        raise ArgumentError("TaskScheduler: the list of tasks is empty, and there is nothing to tune",
                            hint="auto_scheduler.extract_tasks(graph) gives the tasks of a network; of kernels without a "
                                 "reduction with include_simple_tasks=True")
    if not isinstance(tasks, (list, tuple)) or not all(isinstance(one, SearchTask) for one in tasks):
        inside = [one for one in tasks if not isinstance(one, SearchTask)] if isinstance(tasks, (list, tuple)) else []
        raise ArgumentTypeError("TaskScheduler takes a list of SearchTasks, not "
                                f"{type_in_words(inside[0]) + ' in it' if inside else type_in_words(tasks)}",
                                hint="TaskScheduler([SearchTask(func=..., args=..., target=...), ...])")
    return list(tasks)
