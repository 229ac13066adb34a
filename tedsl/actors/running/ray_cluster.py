"""Workers as processes of Ray: each is an actor of Ray that hosts a part of a plan; a placement group chooses their nodes.

    caller ──deliver(parcel)──► worker ──deliver(parcel)──► worker         large arrays lie in the object store of Ray: they are
       ▲────────collect()─────────┘                                        copied there once for each reader, and read there

Ray cannot call the process that runs `Runtime.run`, so that a thread for each worker collects what it has for that process.
"""

from __future__ import annotations

import pickle
import weakref
from collections import Counter
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from tedsl.actors.machine.kinds import Kind, kind_named, register_if_new
from tedsl.actors.plan.check import rates
from tedsl.actors.plan.description import Plan
from tedsl.actors.plan.memory import memory_of, new_chunks
from tedsl.actors.plan.text import parse
from tedsl.actors.running.part import Functions, Parcel, Part, allocated
from tedsl.actors.running.report import Record
from tedsl.actors.running.thread import Failure
from tedsl.errors import ActorError, ArgumentError, ArgumentTypeError, type_in_words
from tedsl.record import record

STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_PERIOD = 0.5  # seconds after which a worker answers even if it has nothing: a fraction of the 5 s in which losses are told


@record(eq=False)
class Outcome:
    """How a worker's part of a run ended. begin: when it began, by the clock of the worker."""

    records: Mapping[str, Record]
    begin: int
    failure: Failure | None
    incomplete: tuple[str, int, int] | None


class Endpoint:
    """Hosts the part of one worker in a process of Ray. All methods are called by other processes, several at a time."""

    def __init__(self, worker: str, text: str, functions: Functions, kinds: list[Kind]) -> None:
        for kind in kinds:
            register_if_new(kind)
        self.worker, self.functions = worker, functions
        self.plan = parse(text)
        memory = memory_of(self.plan, worker)
        self.arrays = allocated(self.plan, memory, new_chunks(self.plan, memory.chunks))

    def prepare(self, batches: int | None, numbered: Functions, peers: Mapping[str, Any]) -> None:
        """Makes the actors of a run, so that messages can come."""
        self.outbox: SimpleQueue[Parcel | None] = SimpleQueue()
        self.peers = peers
        self.part = Part(self.plan, self.worker, self.arrays, self.functions, numbered, batches, self._send)

    def begin(self) -> None:
        """Starts the threads; `collect` tells when they have ended."""
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self.part.run([])
        self.outbox.put(None)

    def _send(self, worker: str, parcel: Parcel) -> None:
        if not worker:
            self.outbox.put(parcel)
        else:
            deliver(self.peers[worker], parcel)

    def deliver(self, head: tuple[str, int, str, str, int], *arrays: Any) -> None:
        """Takes a parcel."""
        self.part.receive(Parcel(*head, arrays))

    def collect(self) -> tuple[list[Parcel], Outcome | None]:
        """What there is for the process that called the run, and, at its end, how it ended."""
        parcels: list[Parcel] = []
        try:
            parcel = self.outbox.get(timeout=_PERIOD)
            while parcel is not None:
                parcels.append(parcel)
                parcel = self.outbox.get_nowait()
        except Empty:
            return parcels, None
        part = self.part
        failure = part.bus.failure
        if failure is not None:
            failure = Failure(failure.actor, failure.number, _portable(failure.error))
        return parcels, Outcome(part.records, part.begin, failure, part.incomplete)

    def heard(self) -> dict[str, int]:
        """How many messages about registers came from other processes."""
        return dict(self.part.heard)


def deliver(endpoint: Any, parcel: Parcel) -> None:
    """Sends a parcel to an endpoint; its arrays are arguments of their own, which Ray keeps in its object store."""
    endpoint.deliver.remote((parcel.sender, parcel.number, parcel.to, parcel.name, parcel.place), *parcel.arrays)


