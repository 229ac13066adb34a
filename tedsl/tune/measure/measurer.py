"""Keeps builds and runs in order: several builds at once, one run at a time."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tedsl import te
from tedsl.amounts import LONGEST, MOST
from tedsl.driver import build
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.record import record
from tedsl.target.current import as_target
from tedsl.tune.measure.building import built, load_compiler
from tedsl.tune.measure.check import Checker, Expected
from tedsl.tune.measure.cores import Cores, cores_for, free_memory
from tedsl.tune.measure.inputs import inputs_for
from tedsl.tune.measure.interrupts import Interrupts
from tedsl.tune.measure.machine import is_estimated, require_device
from tedsl.tune.measure.options import BuildOption, RunOption
from tedsl.tune.measure.outcome import Candidate, Outcome, candidates_in
from tedsl.tune.measure.process import Ended, Process, Processes, wait_for
from tedsl.tune.measure.running import Reference, costs_of, seconds_of
from topi import matmul, schedules

_SOON = 5.0  # seconds before an end, from which on no candidate is built ahead of those whose runs wait for builds
_AHEAD = 2  # candidates that are taken for each one that is being built, so that a short build leaves no core idle
_TRIES = 2  # at the reference: a program that is stopped for longer than a limit, as by Ctrl-Z, is measured once more
_SIDE = 128  # of the matrices of the reference kernel: as much arithmetic as memory of the second cache


@dataclass(eq=False)
class _Trial:
    """A candidate on its way: waiting, with a process that builds it, with its code, with a process that runs it, with its
    outcome.
    """

    candidate: Candidate
    building: Process | None = None
    code: bytes = b""
    running: Process | None = None
    build_seconds: float = 0.0
    outcome: Outcome | None = None

    @property
    def waits(self) -> bool:
        return self.building is None and self.running is None and not self.code and self.outcome is None


@record(eq=False)
class _Order:
    """What holds for all trials of one measurement. at_once: how many are built at the same time."""

    processes: Processes
    cores: Cores
    at_once: int
    inputs: Sequence[Any] | None
    expected: Expected | None


def check_options(what: str, build: object, run: object, check: object) -> None:
    """Raises ArgumentTypeError unless these are a BuildOption, a RunOption and a Checker, or None."""
    for name, value, of in (("build", build, BuildOption), ("run", run, RunOption), ("check", check, Checker)):
        if value is not None and not isinstance(value, of):
            raise ArgumentTypeError(f"{what}: {name} is a {of.__name__}, not {value!r}")


class Measurer:
    """Builds and runs candidates for `target` (None: the current one), each in processes of its own.

    check: says whether results are right; without it a candidate is only timed. estimated: whether times are those of a model,
    since a simulator stands for the device. While some processors run a candidate, the
    others build the next ones; where a parallel loop takes all processors, builds and runs take turns.
    until: by the monotonic clock: `measure` ends then, and leaves out what has no outcome yet.

    A context manager: leaving it, also by Ctrl-C, ends all processes.
    """

    def __init__(self, target: Any = None, build: BuildOption | None = None, run: RunOption | None = None,
                 check: Checker | None = None) -> None:
        if not hasattr(os, "fork"):
            raise TedslError("candidates are measured in forked processes, which this system does not have",
                             hint="tune on Linux, and use the records here")
        check_options("Measurer", build, run, check)
        self.target, self.check = as_target(target), check
        self.build, self.run = BuildOption() if build is None else build, RunOption() if run is None else run
        if not (self.target.is_device or self.target.runs_here):
            raise ArgumentError(f"Measurer: code for {self.target} does not run on this machine",
                                hint="measure on a machine like that, and use its records here")
        require_device(self.target)
        self.estimated = is_estimated(self.target)
        load_compiler(self.target)
        self.until = math.inf
        self._reference: Reference | None = None
        self._open: list[Processes] = []
        self._interrupts = Interrupts()

    def __enter__(self) -> Measurer:
        self._interrupts.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
        self._interrupts.__exit__(*exc)

    def close(self) -> None:
        """Ends all processes."""
        while self._open:
            self._open.pop().close()

    def measure(self, candidates: Iterable[Candidate], inputs: Sequence[Any] | None = None) \
            -> Iterator[tuple[Candidate, Outcome]]:
        """Each candidate with its outcome, in the order of `candidates`, of which few are taken ahead.

        inputs: arrays and numbers for the arguments, which candidates may overwrite; None: those of the check, or seeded ones.
        Nothing runs between two outcomes but builds. Closing the iterator, or an exception such as Ctrl-C, ends all processes.
        """
        rest, trials = candidates_in(candidates, "measure"), deque[_Trial]()
        if inputs is not None and not isinstance(inputs, (list, tuple)):
            raise ArgumentTypeError(f"measure: inputs is a list of arrays and numbers, not {inputs!r}")
        order = self._order(inputs)
        self._open.append(order.processes)
        try:
            while True:
                self._interrupts.check()
                if not (order.cores.take_turns and trials):  # a batch is run before the next one is built
                    ahead = 1 if order.cores.take_turns and self.until - time.monotonic() < _SOON else _AHEAD
                    trials += map(_Trial, itertools.islice(rest, min(ahead * order.at_once, MOST) - len(trials)))
                if not trials:
                    return
                while (outcome := trials[0].outcome) is None:
                    if time.monotonic() >= self.until:
                        return
                    self._advance(trials, order)
                yield trials.popleft().candidate, outcome
        finally:
            order.processes.close()
            if order.processes in self._open:  # nobody has closed it
                self._open.remove(order.processes)

    def _order(self, inputs: Sequence[Any] | None) -> _Order:
        expected = None
        if self.check is not None:
            if inputs is not None:
                raise ArgumentError("measure: the results for these inputs are not known",
                                    hint="give them to the Checker: Checker(args, inputs=...)")
            expected, inputs = self.check.expected(), self.check.inputs
        cores = cores_for(1 if self.estimated else self.run.threads)  # a simulator has one thread
        return _Order(Processes(), cores, self.build.n_parallel or len(cores.building), inputs, expected)

    def _advance(self, trials: Sequence[_Trial], order: _Order) -> None:
        """Starts what may start, and waits until a process has ended. No run but that of the first trial is ever started, so
        that none goes on while the program looks at an outcome.
        """
        first = trials[0]
        building = [trial for trial in trials if trial.building is not None]
        for trial in trials:
            if trial.waits and len(building) < order.at_once:
                self._start_build(trial, order)
                building.append(trial)
        if first.code and first.running is None and not (order.cores.take_turns and building):
            self._start_run(first, order)
        busy = {process: trial for trial in (*building, first) if (process := trial.building or trial.running) is not None}
        for process in wait_for(list(busy), self.until):
            _finish(busy[process], order.processes.finish(process))

    # --- one trial ------------------------------------------------------------------------------------------------------

    def _start_build(self, trial: _Trial, order: _Order) -> None:
        candidate, threads = trial.candidate, len(order.cores.running)
        memory = self.build.memory or free_memory() // (2 * order.at_once)
        trial.building = order.processes.start(lambda: built(candidate, self.target, threads), "compile", self.build.timeout,
                                               order.cores.building, memory)

    def _start_run(self, trial: _Trial, order: _Order) -> None:
        time.sleep(min(self.run.cooldown_interval, LONGEST))
        reference = self._calm_reference(order) if self.run.precise and not self.estimated else None
        code, threads = trial.code, len(order.cores.running)
        trial.running = self._run_process(
            order, lambda: costs_of(code, self.target, self.run, threads, order.inputs, order.expected, reference))

    def _run_process(self, order: _Order, work: Callable[[], object]) -> Process:
        limit = self.run.timeout + (self.run.precise_seconds if self.run.precise else 0.0)
        return order.processes.start(work, "run", limit, order.cores.running, free_memory() // 2)

    def _calm_reference(self, order: _Order) -> Reference:
        """The reference kernel, with the time of its calls when it was first measured."""
        if self._reference is None:
            made, threads = self._make_reference(), len(order.cores.running)
            for _ in range(_TRIES):
                ended = order.processes.finish(self._run_process(
                    order, lambda: seconds_of(made, self.target, self.run, threads, order.inputs)))
                if isinstance(ended.value, float):
                    break
            else:
                raise TedslError(f"the reference kernel cannot be measured: {ended.failure}")
            self._reference = replace(made, seconds=ended.value)
        return self._reference

    def _make_reference(self) -> Reference:
        """The default schedule of what is tuned, which is slowed by what slows candidates; a product of matrices where there is
        no check.
        """
        if self.check is not None:
            code = build(self.check.default(), self.check.args, self.target).save_to_bytes()
            return Reference(code, None)
        a, b = (te.placeholder((_SIDE, _SIDE), name=name) for name in "ab")
        c = matmul(a, b)
        module = build(schedules.schedule(c, self.target), [a, b, c], self.target)
        return Reference(module.save_to_bytes(), inputs_for(module.signature(module.entry_name), 0))


def _finish(trial: _Trial, ended: Ended) -> None:
    """Takes in how the process of a trial ended: a build with code goes on to run, all else is its outcome."""
    if trial.building is not None:
        trial.building, trial.build_seconds = None, ended.seconds
        if isinstance(ended.value, bytes):
            trial.code = ended.value
            return
        seconds = ended.seconds
    else:
        seconds = trial.build_seconds + ended.seconds
    costs = ended.value if isinstance(ended.value, tuple) else ()
    trial.code, trial.running = b"", None
    trial.outcome = Outcome(costs, ended.failure, trial.build_seconds, seconds, time.time())
