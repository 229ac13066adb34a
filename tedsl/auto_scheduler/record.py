"""Records of trials in files: a line of JSON for each, which `tedsl.tune.history` reads too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tedsl.auto_scheduler.dag import State
from tedsl.auto_scheduler.search.search import Trial
from tedsl.auto_scheduler.task import SearchTask
from tedsl.errors import ArgumentTypeError
from tedsl.runtime.modules.files import file_path
from tedsl.target.current import as_target
from tedsl.tune import Record
from tedsl.tune.records import append_line, fastest_records, read_lines
from tedsl.tune.records.history import journal_of


class RecordToFile:
    """Callback of TuningOptions: adds each trial to a file, at once, so that a program that is killed loses at most one."""

    def __init__(self, filename: Any) -> None:
        self.path = file_path(filename, "RecordToFile")

    def __call__(self, trial: Trial) -> None:
        append_line(self.path, trial.record)


class MeasureInput(NamedTuple):
    """A schedule of a task, as a record has it. task: its key."""

    task: str
    target: str
    record: Record

    def state(self, task: SearchTask) -> State:
        """The schedule, for the task that it was measured for. Raises TedslError if it does not apply."""
        journal = journal_of(self.record)
        if journal is None:
            raise ArgumentTypeError("the record holds no schedule")
        return State(task.compute_dag.tensors, journal)


class MeasureResult(NamedTuple):
    """costs: seconds per call, one for each repetition. error_no: 0, or 1 after a failure. all_cost: seconds that it took."""

    costs: tuple[float, ...]
    error_no: int
    error_msg: str
    all_cost: float
    timestamp: float


def load_records(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The trials in a file, in order."""
    for one in read_lines(filename):
        yield _pair(one)


def load_best_record(filename: Any, workload_key: str | None = None, target: Any = None) \
        -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest trial in a file, of the workload and the target if they are given; (None, None) if there is none."""
    key = None if workload_key is None else SearchTask(workload_key=workload_key, target=target).problem.key
    ranked = fastest_records(one for one in read_lines(filename) if (key is None or one.task == key)
                             and (target is None or one.target == str(as_target(target))))
    return _pair(ranked[0]) if ranked else (None, None)


def _pair(one: Record) -> tuple[MeasureInput, MeasureResult]:
    failure = one.outcome.failure
    result = MeasureResult(one.outcome.costs, int(failure is not None), "" if failure is None else str(failure),
                           one.outcome.all_seconds, one.outcome.timestamp)
    return MeasureInput(one.task, one.target, one), result
