"""tune: a search with a budget of seconds, from a task or a function to the best schedule."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import Any

from tedsl import auto_scheduler, autotvm
from tedsl.amounts import check_count, check_number
from tedsl.auto_scheduler.search.search import end_of
from tedsl.errors import ArgumentError, ArgumentTypeError, entry, type_in_words
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.runtime.module import Module
from tedsl.schedule.handles import Schedule
from tedsl.target.current import as_target
from tedsl.target.target import Target
from tedsl.tune.measure.budget import within
from tedsl.tune.measure.check import Checker, patience_of
from tedsl.tune.measure.machine import is_estimated
from tedsl.tune.measure.measurer import Measurer, check_options
from tedsl.tune.measure.options import MOST_PRECISE, BuildOption, RunOption, limited
from tedsl.tune.measure.outcome import Candidate, Outcome
from tedsl.tune.measure.remote import RemoteMeasurer, check_cluster
from tedsl.tune.records.kept import kept_in
from tedsl.tune.records.lines import require_lines
from tedsl.tune.records.ranking import confirmed, surely_fastest
from tedsl.tune.records.store import Records, is_database
from tedsl.tuning.programs import tuned_program
from tedsl.tuning.progress import Progress
from tedsl.tuning.result import Result
from tedsl.tuning.templates import TemplateSearch
from tedsl.tuning.trial import Search, Trial

_BATCH = 8  # candidates that are proposed together: builds run ahead of runs
_FINALISTS = 3  # candidates that are measured again, precisely, at the end; one of a short budget
_MOST_FINALISTS = 6  # where the times of those were by mistake too short
_FINAL = 0.15  # of the budget, for that
_SHORT = 5.0  # seconds of a budget
_RUN = RunOption(number=1, repeat=3, min_repeat_ms=10, timeout=10.0, cooldown_interval=0.0)


@entry
def tune(task: Any, seconds: float = 60, *, args: Sequence[Any] = (), target: Any = None, trials: int | None = None,
         seed: int = 0, records: str | PathLike[str] | Records | None = None, check: bool = True, progress: bool = True,
         build: BuildOption | None = None, run: RunOption | None = None, cluster: bool | str = False) -> Result:
    """The best schedule that is found in `seconds`: `tedsl.tune(task)`, or `tedsl.tune.search(task)` by its name.

    task: a task of autotvm or auto_scheduler, a template (or its name), the tensors of a program, placeholders and results, or
    a function, called with `args`, that returns these, or a schedule and its arguments, for which it asks
    autotvm.get_config() for knobs. target: None is the current one. trials: at most so many. seed: the same one gives the same
    order, up to what the model has learnt from times.
    records: a file to which each trial is written as it ends; a search goes on where one with that file has ended. Of a
    template it has the lines that autotvm reads, which hold points of the template, not the default schedule; of programs
    without a template it is one of `tedsl.tune.records`: of SQLite where its name ends in .sqlite or .db, or Records, else of
    lines of JSON. check: results are compared with those of the default schedule, or of the interpreter, where no knob changes
    their shapes. progress: shown on standard error. build, run: how candidates are measured. cluster: of Ray (the extra
    `ray`), on whose machines they are, those of one model: its address, or True for the one that the program has joined, else
    the one of RAY_ADDRESS, else this machine.

    The default schedule, of topi's rules, is measured first; at the end it and the best three (of less than five seconds: the
    best) are measured again, in turns with a reference, and it is kept unless another is surely faster. Ctrl-C ends the search
    with what it has. Raises ArgumentTypeError and ArgumentError for what cannot be tuned, and if no candidate ran.
    """
    check_number("tune", "seconds", seconds)
    if trials is not None:
        check_count("tune", "trials", trials, 1)
    _check_types(args, seed, records, check, progress)
    check_options("tune", build, run, None)
    check_cluster("tune", cluster)
    begun = time.monotonic()
    found = _task_of(task, tuple(args), target)
    if isinstance(found, auto_scheduler.SearchTask):
        return _of_program(found, _name_of(task, found), float(seconds), trials, seed, records, progress, build, run, cluster)
    path = None if records is None else _lines_of_template(records)
    search = TemplateSearch(found, seed)
    known = search.load(path) if path is not None and path.exists() else []
    arguments = search.args() if check else None
    checker = None if arguments is None else Checker(arguments, search.target, patience=patience_of(float(seconds)))
    bar = Progress(search.name, float(seconds), search.flop, search.target) if progress else None
    done = _Trials(search, path, bar, known, begun)
    has_final = seconds >= _SHORT or not is_estimated(search.target)  # a simulator says the same time again
    with _measurer(search.target, build, _RUN if run is None else run, checker, cluster) as measurer:
        try:
            _searched(search, measurer, done, float(seconds) * (1 - _FINAL * has_final), trials)
        except KeyboardInterrupt:
            has_final = False
    best = done.ranked()
    if not best:
        why = next((str(trial.outcome.failure) for trial in done.trials if trial.outcome.failure), "there were none")
        raise ArgumentError(f"tune: no candidate of {search.name} ran: {why}",
                            hint="give it more seconds, or look at the template")
    finals = _finals(done, best, checker, build, float(seconds) * _FINAL, cluster) if has_final else []
    default = next((trial for trial in reversed(finals or done.trials) if trial.candidate is done.default), None)
    chosen = finals[-1] if finals else best[0]
    if has_final and not finals and default is not None and default.outcome.failure is None:  # there was no time left
        chosen = surely_fastest([default, chosen], lambda trial: trial.outcome)
    return _ended(Result(search.name, search.target, search.flop, done.trials, chosen, default), bar)


def _of_program(task: auto_scheduler.SearchTask, name: str, seconds: float, trials: int | None, seed: int,
                records: str | PathLike[str] | Records | None, progress: bool, build: BuildOption | None,
                run: RunOption | None, cluster: bool | str) -> Result:
    with kept_in(records, "tune") as kept:
        bar = Progress(name, seconds, float(task.compute_dag.flop_ct), task.target) if progress else None
        return _ended(tuned_program(task, name, seconds, trials, seed, kept, bar, build, run, cluster), bar)


def _lines_of_template(records: str | PathLike[str] | Records) -> Path:
    """The path of the file that the trials of a template are written to. Raises ArgumentError for one of another form."""
    if isinstance(records, Records) or (Path(records).is_file() and is_database(Path(records))):
        raise ArgumentError(f"tune: the trials of a template are lines that autotvm reads, which {records} does not hold",
                            hint='give the path of a new file: records="trials.json"')
    return require_lines(records, "tune")


def _measurer(target: Target, build: BuildOption | None, run: RunOption, check: Checker | None,
              cluster: bool | str) -> Measurer | RemoteMeasurer:
    if cluster:
        return RemoteMeasurer(target, build, run, check, cluster=cluster, one_model=True)
    return Measurer(target, build, run, check)


def _ended(result: Result, bar: Progress | None) -> Result:
    """The result, after what mattered is shown."""
    if bar is not None:
        bar.close(f"{result.explain_best()}\n{result!r}")
    return result


def _check_types(args: Any, seed: Any, records: Any, check: Any, progress: Any) -> None:
    if not isinstance(args, (list, tuple)):
        raise ArgumentTypeError(f"tune: args is a list or tuple of the arguments of the function, not {type_in_words(args)}",
                                hint="tedsl.tune(matmul, args=(512, 512))")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ArgumentTypeError(f"tune: seed is an int, not {seed!r}")
    for name, value in (("check", check), ("progress", progress)):
        if not isinstance(value, bool):
            raise ArgumentTypeError(f"tune: {name} is True or False, not {value!r}")
    if records is not None and not isinstance(records, (str, PathLike, Records)):
        raise ArgumentTypeError(f"tune: records is the path of a file, or Records, not {type_in_words(records)}")
    if isinstance(records, (str, PathLike)) and not Path(records).absolute().parent.is_dir():
        raise ArgumentError(f"tune: the records cannot be written to {records}: there is no folder {Path(records).parent}",
                            hint="make the folder first")


def _task_of(task: Any, args: tuple[Any, ...], target: Any) -> autotvm.Task | auto_scheduler.SearchTask:
    """What programs pass to `tune`: a template with its arguments, or a program without one."""
    if isinstance(task, (autotvm.Task, auto_scheduler.SearchTask)):
        if args:
            raise ArgumentError("tune: a task has its arguments already", hint="tedsl.tune(task)")
        return task
    if isinstance(task, (list, tuple)) and task and all(isinstance(one, Tensor) for one in task):
        return auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(task), target=target)
    if isinstance(task, (Tensor, Schedule, Module)):
        raise _part_of_program(task)
    if callable(task) and not isinstance(task, type) and not hasattr(task, "task_name"):
        if _gives_tensors(task, args):
            return auto_scheduler.SearchTask(task, args, target=target)
        if isinstance(task, FunctionType):
            task = autotvm.template(task)
    if isinstance(task, str) or hasattr(task, "task_name"):
        return autotvm.task.create(task, args, as_target(target))
    raise ArgumentTypeError("tune takes a task, a template, the tensors of a program, or a function that returns these, or a "
                            f"schedule and its arguments, not {type_in_words(task)}",
                            hint="tedsl.tune(matmul, args=(512, 512))")


def _part_of_program(given: Tensor | Schedule | Module) -> ArgumentTypeError:
    """The error for what stands in programs beside what `tune` takes."""
    if isinstance(given, Module):
        return ArgumentTypeError("tune takes the tensors of a program, or a function that returns them, and no Module, which "
                                 "is built already", hint="tedsl.tune([A, B, C]); tedsl.why_slow(module, *arrays) says what a "
                                 "kernel loses")
    outputs = given.outputs if isinstance(given, Schedule) else [given.op]
    inputs = [op.output(0).name for op in producers_first(outputs) if isinstance(op, PlaceholderOp)]
    names = ", ".join([*inputs, given.name if isinstance(given, Tensor) else outputs[0].name])
    what = "a Schedule, which is what a search finds" if isinstance(given, Schedule) else f"the tensor {given.name} alone"
    return ArgumentTypeError(f"tune takes all tensors of a program, its placeholders too, and got {what}",
                             hint=f"tedsl.tune([{names}])")


def _gives_tensors(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a function returns tensors alone, and no schedule of them."""
    name = getattr(function, "__name__", "") or type(function).__name__
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        raise ArgumentTypeError(f"tune: {name} is called with {len(args)} arguments: {error}",
                                hint="tedsl.tune(function, args=(...))") from None
    with autotvm.ApplyConfig(autotvm.ConfigSpace()):
        made = function(*args)
    listed = made if isinstance(made, (list, tuple)) else [made]
    if listed and isinstance(listed[0], Schedule):
        return False
    if not listed or not all(isinstance(one, Tensor) for one in listed):
        others = dict.fromkeys(type_in_words(one) for one in listed if not isinstance(one, Tensor))
        inside = f" with {' and '.join(others)}" if isinstance(made, (list, tuple)) and others else ""
        raise ArgumentTypeError(f"tune: {name} returned {type_in_words(made)}{inside}, and neither tensors nor a "
                                "schedule and its arguments", hint="end it with: return [A, B, C]")
    return True