def _portable(error: BaseException) -> BaseException:
    """The error, or one with its text if it does not survive the way between processes."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:  # whatever the class of a user's error raises when it is pickled
        return RuntimeError(f"{type(error).__name__}: {error}")


class RayCluster:
    """Where workers run: `Runtime(plan, cluster=RayCluster())`. Needs the package ray; starts it here unless it is started.

    resources: what each worker asks for, by its name, as {"train": {"CPU": 1, "GPU": 1}}; one CPU by default. strategy: of the
    placement group that chooses nodes, one of STRATEGIES. patience: seconds to wait for nodes that have these resources.
    """

    def __init__(self, resources: Mapping[str, Mapping[str, float]] | None = None, strategy: str = "PACK",
                 patience: float = 30.0) -> None:
        if strategy not in STRATEGIES:
            raise ArgumentError(f"RayCluster: there is no strategy {strategy!r}", hint=f"choose one of {', '.join(STRATEGIES)}")
        if resources is not None and not isinstance(resources, Mapping):
            raise ArgumentTypeError(f"RayCluster: resources is {type_in_words(resources)}",
                                    hint='a dict by worker: {"train": {"CPU": 1}}')
        if isinstance(patience, bool) or not isinstance(patience, (int, float)) or not patience > 0:
            raise ArgumentError(f"RayCluster: patience is a number of seconds above 0, not {patience!r}")
        self.resources, self.strategy, self.patience = dict(resources or {}), strategy, patience

    def hire(self, plan: Plan) -> Crew:
        """The processes of the workers of a plan. Raises ActorError if Ray is not installed, or has no place for them."""
        return Crew(plan, self)


class Crew:
    """The processes of a plan's workers; they end with `dismiss`, or when nobody holds this object."""

    def __init__(self, plan: Plan, cluster: RayCluster) -> None:
        self.plan = plan
        self.ray = _ray()
        self.names = [name for name in dict.fromkeys([task.worker for task in plan.tasks.values()]) if name]
        strangers = [name for name in cluster.resources if name not in self.names]
        if strangers:
            raise ArgumentError(f"RayCluster: resources names {strangers[0]!r}, which is no worker of plan {plan.name}",
                                hint=f"its workers: {', '.join(self.names) or 'none'}")
        if not self.ray.is_initialized():
            self.ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        asked = [dict(cluster.resources.get(name, {"CPU": 1})) for name in self.names]
        self._group = self._places(asked, cluster)
        self.endpoints = {name: self._endpoint(name, at, one) for at, (name, one) in enumerate(zip(self.names, asked))}
        self._end = weakref.finalize(self, _dismiss, self.ray, list(self.endpoints.values()), self._group)

    def _places(self, asked: list[dict[str, float]], cluster: RayCluster) -> Any:
        if not asked:
            return None
        group = self.ray.util.placement_group(asked, strategy=cluster.strategy)
        if not group.wait(cluster.patience):
            _dismiss(self.ray, [], group)
            raise ActorError(f"plan {self.plan.name}: Ray found no place for the workers {', '.join(self.names)} in "
                             f"{cluster.patience:g} s; they ask for {asked}, and the cluster has "
                             f"{self.ray.available_resources().get('CPU', 0):g} CPUs free",
                             hint='RayCluster(resources={"worker": {"CPU": 0.5}}) asks for less')
        return group

    def _endpoint(self, name: str, at: int, asked: dict[str, float]) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        tasks = {one: task for one, task in self.plan.tasks.items() if task.worker == name}
        functions = {one: self.plan.functions.get(task.function or "") for one, task in tasks.items()}
        others = {key: value for key, value in asked.items() if key not in ("CPU", "GPU")}
        hosted = self.ray.remote(Endpoint).options(
            num_cpus=asked.get("CPU", 0), num_gpus=asked.get("GPU", 0), resources=others,
            max_concurrency=4,  # a call that waits in collect, and others beside it
            scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=at))
        return hosted.remote(name, str(self.plan), functions, [kind_named(task.kind) for task in tasks.values()])

    def prepare(self, batches: int | None, numbered: Functions) -> None:
        """Makes the actors of a run in all processes."""
        plan = self.plan
        self._all([end.prepare.remote(batches, {task: function for task, function in numbered.items()
                                                if plan.tasks[task].worker == name}, self.endpoints)
                   for name, end in self.endpoints.items()])

    def begin(self, part: Part) -> list[Collector]:
        """Starts the run in all processes; the threads that bring what comes from them to `part`, the one of this process."""
        self._all([end.begin.remote() for end in self.endpoints.values()])
        return [Collector(self, name, part) for name in self.names]

    def _all(self, calls: list[Any]) -> None:
        try:
            self.ray.get(calls)
        except self.ray.exceptions.RayError as error:
            raise ActorError(f"plan {self.plan.name}: the workers cannot be prepared: {error}",
                             hint="functions of workers are pickled, and tedsl is installed on every node") from error

    def send(self, worker: str, parcel: Parcel) -> None:
        """Brings a parcel to a worker."""
        deliver(self.endpoints[worker], parcel)

    def lost(self, worker: str, part: Part) -> tuple[str, int]:
        """The actor of a worker that is gone which was the farthest behind, and the act that it was to do, as others know."""
        heard = Counter(part.heard)
        calls = [end.heard.remote() for name, end in self.endpoints.items() if name != worker]
        done, _ = self.ray.wait(calls, num_returns=len(calls), timeout=1.0) if calls else ([], [])
        for call in done:
            try:
                answer: dict[str, int] = self.ray.get(call)
            except self.ray.exceptions.RayError:
                continue  # gone too
            heard.update(answer)
        return farthest_behind(self.plan, worker, heard)

    def dismiss(self) -> None:
        """Ends the processes."""
        self._end()


