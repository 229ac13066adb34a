"""`SearchTask`: a program to be scheduled; `TuningOptions`: how long to search; `search`: the search as a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tedsl.amounts import check_count
from tedsl.auto_scheduler.cost.model import Corrected
from tedsl.auto_scheduler.dag import ComputeDAG, State
from tedsl.auto_scheduler.options import HardwareParams, LocalBuilder, LocalRunner, check_layout
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.search import OnTrial, Search, Trial, check_budget
from tedsl.auto_scheduler.tvm_log.line import line_of, record_of_line
from tedsl.auto_scheduler.tvm_log.steps import scheduled
from tedsl.auto_scheduler.workload import WORKLOADS, made_by, make_workload_key, tensors_of
from tedsl.cache.place import warn_once
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, type_in_words
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.tune import Record
from tedsl.tune.measure.machine import ESTIMATED, is_estimated
from tedsl.tune.records import fastest_records_of, read_lines
from tedsl.tune.records.history import journal_of

T = TypeVar("T")


class TuningOptions:
    """How long `SearchTask.tune` searches, and how it measures.

    num_measure_trials: schedules that are measured. early_stopping: ends after so many trials without a faster one.
    num_measures_per_round: trials between two looks at the model of costs. verbose: 0 prints nothing. builder, runner: "local",
    or a LocalBuilder and a LocalRunner. measure_callbacks: called with each Trial; RecordToFile(path) is one. seconds: a time
    beside or instead of the number of trials. seed: the same one, and the same times, give the same trials.
    """

    def __init__(self, num_measure_trials: int = 0, early_stopping: int | None = None, num_measures_per_round: int = 64,
                 verbose: int = 1, builder: LocalBuilder | str = "local", runner: LocalRunner | str = "local",
                 measure_callbacks: Sequence[Callable[[Trial], object]] | None = None, *, seconds: float | None = None,
                 seed: int = 0) -> None:
        for name, value, least in (("num_measure_trials", num_measure_trials, 0), ("early_stopping", early_stopping, 1),
                                   ("num_measures_per_round", num_measures_per_round, 1), ("verbose", verbose, 0)):
            if value is not None:
                check_count("TuningOptions", name, int(value) if name == "verbose" and value is True else value, least)
        if num_measure_trials == 0 and seconds is None:
            raise ArgumentError("TuningOptions: nothing would be measured", hint="num_measure_trials=200, or seconds=60")
        check_budget("TuningOptions", seconds, num_measure_trials or None)
        self.num_measure_trials, self.early_stopping = num_measure_trials, early_stopping
        self.num_measures_per_round, self.verbose = num_measures_per_round, verbose
        self.builder = _chosen("builder", builder, LocalBuilder)
        self.runner = _chosen("runner", runner, LocalRunner)
        self.measure_callbacks = _callbacks_in(measure_callbacks)
        self.seconds, self.seed = seconds, seed


def _callbacks_in(given: Any) -> list[Callable[[Trial], object]]:
    """What TuningOptions calls with each trial. Raises ArgumentTypeError for what is no list of functions."""
    listed = [] if given is None else given
    wrong = next((one for one in listed if not callable(one)), None) if isinstance(listed, (list, tuple)) else given
    if wrong is not None:
        raise ArgumentTypeError(f"TuningOptions: measure_callbacks is a list of functions that are called with each trial, not "
                                f"{wrong!r}", hint="measure_callbacks=[auto_scheduler.RecordToFile(path)]")
    return list(listed)


def _chosen(name: str, value: T | str, kind: type[T]) -> T:
    """A builder or runner, or that of this machine for "local"."""
    made = kind() if isinstance(value, str) and value == "local" else value
    if not isinstance(made, kind):
        raise ArgumentTypeError(f'TuningOptions: {name} is "local" or a {kind.__name__}, not {made!r}')
    return made


def state_in(dag: ComputeDAG, one: Record) -> State | None:
    """The schedule that a record holds, for these formulas; None if it holds none. Raises TedslError if it does not apply."""
    line = line_of(one)
    if line is not None:
        return State(dag.tensors, scheduled(dag.tensors, line.steps).journal)
    journal = journal_of(one)
    return None if journal is None else State(dag.tensors, journal)


class SearchTask:
    """A program to be scheduled for a target.

    func, args: a workload, or any function that returns tensors, and its arguments; or workload_key, or compute_dag.
    target: None is the current one. hardware_params: a HardwareParams, what a device gives a block. The other parameters are
    TVM's and without effect.
    """

    def __init__(self, func: Any = None, args: Any = None, compute_dag: ComputeDAG | None = None,
                 workload_key: str | None = None, target: Any = None, target_host: Any = None, hardware_params: Any = None,
                 layout_rewrite_option: Any = None,
                 task_inputs: Any = None, task_inputs_overwrite: bool = False, task_inputs_save_to_file: bool = False,
                 desc: str = "") -> None:
        check_layout("SearchTask: layout_rewrite_option", layout_rewrite_option)
        given = () if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
        if func is not None:
            function = WORKLOADS.get(func) if isinstance(func, str) else func
            if not callable(function):
                raise ArgumentError(f"SearchTask: {func!r} is no workload",
                                    hint="write @auto_scheduler.register_workload above its function")
            if isinstance(func, str) or func in WORKLOADS.values():
                workload_key = make_workload_key(func, given)
            compute_dag = ComputeDAG(made_by(function, given, getattr(function, "__name__", "of SearchTask")))
        elif compute_dag is None:
            if workload_key is None:
                raise ArgumentError("SearchTask: there is nothing to schedule",
                                    hint="SearchTask(func=matmul, args=(N, L, M), target='llvm')")
            compute_dag = ComputeDAG(workload_key)
        if not isinstance(compute_dag, ComputeDAG):
            raise ArgumentTypeError(f"SearchTask: compute_dag is a ComputeDAG, not {type_in_words(compute_dag)}")
        self.compute_dag, self.target, self.desc = compute_dag, as_target(target), desc
        if hardware_params is not None and not isinstance(hardware_params, HardwareParams):
            raise ArgumentTypeError(f"SearchTask: hardware_params is a HardwareParams, not {type_in_words(hardware_params)}")
        self.problem = Problem(compute_dag.tensors, self.target,
                               limits=None if hardware_params is None else hardware_params.limits)
        self.workload_key = workload_key or json.dumps([self.problem.key])

    def tune(self, tuning_options: TuningOptions, search_policy: Any = None, adaptive_training: bool = False) -> None:
        """Searches, and calls the callbacks of the options with each trial. search_policy: a SketchPolicy, or None."""
        if not isinstance(tuning_options, TuningOptions):
            raise ArgumentTypeError(f"tune takes TuningOptions, not {type_in_words(tuning_options)}")
        if search_policy is not None and not hasattr(search_policy, "records"):
            raise ArgumentTypeError(f"tune: search_policy is a SketchPolicy, not {type_in_words(search_policy)}")
        options, report = tuning_options, _Report(self, tuning_options)

        def on_trial(trial: Trial) -> None:
            for callback in options.measure_callbacks:
                callback(trial)
            report.note(trial)

        model = None if search_policy is None else search_policy.model
        made = Search(self.problem, options.seed if search_policy is None else search_policy.seed,
                      rounds=options.num_measures_per_round, early_stopping=options.early_stopping, model=model,
                      build=options.builder.option, run=options.runner.option, on_trial=on_trial,
                      cluster=options.runner.cluster)
        if search_policy is not None:
            made.preload(search_policy.records)
        made.run(options.seconds, options.num_measure_trials or None)

    def best_state(self, log_file: Any) -> State:
        """The fastest schedule of this task in a file of records, or a log of TVM, that applies: those of tedsl before those of
        TVM. Raises TedslError if there is none.
        """
        state = self.best_of(read_lines(log_file, record_of_line))
        if state is None:
            raise TedslError(f"there is no schedule of this task for {self.target} in {log_file}",
                             hint="task.tune(TuningOptions(measure_callbacks=[RecordToFile(path)], ...)) writes them")
        return state

    def best_of(self, records: Iterable[Record]) -> State | None:
        """The fastest schedule of this task among records that still applies; None if there is none."""
        for one in fastest_records_of(self._own(records), self.problem.key, self.target):
            try:
                state = state_in(self.compute_dag, one)
                if state is not None:
                    state.schedule()
                    return state
            except TedslError as error:
                warn_once(f"a record of {self.desc or self.workload_key} is skipped, since it does not apply: {error}")
        return None

    def _own(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records, those that TVM's logs have of this workload as ones of this task."""
        for one in records:
            if line_of(one) is not None and one.task == self.workload_key and kind_of(one.target) == self.target.kind.name:
                yield replace(one, task=self.problem.key, target=str(self.target))
            else:
                yield one

    def apply_best(self, log_file: Any, include_compatible: bool = False, layout_rewrite_option: Any = None) \
            -> tuple[Schedule, list[Tensor]]:
        """The fastest schedule in a file of records, and the arguments of its function."""
        check_layout("apply_best: layout_rewrite_option", layout_rewrite_option)
        return self.compute_dag.apply_steps_from_state(self.best_state(log_file))

    def print_best(self, log_file: Any, print_mode: str = "schedule") -> str:
        """The fastest schedule in a file of records, as Python over the schedule `s`."""
        if print_mode != "schedule":
            raise ArgumentError(f'print_best: print_mode is "schedule", not {print_mode!r}',
                                hint="get_source() of the module that tedsl.build(*task.apply_best(file)) makes is its code")
        return str(self.best_state(log_file).journal)


