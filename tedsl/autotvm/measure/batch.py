"""Measures configurations by `tedsl.tune.Measurer`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tedsl.autotvm.measure.inputs import MeasureErrorNo, MeasureInput, MeasureResult
from tedsl.autotvm.measure.options import LocalBuilder, LocalRunner, Options
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Scheduled, Task
from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.tune import Checker, Failure, Measurer, Outcome
from tedsl.tune.measure import RemoteMeasurer

_BATCH = 8  # inputs that are measured together: builds run ahead of runs
_NUMBERS = {"refused": MeasureErrorNo.INSTANTIATION_ERROR, "compile": MeasureErrorNo.COMPILE_HOST,
            "crash": MeasureErrorNo.UNKNOWN_ERROR, "timeout": MeasureErrorNo.RUN_TIMEOUT, "wrong": MeasureErrorNo.WRONG_ANSWER,
            "run": MeasureErrorNo.RUNTIME_DEVICE}
_KINDS = {number: kind for kind, number in _NUMBERS.items()} | {MeasureErrorNo.BUILD_TIMEOUT: "timeout",
                                                               MeasureErrorNo.COMPILE_DEVICE: "compile"}


class Point:
    """A configuration as a candidate of `tedsl.tune`."""

    def __init__(self, task: Task, config: ConfigEntity) -> None:
        self.task, self.config = task, config

    def schedule(self) -> Scheduled:
        return self.task.instantiate(self.config)

    def to_json(self) -> object:
        return self.config.to_json_dict()


class MeasureBatch:
    """Measures inputs of a task: `results = measure_batch(inputs)`. n_parallel: how many are measured together."""

    def __init__(self, measurer: Measurer | RemoteMeasurer, n_parallel: int) -> None:
        self._measurer, self.n_parallel = measurer, n_parallel

    def __call__(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return list(self.each(inputs))

    def each(self, inputs: Sequence[MeasureInput]) -> Iterator[MeasureResult]:
        """The result of each input as soon as it is measured."""
        if not isinstance(inputs, (list, tuple)) or not all(isinstance(one, MeasureInput) for one in inputs):
            raise ArgumentTypeError(f"what is measured is a list of MeasureInput, not {inputs!r}",
                                    hint="[autotvm.measure.MeasureInput(task.target, task, config) for config in configs]")
        for _, outcome in self._measurer.measure([Point(one.task, one.config) for one in inputs]):
            yield result_of(outcome)

    def close(self) -> None:
        """Ends the processes that build and run, and the runners of a cluster."""
        self._measurer.close()


def create_measure_batch(task: Task, option: Options) -> MeasureBatch:
    """What measures inputs of a task, as `measure_option` says."""
    if not isinstance(option, dict) or not isinstance(option.get("builder"), LocalBuilder) \
            or not isinstance(option.get("runner"), LocalRunner):
        raise ArgumentTypeError(f"the measure_option is {type_in_words(option)}",
                                hint='autotvm.measure_option(builder="local", runner="local")')
    runner: LocalRunner = option["runner"]
    check = None
    if runner.check_correctness:
        _, args = task.plain()
        check = Checker(args, task.target)
    builder: LocalBuilder = option["builder"]
    if runner.cluster:
        remote = RemoteMeasurer(task.target, builder.option, runner.option, check, cluster=runner.cluster, one_model=True)
        return MeasureBatch(remote, remote.batch)
    return MeasureBatch(Measurer(task.target, builder.option, runner.option, check), builder.option.n_parallel or _BATCH)


def result_of(outcome: Outcome) -> MeasureResult:
    """An outcome as autotvm says it."""
    costs = outcome.costs if outcome.failure is None else (outcome.failure.message,)
    return MeasureResult(costs, error_number(outcome), outcome.all_seconds, outcome.timestamp)


def error_number(outcome: Outcome) -> int:
    """The number of MeasureErrorNo that says how an outcome failed; 0 if it did not."""
    if outcome.failure is None:
        return MeasureErrorNo.NO_ERROR
    if outcome.failure.kind == "timeout" and outcome.all_seconds <= outcome.build_seconds:
        return MeasureErrorNo.BUILD_TIMEOUT
    return _NUMBERS[outcome.failure.kind]


def outcome_of(result: MeasureResult) -> Outcome:
    """The outcome that a result of autotvm says."""
    if result.error_no == 0:
        return Outcome(tuple([float(cost) for cost in result.costs]), None, 0.0, result.all_cost, result.timestamp)
    return Outcome((), Failure(failure_kind(result.error_no), "of an earlier search"), 0.0, result.all_cost, result.timestamp)


def failure_kind(error_no: int) -> str:
    """The kind of a failure with a number of MeasureErrorNo."""
    return _KINDS.get(int(error_no), "crash")


def flops_of(inp: MeasureInput, result: MeasureResult) -> float:
    """Operations per second, from the median of the times; 0 after a failure."""
    seconds = outcome_of(result).cost
    return float(inp.task.flop / seconds) if seconds else 0.0