def _name_of(given: Any, task: auto_scheduler.SearchTask) -> str:
    return getattr(given, "__name__", "") or task.desc or ", ".join(out.op.name for out in task.problem.outs)


class _Trials:
    """The trials of a search, written down as they come. default: the candidate of topi's rules; begun: when the search did."""

    def __init__(self, search: Search, path: Path | None, bar: Progress | None, known: Sequence[Trial],
                 begun: float) -> None:
        self.search, self.path, self.bar = search, path, bar
        self.trials = list(known)
        self.default = search.default()
        self.begun = begun

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.begun

    def add(self, candidate: Candidate, outcome: Outcome, predicted: float | None) -> Trial:
        trial = Trial(candidate, outcome, self.search.choices(candidate), self.elapsed, predicted)
        self.trials.append(trial)
        self.write(trial)
        if self.bar is not None:
            self.bar.told(trial.cost, outcome.failure is not None, trial.seconds)
        return trial

    def write(self, trial: Trial) -> None:
        """Adds a trial to the file, if there is one."""
        if self.path is not None:
            self.search.append(self.path, trial)

    def ranked(self) -> list[Trial]:
        """Those with a time, the best first."""
        return sorted((trial for trial in self.trials if trial.outcome.failure is None), key=lambda trial: trial.cost)


