"""`Runtime`: the memory of a plan, and runs of it on threads of this process and, with a cluster, of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import Lock, Thread
from time import perf_counter_ns
from typing import Any

from tedsl.actors.plan.check import rates
from tedsl.actors.plan.description import Plan, in_one_process
from tedsl.actors.plan.memory import MemoryPlan, memory_of, new_chunks
from tedsl.actors.plan.stalls import check_plan
from tedsl.actors.running.cores import held_cores
from tedsl.actors.running.part import Part, allocated
from tedsl.actors.running.ray_cluster import Crew, RayCluster
from tedsl.actors.running.report import Report
from tedsl.errors import ActorError, ArgumentError, ArgumentTypeError, type_in_words


class Runtime:
    """Runs a plan. Memory is allocated once, here; actors wait for registers, and no scheduler decides for them.

    cluster: where the tasks of workers run (`Pipeline.at`), in processes of their own; their functions, feeds and fetches are
    pickled. None: all tasks run in this process. cores: by thread of this process, the numbers of the processors that it may
    run on, as {"train": {0, 1}}; what its functions do on other threads, as parallel kernels, is not held there.

    Raises PlanError for a plan that cannot run, ArgumentError for chunks, a cluster or cores that do not fit it, DeviceError
    for a device that is not here.
    """

    def __init__(self, plan: Plan, *, chunks: Mapping[str, Any] | None = None, cluster: RayCluster | None = None,
                 cores: Mapping[str, Collection[int]] | None = None) -> None:
        if cluster is not None and not isinstance(cluster, RayCluster):
            raise ArgumentTypeError(f"Runtime: cluster is {type_in_words(cluster)}", hint="actors.RayCluster()")
        self.plan, self.cluster = check_plan(plan), cluster
        self._cores = self._checked_cores(cores or {})
        self._crew: Crew | None = None
        self._plan = plan if cluster is not None else in_one_process(plan)
        self._running = Lock()
        self.memory: MemoryPlan = memory_of(self._plan, "")
        given = chunks or {}
        strangers = [device for device in given if device not in self.memory.chunks]
        if strangers:
            raise ArgumentError(f"plan {plan.name} uses no memory on {strangers[0]!r}, for which a chunk is given",
                                hint=f"it uses memory on {', '.join(self.memory.chunks) or 'no device'}")
        wanted = {device: size for device, size in self.memory.chunks.items() if device not in given}
        self.chunks = {**new_chunks(plan, wanted), **given}
        for device, size in self.memory.chunks.items():
            if len(self.chunks[device]) < size:
                raise ArgumentError(f"plan {plan.name} needs {size} bytes on {device}, and its chunk has "
                                    f"{len(self.chunks[device])}")
        self._arrays = allocated(self._plan, self.memory, self.chunks)

    def run(self, batches: int | None = None, feed: Any = None, fetch: Any = None) -> Report:
        """Runs `batches` batches of each source; None: until the sources end.

        feed: in place of the function of a source, feed(number, *outputs); fetch: of a sink, fetch(number, *inputs). Functions,
        or dicts of them by task. Raises ActorError, with the actor, the batch and the cause, if a function raises;
        KeyboardInterrupt if it raises that.
        """
        self._check(batches)
        if not self._running.acquire(blocking=False):
            raise ActorError(f"plan {self.plan.name}: a run of this Runtime is under way, in the same registers",
                             hint="make a Runtime for each run that goes on beside another")
        try:
            return self._run(batches, feed, fetch)
        finally:
            self._running.release()

    def _run(self, batches: int | None, feed: Any, fetch: Any) -> Report:
        functions: dict[str, Any] = {name: self.plan.functions.get(task.function or "")
                                     for name, task in self.plan.tasks.items()}
        numbered = self._numbered("feed", feed, "source") | self._numbered("fetch", fetch, "sink")
        self._check_functions(functions | numbered)
        if self.cluster is not None and self._crew is None:
            self._crew = self.cluster.hire(self.plan)
        crew = self._crew
        try:
            if crew is not None:
                crew.prepare(batches, numbered)
            part = Part(self._plan, "", self._arrays, functions, numbered, batches, crew.send if crew else None,
                        self._cores)
            collectors = crew.begin(part) if crew is not None else []
            stuck = part.run(list(collectors))
            self._raise(part, [one.outcome.incomplete for one in collectors if one.outcome], stuck)
        except BaseException:
            self.close()  # what other processes still do is of no use
            raise
        records = part.records
        for one in collectors:
            records |= one.records()
        return Report(self.plan, {name: records[name] for name in self.plan.tasks}, part.begin, perf_counter_ns())

    def close(self) -> None:
        """Ends the processes of workers; the next run starts others."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.dismiss()

    def _raise(self, part: Part, others: list[tuple[str, int, int] | None], stuck: list[Thread]) -> None:
        failure = part.bus.failure
        if failure is not None:
            if isinstance(failure.error, KeyboardInterrupt):
                raise KeyboardInterrupt from failure.error
            raise ActorError(f"plan {self.plan.name}: {failure.actor} failed in its act {failure.number} (the first is 0): "
                             f"{type(failure.error).__name__}: {failure.error}") from failure.error
        if stuck:
            raise ActorError(f"plan {self.plan.name}: {stuck[0].name} does not return")
        incomplete = next((one for one in (part.incomplete, *others) if one is not None), None)
        if incomplete is not None:
            name, step, steps = incomplete
            raise ActorError(f"plan {self.plan.name}: the batches ended when {name} had {step} of {steps} steps",
                             hint=f"the number of batches is to be a multiple of {steps}")

    def _checked_cores(self, cores: Any) -> dict[str, frozenset[int]]:
        threads = sorted({task.thread or name for name, task in self.plan.tasks.items()})
        if not isinstance(cores, Mapping):
            raise ArgumentTypeError(f"Runtime: cores is {type_in_words(cores)}", hint='a dict by thread: {"train": {0, 1}}')
        for thread in cores:
            if thread not in threads:
                raise ArgumentError(f"Runtime: cores names {thread!r}, which is no thread of plan {self.plan.name}; there are: "
                                    f"{', '.join(threads)}")
        return {thread: held_cores(f"Runtime: cores of {thread}", numbers) for thread, numbers in cores.items()}

    def _check(self, batches: int | None) -> None:
        if batches is not None and (not isinstance(batches, int) or isinstance(batches, bool) or batches < 0):
            raise ArgumentError(f"run: batches is {batches!r}; it is an int of at least 0, or None")
        for name, rate in rates(self.plan).items():
            if batches is not None and (batches * rate).denominator != 1:
                raise ArgumentError(f"run: {batches} batches make {batches * rate} of {name}",
                                    hint=f"the number of batches is to be a multiple of {rate.denominator}")

    def _numbered(self, what: str, given: Any, kind: str) -> dict[str, Callable[..., Any]]:
        """The functions of the number of the batch, by task."""
        if given is None:
            return {}
        names = [name for name, task in self.plan.tasks.items() if task.kind == kind]
        if callable(given) and len(names) == 1:
            given = {names[0]: given}
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(f"run: {what} is {type_in_words(given)}",
                                    hint=f"a dict of functions by {kind}: {', '.join(names)}")
        strangers = [name for name in given if name not in names]
        if strangers:
            raise ArgumentError(f"run: {what} names {strangers[0]!r}, which is no {kind}; there are: "
                                f"{', '.join(names) or 'none'}")
        wrong = [name for name, function in given.items() if not callable(function)]
        if wrong:
            raise ArgumentTypeError(f"run: {what} of {wrong[0]} is {type_in_words(given[wrong[0]])}",
                                    hint="it is called with arrays")
        return dict(given)

    def _check_functions(self, functions: Mapping[str, Any]) -> None:
        missing = [name for name, task in self.plan.tasks.items()
                   if task.kind in ("normal", "source") and functions.get(name) is None and self.plan.outputs(task)
                   and any(not one.is_control for one in self.plan.outputs(task))]
        if missing:
            raise ArgumentError(f"plan {self.plan.name}: {missing[0]} has no function that fills its outputs",
                                hint="pass it when the task is made, or as feed for a source")

    def __repr__(self) -> str:
        return f"<Runtime of {self.plan!r}: {sum(self.memory.chunks.values())} bytes>"
