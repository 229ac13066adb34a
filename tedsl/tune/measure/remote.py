"""Candidates measured on several machines at once, through Ray (the extra `ray`).

Each machine of the cluster has one runner, an actor that takes all of its processors and measures as `Measurer` does, in forked
processes of its own. Candidates travel as Ray pickles objects, closures of the program included.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tedsl.cache.workers import cores
from tedsl.errors import ArgumentError, TedslError
from tedsl.target.current import as_target
from tedsl.target.target import Target
from tedsl.tune.measure.check import Checker
from tedsl.tune.measure.machine import machine_model
from tedsl.tune.measure.measurer import Measurer, check_options
from tedsl.tune.measure.options import BuildOption, RunOption
from tedsl.tune.measure.outcome import Candidate, Failure, Outcome

_FOR_EACH_PROCESSOR = 4  # candidates of a batch: its builds keep a machine's processors busy, and few wait for its last run

_AHEAD = 3  # batches of each machine that may wait for the outcome of one that is slow


class Runner:
    """Measures on the machine where it is: the actor of Ray."""

    def __init__(self, target: Target, build: BuildOption | None, run: RunOption | None, check: Checker | None) -> None:
        self._measurer = Measurer(target, build, run, check)

    def batch(self) -> int:
        """How many candidates it takes at once."""
        return _FOR_EACH_PROCESSOR * cores()

    def measure(self, candidates: Sequence[Candidate], inputs: Sequence[Any] | None) -> list[Outcome]:
        """The outcomes of `candidates`, with the model of this machine."""
        machine = machine_model(self._measurer.target)
        return [replace(outcome, machine=machine) for _, outcome in self._measurer.measure(candidates, inputs)]


@dataclass(eq=False)
class _Machine:
    """A machine of the cluster. actor: the handle of its runner; batch: how many candidates it takes at once."""

    actor: Any
    batch: int


@dataclass(eq=False)
class _Trial:
    candidate: Candidate
    outcome: Outcome | None = None


@dataclass(eq=False)
class _Batch:
    machine: _Machine
    trials: list[_Trial] = field(default_factory=list)


class RemoteMeasurer:
    """A `Measurer` that builds and runs on every machine of a Ray cluster: the one that the program has joined by `ray.init`,
    else the one that RAY_ADDRESS names, else this machine.

    Outcomes say the model of the machine that ran the candidate: `record_of` keeps them apart. A machine that is lost costs the
    trials that it was given.
    """

    def __init__(self, target: Any = None, build: BuildOption | None = None, run: RunOption | None = None,
                 check: Checker | None = None) -> None:
        check_options("RemoteMeasurer", build, run, check)
        self.target = as_target(target)
        self._options = build, run, check
        self._ray = _ray()
        if not self._ray.is_initialized():
            self._ray.init()
        self._machines = [self._start(node) for node in self._ray.nodes() if node["Alive"]]

    def __enter__(self) -> RemoteMeasurer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the runners, and the processes that they started."""
        while self._machines:
            self._ray.kill(self._machines.pop().actor)

    def measure(self, candidates: Iterable[Candidate], inputs: Sequence[Any] | None = None) \
            -> Iterator[tuple[Candidate, Outcome]]:
        """Each candidate with its outcome, in the order of `candidates`, of which few batches for each machine are taken ahead.

        Raises TedslError when no machine is left. Closing the iterator before its end, or an exception such as Ctrl-C, ends the
        runners.
        """
        rest, trials, running = iter(candidates), deque[_Trial](), dict[Any, _Batch]()
        try:
            while True:
                self._give_out(rest, trials, running, inputs)
                if not trials:
                    return
                while trials and (outcome := trials[0].outcome) is not None:
                    yield trials.popleft().candidate, outcome
                if trials:
                    done, _ = self._ray.wait(list(running), num_returns=1)
                    self._take_in(done[0], running.pop(done[0]))
        finally:
            if running:
                self.close()

    def _start(self, node: Any) -> _Machine:
        processors = node["Resources"].get("CPU", 1)
        place = {f"node:{node['NodeManagerAddress']}": 0.001}  # a part of what each node has of itself: it runs there
        actor = self._ray.remote(Runner).options(num_cpus=processors, resources=place).remote(self.target, *self._options)
        return _Machine(actor, self._ray.get(actor.batch.remote()))

    def _give_out(self, rest: Iterator[Candidate], trials: deque[_Trial], running: dict[Any, _Batch],
                  inputs: Sequence[Any] | None) -> None:
        """Gives a batch to each machine that has none."""
        if not (self._machines or trials) and next(rest, None) is not None:
            raise TedslError("measure: no machine of the cluster is left", hint="make a RemoteMeasurer again")
        ahead = sum([machine.batch for machine in self._machines])
        busy = [batch.machine for batch in running.values()]
        for machine in self._machines:
            if machine not in busy and len(trials) < _AHEAD * ahead:
                batch = _Batch(machine, [_Trial(candidate) for candidate in itertools.islice(rest, machine.batch)])
                if batch.trials:
                    candidates = [trial.candidate for trial in batch.trials]
                    running[machine.actor.measure.remote(candidates, inputs)] = batch
                    trials.extend(batch.trials)

    def _take_in(self, answer: Any, batch: _Batch) -> None:
        try:
            outcomes = self._ray.get(answer)
        except self._ray.exceptions.RayActorError as error:
            self._machines.remove(batch.machine)
            outcomes = [Outcome((), Failure("crash", f"the machine was lost: {error}"))] * len(batch.trials)
        for trial, outcome in zip(batch.trials, outcomes):
            trial.outcome = outcome


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ArgumentError(f"RemoteMeasurer: Ray is not installed here: {error}",
                            hint="pip install 'tedsl[ray]', on every machine") from None
    return ray