def kind_of(target: str) -> str:
    """The kind that the notation of a target of TVM names, whose options are others."""
    return target.split(" ")[0]


class _Report:
    """Prints how far a search is."""

    def __init__(self, task: SearchTask, options: TuningOptions) -> None:
        self.flop, self.options = task.compute_dag.flop_ct, options
        self.word = f" ({ESTIMATED})" if is_estimated(task.target) else ""
        self.best, self.failed = float("inf"), 0

    def note(self, trial: Trial) -> None:
        """A line after each round."""
        self.failed += trial.record.outcome.failure is not None
        self.best = min(self.best, trial.record.cost)
        ends = trial.number % self.options.num_measures_per_round == 0 or trial.number == self.options.num_measure_trials
        if self.options.verbose and ends and not trial.final:
            rate = f", {self.flop / self.best / 1e9:.2f} GFLOP/s" if 0 < self.best < float("inf") and self.flop > 0 else ""
            print(f"{trial.number} trials, {self.failed} failed, {trial.elapsed:.0f} s: "
                  f"best {self.best * 1e3:.4f} ms{rate}{self.word}")


def search(task: SearchTask | Sequence[Tensor], seconds: float | None = None, trials: int | None = None, seed: int = 0,
           on_trial: OnTrial | None = None, *, target: Any = None, model: Corrected | None = None) -> Record:
    """Searches for a schedule of a task, or of the tensors of a function, and returns the record of the best.

    seconds, trials: when it ends, one or both. The default schedule of topi is among the trials, and is compared with the
    fastest once more at the end. on_trial: called with each Trial. Ctrl-C ends the search early.
    """
    if on_trial is not None and not callable(on_trial):
        raise ArgumentTypeError(f"search: on_trial is called with each trial, and {on_trial!r} cannot be")
    problem = task.problem if isinstance(task, SearchTask) else Problem(tensors_of(task, "of search"), as_target(target))
    return Search(problem, seed, model=model, on_trial=on_trial).run(seconds, trials)
