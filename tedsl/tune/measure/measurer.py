"""Keeps builds and runs in order: several builds at once, one run at a time."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tedsl import te
from tedsl.driver import build
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.target.current import as_target
from tedsl.tune.measure.building import built, load_compiler
from tedsl.tune.measure.check import Checker, Expected
from tedsl.tune.measure.cores import Cores, cores_for, free_memory
from tedsl.tune.measure.inputs import inputs_for
from tedsl.tune.measure.options import BuildOption, RunOption
from tedsl.tune.measure.outcome import Candidate, Outcome
from tedsl.tune.measure.process import Process, wait_for
from tedsl.tune.measure.running import Reference, costs_of, seconds_of
from topi import matmul, schedules

_AHEAD = 2  # candidates that are taken for each one that is being built, so that a short build leaves no core idle
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


def check_options(what: str, build: object, run: object, check: object) -> None:
    """Raises ArgumentTypeError unless these are a BuildOption, a RunOption and a Checker, or None."""
    for name, value, of in (("build", build, BuildOption), ("run", run, RunOption), ("check", check, Checker)):
        if value is not None and not isinstance(value, of):
            raise ArgumentTypeError(f"{what}: {name} is a {of.__name__}, not {value!r}")


class Measurer:
    """Builds and runs candidates for `target` (None: the current one), each in processes of its own.

    check: says whether results are right; without it a candidate is only timed. While some processors run a candidate, the
    others build the next ones; where a parallel loop takes all processors, builds and runs take turns.

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
        load_compiler(self.target)
        self._reference: Reference | None = None
        self._processes: set[Process] = set()

    def __enter__(self) -> Measurer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes."""
        while self._processes:
            self._processes.pop().kill()

    def measure(self, candidates: Iterable[Candidate], inputs: Sequence[Any] | None = None) \
            -> Iterator[tuple[Candidate, Outcome]]:
        """Each candidate with its outcome, in the order of `candidates`, of which few are taken ahead.

        inputs: arrays and numbers for the arguments, which candidates may overwrite; None: those of the check, or seeded ones.
        Nothing runs between two outcomes but builds. Closing the iterator, or an exception such as Ctrl-C, ends all processes.
        """
        expected = None
        if self.check is not None:
            expected = self.check.expected()
            if inputs is not None and expected is not None:
                raise ArgumentError("measure: the results for these inputs are not known",
                                    hint="give them to the Checker: Checker(args, inputs=...)")
            inputs = self.check.inputs
        cores = cores_for(self.run.threads)
        at_once = self.build.n_parallel or len(cores.building)
        rest, trials = iter(candidates), deque[_Trial]()
        try:
            while True:
                if not (cores.take_turns and trials):  # a batch is run before the next one is built
                    trials += map(_Trial, itertools.islice(rest, _AHEAD * at_once - len(trials)))
                if not trials:
                    return
                while (outcome := trials[0].outcome) is None:
                    self._advance(trials, at_once, cores, inputs, expected)
                yield trials.popleft().candidate, outcome
        finally:
            for trial in trials:
                for process in (trial.building, trial.running):
                    self._forget(process)

    def _advance(self, trials: Sequence[_Trial], at_once: int, cores: Cores, inputs: Sequence[Any] | None,
                 expected: Expected | None) -> None:
        """Starts what may start, and waits until a process has ended. No run but that of the first trial is ever started, so
        that none goes on while the program looks at an outcome.
        """
        first = trials[0]
        building = [trial for trial in trials if trial.building is not None]
        for trial in trials:
            if trial.waits and len(building) < at_once:
                self._start_build(trial, at_once, cores)
                building.append(trial)
        if first.code and first.running is None and not (cores.take_turns and building):
            self._start_run(first, cores, inputs, expected)
        busy = {process: trial for trial in (*building, first) if (process := trial.building or trial.running) is not None}
        for process in wait_for(list(busy)):
            self._finish(busy[process], process)

    # --- one trial ------------------------------------------------------------------------------------------------------

    def _start(self, work: Callable[[], object], kind: str, limit: float, cores: Sequence[int], memory: int) -> Process:
        process = Process(work, kind, limit, cores, memory)
        self._processes.add(process)
        return process

    def _start_build(self, trial: _Trial, at_once: int, cores: Cores) -> None:
        candidate = trial.candidate
        memory = self.build.memory or free_memory() // (2 * at_once)
        threads = len(cores.running)
        trial.building = self._start(lambda: built(candidate, self.target, threads), "compile", self.build.timeout,
                                     cores.building, memory)

    def _start_run(self, trial: _Trial, cores: Cores, inputs: Sequence[Any] | None, expected: Expected | None) -> None:
        time.sleep(self.run.cooldown_interval)
        reference = self._calm_reference(cores, inputs) if self.run.precise else None
        code, threads = trial.code, len(cores.running)
        trial.running = self._start(lambda: costs_of(code, self.target, self.run, threads, inputs, expected, reference), "run",
                                    self._run_limit, cores.running, free_memory() // 2)

    @property
    def _run_limit(self) -> float:
        return self.run.timeout + (self.run.precise_seconds if self.run.precise else 0.0)

    def _forget(self, process: Process | None) -> None:
        if process is not None:
            process.kill()
            self._processes.discard(process)

    def _finish(self, trial: _Trial, process: Process) -> None:
        ended = process.finish()
        self._processes.discard(process)
        if trial.building is process:
            trial.building, trial.build_seconds = None, ended.seconds
            if isinstance(ended.value, bytes):
                trial.code = ended.value
                return
        seconds = trial.build_seconds + (ended.seconds if trial.running is process else 0.0)
        costs = ended.value if isinstance(ended.value, tuple) else ()
        trial.code, trial.running = b"", None
        trial.outcome = Outcome(costs, ended.failure, trial.build_seconds, seconds, time.time())

    def _calm_reference(self, cores: Cores, inputs: Sequence[Any] | None) -> Reference:
        """The reference kernel, with the time of its calls when it was first measured."""
        if self._reference is None:
            made = self._make_reference()
            process = self._start(lambda: seconds_of(made, self.target, self.run, len(cores.running), inputs), "run",
                                  self._run_limit, cores.running, free_memory() // 2)
            try:
                ended = process.finish()
            finally:
                self._forget(process)
            if not isinstance(ended.value, float):
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
