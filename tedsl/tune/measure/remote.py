"""Candidates measured on several machines at once, through Ray (the extra `ray`).

Each machine of the cluster has one runner, an actor that takes all of its processors and measures as `Measurer` does, in forked
processes of its own. Candidates travel as Ray pickles objects, closures of the program included. A runner answers with one
outcome at a time, so that one which is killed costs the trial that ran, and no other.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.ir.source_line import user_level
from tedsl.processors import usable_processors
from tedsl.record import record
from tedsl.target.current import as_target
from tedsl.target.target import Target
from tedsl.tune.measure.check import Checker
from tedsl.tune.measure.machine import machine_model
from tedsl.tune.measure.measurer import Measurer, check_options
from tedsl.tune.measure.options import BuildOption, RunOption
from tedsl.tune.measure.outcome import Candidate, Failure, Outcome, candidates_in

_FOR_EACH_PROCESSOR = 2  # candidates of a batch: builds of the next ones keep a machine's processors busy while one runs
_AHEAD = 3  # batches of each machine that may wait for the outcome of one that is slow
_PATIENCE = 120.0  # seconds in which a runner starts: a machine imports tedsl, and may be busy
_LOSSES = 3  # of the runner of one machine in a row, without an outcome, after which it is left out


@record(eq=False)
class _Work:
    """A batch for a runner. run: how its candidates run, which a search may change between batches."""

    candidates: Sequence[Candidate]
    inputs: Sequence[Any] | None
    run: RunOption | None


class Runner:
    """Measures on the machine where it is: the actor of Ray."""

    def __init__(self, target: Target, build: BuildOption | None, run: RunOption | None, check: Checker | None) -> None:
        self._measurer = Measurer(target, build, run, check)
        self._measuring: Iterator[tuple[Candidate, Outcome]] = iter(())

    def about(self) -> tuple[int, str]:
        """How many candidates it takes at once, and the model of this machine."""
        return _FOR_EACH_PROCESSOR * usable_processors(), machine_model(self._measurer.target)

    def outcome(self, work: _Work | None) -> Outcome:
        """The outcome of the first candidate of `work`, or of the next one of that which was begun before."""
        if work is not None:
            self._measurer.run = self._measurer.run if work.run is None else work.run
            self._measuring = self._measurer.measure(work.candidates, work.inputs)
        _, outcome = next(self._measuring)
        return replace(outcome, machine=self.about()[1])


@dataclass(eq=False)
class _Machine:
    """A machine of the cluster. node: what Ray says of it; actor: the handle of its runner; batch: how many candidates it takes
    at once; model: of the machine; losses: of its runner since its last outcome.
    """

    node: Any
    actor: Any
    batch: int = 1
    model: str = ""
    losses: int = 0


@dataclass(eq=False)
class _Trial:
    candidate: Candidate
    outcome: Outcome | None = None


@dataclass(eq=False)
class _Batch:
    """What a machine measures: trials without an outcome, of which the first one runs."""

    machine: _Machine
    trials: deque[_Trial] = field(default_factory=deque)


class RemoteMeasurer:
    """A `Measurer` that builds and runs on every machine of a Ray cluster: the one at the address `cluster`, or, where that is
    True, the one that the program has joined by `ray.init`, else the one that RAY_ADDRESS names, else this machine.

    Outcomes say the model of the machine that ran the candidate: `record_of` keeps them apart. one_model: machines of other
    models than the most frequent are not used, after a warning, so that times can be compared. A runner that is killed costs
    the trial that ran; another one takes its place, unless the machine is lost.
    """

    def __init__(self, target: Any = None, build: BuildOption | None = None, run: RunOption | None = None,
                 check: Checker | None = None, *, cluster: bool | str = True, one_model: bool = False) -> None:
        check_options("RemoteMeasurer", build, run, check)
        check_cluster("RemoteMeasurer", cluster)
        self.target, self.run = as_target(target), run
        self._options = build, run, check
        self._ray, self._why = _joined(cluster), "there is none"
        self._machines = self._started([node for node in self._ray.nodes() if node["Alive"]])
        if not self._machines:
            raise TedslError(f"RemoteMeasurer: no machine of the cluster has started a runner: {self._why}",
                             hint="all of them need tedsl, and free processors: ray.available_resources()")
        if one_model:
            self._keep_one_model()

    @property
    def batch(self) -> int:
        """How many candidates keep all machines busy."""
        return sum(machine.batch for machine in self._machines)

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
        rest, trials, running = candidates_in(candidates, "measure"), deque[_Trial](), dict[Any, _Batch]()
        again = deque[_Trial]()  # those that waited on a machine whose runner was killed
        try:
            while True:
                self._give_out(rest, again, trials, running, inputs)
                if not trials:
                    return
                while trials and (outcome := trials[0].outcome) is not None:
                    yield trials.popleft().candidate, outcome
                if running:
                    done, _ = self._ray.wait(list(running), num_returns=1)
                    batch = running.pop(done[0])
                    if self._take_in(done[0], batch, again) and batch.trials:
                        running[batch.machine.actor.outcome.remote(None)] = batch
        finally:
            if running:
                self.close()

    # --- machines -------------------------------------------------------------------------------------------------------

    def _started(self, nodes: Sequence[Any]) -> list[_Machine]:
        """Machines whose runner has answered. All start at once."""
        machines = [_Machine(node, self._runner_on(node)) for node in nodes]
        answers = [machine.actor.about.remote() for machine in machines]
        return [machine for machine, answer in zip(machines, answers) if self._answers(machine, answer)]

    def _runner_on(self, node: Any) -> Any:
        processors = node["Resources"].get("CPU", 1)
        place = {f"node:{node['NodeManagerAddress']}": 0.001}  # a part of what each node has of itself: it runs there
        return self._ray.remote(Runner).options(num_cpus=processors, resources=place).remote(self.target, *self._options)

    def _answers(self, machine: _Machine, answer: Any) -> bool:
        """Whether a runner says what it is. One that does not is ended."""
        try:
            machine.batch, machine.model = self._ray.get(answer, timeout=_PATIENCE)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError) as error:
            self._why = str(error)
            self._ray.kill(machine.actor)
            return False
        return True

    def _keep_one_model(self) -> None:
        (model, count), = Counter(machine.model for machine in self._machines).most_common(1)
        others = [machine for machine in self._machines if machine.model != model]
        for machine in others:
            self._machines.remove(machine)
            self._ray.kill(machine.actor)
        if others:
            warnings.warn(f"{len(others)} of {count + len(others)} machines are not used, since they are no {model}: a search "
                          "compares times", stacklevel=user_level())

    def _lost(self, machine: _Machine) -> None:
        """Starts a runner in the place of one that was killed; a machine that is gone, or loses all, is left out."""
        machine.losses += 1
        self._machines.remove(machine)
        alive = any(node["Alive"] and node["NodeManagerAddress"] == machine.node["NodeManagerAddress"]
                    for node in self._ray.nodes())
        if machine.losses < _LOSSES and alive:
            machine.actor = self._runner_on(machine.node)
            if self._answers(machine, machine.actor.about.remote()):
                self._machines.append(machine)

    # --- trials ---------------------------------------------------------------------------------------------------------

    def _give_out(self, rest: Iterator[Candidate], again: deque[_Trial], trials: deque[_Trial], running: dict[Any, _Batch],
                  inputs: Sequence[Any] | None) -> None:
        """Gives a batch to each machine that has none."""
        if not self._machines and not (trials and trials[0].outcome is not None) and (again or next(rest, None) is not None):
            raise TedslError("measure: no machine of the cluster is left", hint="make a RemoteMeasurer again")
        busy = [batch.machine for batch in running.values()]
        for machine in self._machines:
            if machine in busy:
                continue
            batch = _Batch(machine)
            while again and len(batch.trials) < machine.batch:
                batch.trials.append(again.popleft())
            if len(trials) < _AHEAD * self.batch:
                fresh = [_Trial(candidate) for candidate in itertools.islice(rest, machine.batch - len(batch.trials))]
                trials.extend(fresh)
                batch.trials.extend(fresh)
            if batch.trials:
                work = _Work([trial.candidate for trial in batch.trials], inputs, self.run)
                running[machine.actor.outcome.remote(work)] = batch

    def _take_in(self, answer: Any, batch: _Batch, again: deque[_Trial]) -> bool:
        """Takes in an outcome; returns whether the runner lives. Where it was killed, the trial that ran has failed, and the
        others are measured again.
        """
        try:
            outcome = self._ray.get(answer)
        except self._ray.exceptions.RayActorError as error:
            batch.trials.popleft().outcome = Outcome((), Failure("crash", f"the runner was lost: {error}"))
            again.extend(batch.trials)
            self._lost(batch.machine)
            return False
        except self._ray.exceptions.RayTaskError as error:
            raise TedslError(f"measure: a runner of the cluster has failed: {error}",
                             hint="every machine needs tedsl and the modules of what candidates hold") from None
        batch.machine.losses = 0
        batch.trials.popleft().outcome = outcome
        return True


def check_cluster(what: str, cluster: object) -> None:
    """Raises ArgumentTypeError unless `cluster` is a bool or the address of a cluster."""
    if not isinstance(cluster, (bool, str)):
        raise ArgumentTypeError(f"{what}: cluster is True, or the address of a cluster of Ray as a text, not {cluster!r}",
                                hint='cluster="auto", or cluster="ray://head:10001"')


def _joined(cluster: bool | str) -> Any:
    """Ray, with a cluster."""
    try:
        import ray
    except ImportError as error:
        raise ArgumentError(f"RemoteMeasurer: Ray is not installed here: {error}",
                            hint="pip install 'tedsl[ray]', on every machine") from None
    if ray.is_initialized():
        return ray
    address = cluster if isinstance(cluster, str) else os.environ.get("RAY_ADDRESS")
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        else:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise TedslError(f"the cluster of Ray at {address!r} cannot be joined: {error}" if address else
                         f"Ray does not start here: {error}") from None
    return ray