class Collector(Thread):
    """Brings what a worker has for this process, until its part of the run has ended. outcome: how; None: it was lost."""

    def __init__(self, crew: Crew, worker: str, part: Part) -> None:
        super().__init__(name=f"from_{worker}", daemon=True)
        self.crew, self.worker, self.part = crew, worker, part
        self.outcome: Outcome | None = None

    def run(self) -> None:
        crew, bus = self.crew, self.part.bus
        try:
            while self.outcome is None and not bus.stopping:
                parcels, self.outcome = crew.ray.get(crew.endpoints[self.worker].collect.remote())
                for parcel in parcels:
                    self.part.receive(parcel)
            if self.outcome is not None and self.outcome.failure is not None:
                bus.fail(self.outcome.failure)
        except crew.ray.exceptions.RayActorError as error:
            if not bus.stopping:
                actor, act = crew.lost(self.worker, self.part)
                lost = ActorError(f"worker {self.worker} is lost: its process, or the node that it ran on, has ended")
                lost.__cause__ = error
                bus.fail(Failure(actor, act, lost))
        except BaseException as error:  # what cannot be read here, or the end of the interpreter
            bus.fail(Failure(self.crew.names[0], 0, error))

    def records(self) -> dict[str, Record]:
        """What the actors there did, by the clock of this process: both parts began at once."""
        if self.outcome is None:
            return {}
        for one in self.outcome.records.values():
            one.shift(self.part.begin - self.outcome.begin)
        return dict(self.outcome.records)


def farthest_behind(plan: Plan, worker: str, heard: Mapping[str, int]) -> tuple[str, int]:
    """The task of a worker which has done the fewest batches, and how many acts it has done.

    heard: by register description, how many messages about it other processes had from there. What only tasks of that worker
    see is not known.
    """
    acts: dict[str, int] = {}
    batch: dict[str, float] = {}
    speed = rates(plan)
    for name, register in plan.registers.items():
        others = [one for one in (register.producer, *register.consumers) if plan.tasks[one].worker != worker]
        own = [one for one in (register.producer, *register.consumers) if plan.tasks[one].worker == worker]
        messages = heard.get(name, 0)
        if register.producer in own:
            done = messages // max(len(others), 1)
            ends = [register.producer] if others else []
        else:
            done, ends = messages // max(len(own), 1), own
        for task in ends:
            acts[task] = max(acts.get(task, 0), done)
            batch[task] = max(batch.get(task, 0.0), float(done / speed[name]))
    first = min(acts, key=lambda task: batch[task], default=next(n for n, t in plan.tasks.items() if t.worker == worker))
    return first, acts.get(first, 0)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ActorError("workers in other processes need the package ray", hint="pip install 'tedsl[ray]'") from None
    return ray


def _dismiss(ray: Any, endpoints: list[Any], group: Any) -> None:
    if ray.is_initialized():
        for endpoint in endpoints:
            ray.kill(endpoint)
        if group is not None:
            ray.util.remove_placement_group(group)


__all__ = ["Crew", "RayCluster", "farthest_behind"]