def _searched(search: Search, measurer: Measurer | RemoteMeasurer, done: _Trials, seconds: float, trials: int | None) -> None:
    """Measures the default, then what the search proposes, until the budget ends or nothing is left."""
    def limit() -> None:
        """Nothing is waited for beyond the budget once there is a result."""
        if isinstance(measurer, Measurer) and any(trial.outcome.failure is None for trial in done.trials):
            measurer.until = done.begun + seconds

    for candidate, outcome in measurer.measure([done.default]):
        done.add(candidate, outcome, None)
        if outcome.failure is None and measurer.run is not None:
            measurer.run = limited(measurer.run, outcome, is_estimated(search.target))
    limit()
    left = math.inf if trials is None else trials
    while left > 0 and done.elapsed < seconds:
        batch = search.propose(int(min(measurer.batch if isinstance(measurer, RemoteMeasurer) else _BATCH, left)))
        if not batch:
            return
        predicted = {id(candidate): search.predicted(candidate) for candidate in batch}
        ended: list[Trial] = []
        for candidate, outcome in measurer.measure(within(batch, max(seconds - done.elapsed, 0.0))):
            ended.append(done.add(candidate, outcome, predicted[id(candidate)]))
            limit()
        search.learn(ended)
        left -= len(batch)


def _finals(done: _Trials, ranked: Sequence[Trial], checker: Checker | None, build: BuildOption | None,
            seconds: float, cluster: bool | str) -> list[Trial]:
    """The default and the best measured again, each in turns with a reference, and written: these times count. It goes on, up
    to _MOST_FINALISTS, while a candidate that was not measured again seems faster than all that were. The last one is the
    result.
    """
    default = [trial for trial in ranked if trial.candidate is done.default]
    first = _FINALISTS if seconds >= _SHORT * _FINAL else 1
    others = [trial for trial in ranked if trial.candidate is not done.default]
    each = min(MOST_PRECISE, max(0.2 if first > 1 else 0.1, seconds / (_MOST_FINALISTS + 3)))
    option = RunOption(precise=True, precise_seconds=each, timeout=10.0, cooldown_interval=0.0, many_places=True)
    found: list[Trial] = []

    def again(before: Trial) -> Trial | None:
        for candidate, outcome in measurer.measure([before.candidate]):
            trial = Trial(candidate, outcome, before.choices, before.seconds, before.predicted)
            done.write(trial)
            if outcome.failure is None:
                found.append(trial)
                return trial
        return None

    with _measurer(done.search.target, build, option, checker, cluster) as measurer:
        if isinstance(measurer, Measurer):
            measurer.until = done.begun + end_of(seconds / _FINAL)
        try:
            for at, before in enumerate([*default, *others[:_MOST_FINALISTS]]):
                if at >= first + len(default) and found and before.cost > min(trial.cost for trial in found):
                    break
                if len(found) > 1 and done.elapsed > seconds / _FINAL:  # of the whole budget
                    break
                again(before)
            if not found:
                return []
            is_beside_default = found[0].candidate is done.default
            chosen = confirmed(list(found), again, lambda trial: trial.outcome) if is_beside_default \
                else min(found, key=lambda trial: trial.cost)
        except KeyboardInterrupt:
            return []
    return [*found, chosen]
