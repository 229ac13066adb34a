"""Records of trials in files: a line of JSON for each, which `tedsl.tune.history` reads too. Lines of TVM are read as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

from tedsl.amounts import check_count
from tedsl.auto_scheduler.dag import ComputeDAG, RecordedState, State
from tedsl.auto_scheduler.search.search import Trial
from tedsl.auto_scheduler.task import SearchTask, kind_of, state_in
from tedsl.auto_scheduler.tvm_log.line import line_of, record_of_line
from tedsl.autotvm.measure.batch import error_number, failure_kind
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.runtime.modules.files import file_path
from tedsl.target.current import as_target
from tedsl.tune import Outcome, Record, history
from tedsl.tune.measure import Failure
from tedsl.tune.records import append_line, fastest_records, read_lines
from tedsl.tune.records.lines import append_text, require_lines


class RecordToFile:
    """Callback of TuningOptions: adds each trial to a file, at once, so that a program that is killed loses at most one. Makes
    the folder of the file, as in TVM. Raises ArgumentError for a file of something else than records.
    """

    def __init__(self, filename: Any) -> None:
        folder = file_path(filename, "RecordToFile").absolute().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"RecordToFile: the folder {folder} cannot be made: {error.strerror or error}") from None
        self.path = require_lines(filename, "RecordToFile")

    def __call__(self, trial: Trial) -> None:
        append_line(self.path, trial.record)


class RecordedTask(str):
    """The key of a task, as a record has it. workload_key: the same, by TVM's name."""

    @property
    def workload_key(self) -> str:
        return str(self)


class MeasureInput(NamedTuple):
    """A schedule of a task, as a record has it."""

    task: RecordedTask
    target: str
    record: Record

    @property
    def state(self) -> RecordedState:
        """The schedule, which the methods of a ComputeDAG take; `state(task)` is the State of a task, if it applies to it."""
        return RecordedState(self._state_in)

    def _state_in(self, dag: ComputeDAG) -> State:
        state = state_in(dag, self.record)
        if state is None:
            raise ArgumentTypeError("the record holds no schedule")
        return state


class MeasureResult(NamedTuple):
    """costs: seconds per call, one for each repetition. error_no: of MeasureErrorNo, 0 without a failure. all_cost: seconds
    that it took."""

    costs: tuple[float, ...]
    error_no: int
    error_msg: str
    all_cost: float
    timestamp: float


def load_records(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The trials in a file, in order; those of TVM have the key of the workload as their task."""
    for one in read_lines(filename, record_of_line):
        yield pair_of(one)


def save_records(filename: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Adds trials to a file, each with the result at the same place. Raises ArgumentTypeError or ArgumentError for what are no
    such pairs.
    """
    for what, given, kind in (("inputs", inputs, MeasureInput), ("results", results, MeasureResult)):
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, kind) for one in given):
            raise ArgumentTypeError(f"save_records: {what} are a list of {kind.__name__}, not {type_in_words(given)}",
                                    hint="auto_scheduler.load_records(path) gives pairs of both")
    if len(inputs) != len(results):
        raise ArgumentError(f"save_records: there are {len(inputs)} inputs, and {len(results)} results")
    for inp, result in zip(inputs, results):
        line, before = line_of(inp.record), inp.record.outcome
        if line is not None:
            append_text(filename, line.with_result(result.costs, result.error_no, result.all_cost, result.timestamp).encode())
            continue
        failure = (before.failure or Failure(failure_kind(result.error_no), result.error_msg)) if result.error_no else None
        outcome = Outcome(tuple(result.costs), failure, before.build_seconds, result.all_cost, result.timestamp, before.machine)
        append_line(filename, replace(inp.record, outcome=outcome))


class RecordReader:
    """The trials in a file, in order; it may be iterated over again."""

    def __init__(self, filename: Any) -> None:
        self.path = file_path(filename, "RecordReader")

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        return load_records(self.path)

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) \
            -> tuple[list[MeasureInput], list[MeasureResult]]:
        """The inputs and the results of at most `max_lines` trials, None for all, without the first `skip_lines`."""
        for name, value in (("max_lines", max_lines), ("skip_lines", skip_lines)):
            if value is not None:
                check_count("read_lines", name, value, 0)
        pairs = list(self)[skip_lines:]
        pairs = pairs if max_lines is None else pairs[:max_lines]
        return [inp for inp, _ in pairs], [result for _, result in pairs]


class ApplyHistoryBest:
    """Context in which topi's schedules are the best that files of records have for the same formulas, as in
    `tedsl.tune.history`.

    records: the path of a file. n_lines and include_compatible are TVM's and without effect.
    """

    def __init__(self, records: Any, n_lines: int | None = None, include_compatible: bool = False) -> None:
        self.path = file_path(records, "ApplyHistoryBest")
        self._inside: list[Any] = []

    def __enter__(self) -> ApplyHistoryBest:
        context = history(self.path)
        context.__enter__()
        self._inside.append(context)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._inside.pop().__exit__(kind, error, trace)


def load_best_record(filename: Any, workload_key: str | None = None, target: Any = None) \
        -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest trial in a file, of the workload and the target if they are given; (None, None) if there is none.
    workload_key: of a workload, or the task of a MeasureInput.
    """
    records = list(read_lines(filename, record_of_line))
    key = workload_key
    if key is not None and not any(key == one.task for one in records):
        key = SearchTask(workload_key=key, target=target).problem.key
    wanted = None if target is None else as_target(target)

    def fits(one: Record) -> bool:
        if line_of(one) is not None:
            return workload_key in (None, one.task) and (wanted is None or kind_of(one.target) == wanted.kind.name)
        return key in (None, one.task) and (wanted is None or one.target == str(wanted))

    ranked = fastest_records(one for one in records if fits(one))
    return pair_of(ranked[0]) if ranked else (None, None)


def pair_of(one: Record) -> tuple[MeasureInput, MeasureResult]:
    """A record as the input and the result of a trial."""
    failure, line = one.outcome.failure, line_of(one)
    if line is not None:
        return MeasureInput(RecordedTask(one.task), one.target, one), MeasureResult(
            line.costs, line.error_no, "" if failure is None else str(failure), line.all_cost, line.timestamp)
    result = MeasureResult(one.outcome.costs, error_number(one.outcome), "" if failure is None else str(failure),
                           one.outcome.all_seconds, one.outcome.timestamp)
    return MeasureInput(RecordedTask(one.task), one.target, one), result
