"""Measures configurations by `tedsl.tune.Measurer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.autotvm.measure.inputs import MeasureErrorNo, MeasureInput, MeasureResult
from tedsl.autotvm.measure.options import LocalBuilder, LocalRunner, Options
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Scheduled, Task
from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.tune import Checker, Failure, Measurer, Outcome

MeasureBatch = Callable[[Sequence[MeasureInput]], list[MeasureResult]]
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


def create_measure_batch(task: Task, option: Options) -> MeasureBatch:
    """The function that measures inputs of a task; `n_parallel` of it is how many are measured together."""
    if not isinstance(option, dict) or not isinstance(option.get("builder"), LocalBuilder) \
            or not isinstance(option.get("runner"), LocalRunner):
        raise ArgumentTypeError(f"the measure_option is {type_in_words(option)}",
                                hint='autotvm.measure_option(builder="local", runner="local")')
    runner: LocalRunner = option["runner"]
    check = None
    if runner.check_correctness:
        _, args = task.instantiate(task.config_space.get(0))
        check = Checker(args, task.target)
    measurer = Measurer(task.target, option["builder"].option, runner.option, check)

    def measure_batch(inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        points = [Point(one.task, one.config) for one in inputs]
        return [result_of(outcome) for _, outcome in measurer.measure(points)]

    return measure_batch


def result_of(outcome: Outcome) -> MeasureResult:
    """An outcome as autotvm says it."""
    failure = outcome.failure
    if failure is None:
        return MeasureResult(outcome.costs, MeasureErrorNo.NO_ERROR, outcome.all_seconds, outcome.timestamp)
    number = _NUMBERS[failure.kind]
    if failure.kind == "timeout" and outcome.all_seconds <= outcome.build_seconds:
        number = MeasureErrorNo.BUILD_TIMEOUT
    return MeasureResult((failure.message,), number, outcome.all_seconds, outcome.timestamp)


def outcome_of(result: MeasureResult) -> Outcome:
    """The outcome that a result of autotvm says."""
    if result.error_no == 0:
        return Outcome(tuple([float(cost) for cost in result.costs]), None, 0.0, result.all_cost, result.timestamp)
    kind = _KINDS.get(int(result.error_no), "crash")
    return Outcome((), Failure(kind, "of an earlier search"), 0.0, result.all_cost, result.timestamp)


def flops_of(inp: MeasureInput, result: MeasureResult) -> float:
    """Operations per second, from the median of the times; 0 after a failure."""
    seconds = outcome_of(result).cost
    return float(inp.task.flop / seconds) if seconds else 0.0
