"""What a search tells programs: after each trial, and before and after each round of a TaskScheduler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tedsl.auto_scheduler.record import MeasureInput, MeasureResult, pair_of
from tedsl.auto_scheduler.search.search import Trial
from tedsl.errors import ArgumentError
from tedsl.runtime.modules.files import file_path

if TYPE_CHECKING:
    from tedsl.auto_scheduler.scheduler import TaskScheduler

_NONE = 1e9  # seconds: no trial of a task gave a time


class PythonBasedMeasureCallback:
    """Base of callbacks of TuningOptions that define `callback(policy, inputs, results)`, called with each trial.

    inputs, results: lists of one MeasureInput and one MeasureResult. policy is None: schedules are not drawn by one.
    """

    def callback(self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """What is done with a trial."""
        raise ArgumentError(f"{type(self).__name__} does not define callback(policy, inputs, results)",
                            hint="define it, or give TuningOptions a function of a Trial")

    def __call__(self, trial: Trial) -> None:
        inp, result = pair_of(trial.record)
        self.callback(None, [inp], [result])


class TaskSchedulerCallback:
    """Base of what a TaskScheduler calls around each round: `callbacks=[...]`. task_id: the place of the task."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called before a round."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called after a round."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a row for each task before a round: its time, operations per second and trials."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        of = task_scheduler
        if of.tune_option is None or of.tune_option.verbose < 1:
            return
        print("|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |")
        for at, (task, cost) in enumerate(zip(of.tasks, of.best_costs)):
            known = cost < _NONE
            latency = f"{cost * 1e3:.3f}" if known else "-"
            speed = f"{task.compute_dag.flop_ct / cost / 1e9:.2f}" if known else "-"
            print(f"| {at:4d} | {latency:>12} | {speed:>14} | {of.trials_of[at]:6d} |")
        print(f"Estimated total latency: {_total(of, '-')} ms\tTrials: {of.ct}\tUsed time : {time.time() - of.tic:.0f} s\t"
              f"Next ID: {task_id}")


class LogEstimatedLatency(TaskSchedulerCallback):
    """Writes a line to a new file after each round: seconds since the beginning, the objective, trials."""

    def __init__(self, log_file: Any) -> None:
        self.log_file = Path(file_path(log_file, "LogEstimatedLatency"))
        self.log_file.unlink(missing_ok=True)

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        of = task_scheduler
        with self.log_file.open("a") as file:
            file.write(f"ElapsedTime(s)\t{time.time() - of.tic:.0f}\tEstimatedLatency(ms)\t{_total(of, 'N/A')}\t"
                       f"Trials\t{of.ct}\n")


def _total(of: TaskScheduler, unknown: str) -> str:
    """The objective in milliseconds, `unknown` as long as a task has no time."""
    return f"{of.cur_score * 1e3:.3f}" if all(cost < _NONE for cost in of.best_costs) else unknown
