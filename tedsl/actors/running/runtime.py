"""`Runtime`: the memory of a plan, and runs of it on threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic, perf_counter_ns
from typing import Any

from tedsl.actors.machine.actor import Register, actors_of
from tedsl.actors.plan.check import rates
from tedsl.actors.plan.description import Plan
from tedsl.actors.plan.memory import MemoryPlan, arrays_at, memory_of, new_chunk
from tedsl.actors.plan.stalls import check_plan
from tedsl.actors.running.report import Record, Report
from tedsl.actors.running.thread import ActorThread, Bus
from tedsl.errors import ActorError, ArgumentError, ArgumentTypeError, type_in_words

_PATIENCE = 5.0  # seconds that a run which ends early waits for functions to return


class Runtime:
    """Runs a plan. Memory is allocated once, here; actors wait for registers, and no scheduler decides for them.

    Raises PlanError for a plan that cannot run.
    """

    def __init__(self, plan: Plan, *, chunks: Mapping[str, Any] | None = None) -> None:
        self.plan = check_plan(plan)
        self._running = Lock()
        self.memory: MemoryPlan = memory_of(plan)
        given = chunks or {}
        strangers = [device for device in given if device not in self.memory.chunks]
        if strangers:
            raise ArgumentError(f"plan {plan.name} uses no memory on {strangers[0]!r}, for which a chunk is given",
                                hint=f"it uses memory on {', '.join(self.memory.chunks) or 'no device'}")
        self.chunks = {device: given[device] if device in given else new_chunk(size) for device,
                       size in self.memory.chunks.items()}
        for device, size in self.memory.chunks.items():
            if len(self.chunks[device]) < size:
                raise ArgumentError(f"plan {plan.name} needs {size} bytes on {device}, and its chunk has "
                                    f"{len(self.chunks[device])}")
        self._arrays = {name: [arrays_at(self.chunks[block.device], plan.registers[name], block, number)
                               for number in range(block.count)] for name, block in self.memory.blocks.items()}

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
        registers = {name: [Register(one, number, self._arrays[name][number] if name in self._arrays else [])
                            for number in range(one.count)] for name, one in self.plan.registers.items()}
        actors = actors_of(self.plan, registers, batches)
        functions |= self._numbered("feed", feed, actors, "source")
        functions |= self._numbered("fetch", fetch, actors, "sink")
        self._check_functions(functions)
        bus, begin = Bus(), perf_counter_ns()
        records = {name: Record(name, begin) for name in actors}
        by_thread: dict[str, list[Any]] = {}
        for name, actor in actors.items():
            by_thread.setdefault(self.plan.tasks[name].thread or name, []).append(actor)
        threads = [ActorThread(name, members, bus, functions, records) for name, members in by_thread.items()]
        self._wait(threads, bus)
        if bus.failure is not None:
            failure = bus.failure
            if isinstance(failure.error, KeyboardInterrupt):
                raise KeyboardInterrupt from failure.error
            raise ActorError(f"plan {self.plan.name}: {failure.actor} failed in its act {failure.number} (the first is 0): "
                             f"{type(failure.error).__name__}: {failure.error}") from failure.error
        incomplete = [actor for actor in actors.values() if actor.is_incomplete]
        if incomplete:
            one = incomplete[0]
            raise ActorError(f"plan {self.plan.name}: the batches ended when {one.name} had {one.step} of {one.task.steps} "
                             "steps",
                             hint=f"the number of batches is to be a multiple of {one.task.steps}")
        return Report(self.plan, records, begin, perf_counter_ns())

    def _check(self, batches: int | None) -> None:
        if batches is not None and (not isinstance(batches, int) or isinstance(batches, bool) or batches < 0):
            raise ArgumentError(f"run: batches is {batches!r}; it is an int of at least 0, or None")
        for name, rate in rates(self.plan).items():
            if batches is not None and (batches * rate).denominator != 1:
                raise ArgumentError(f"run: {batches} batches make {batches * rate} of {name}",
                                    hint=f"the number of batches is to be a multiple of {rate.denominator}")

    def _numbered(self, what: str, given: Any, actors: Mapping[str, Any], kind: str) -> dict[str, Callable[..., Any]]:
        """Functions of the number of the batch, as functions of arrays."""
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
        return {name: _with_number(function, actors[name]) for name, function in given.items()}

    def _check_functions(self, functions: Mapping[str, Any]) -> None:
        missing = [name for name, task in self.plan.tasks.items()
                   if task.kind in ("normal", "source") and functions.get(name) is None and self.plan.outputs(task)
                   and any(not one.is_control for one in self.plan.outputs(task))]
        if missing:
            raise ArgumentError(f"plan {self.plan.name}: {missing[0]} has no function that fills its outputs",
                                hint="pass it when the task is made, or as feed for a source")

    def _wait(self, threads: list[ActorThread], bus: Bus) -> None:
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive() and not bus.stopping:
                    thread.join(0.2)
        except BaseException:  # Ctrl-C
            bus.stop()
            self._join(threads)
            raise
        if bus.stopping:
            stuck = self._join(threads)
            if stuck and bus.failure is None:
                raise ActorError(f"plan {self.plan.name}: {stuck[0].name} does not return")

    @staticmethod
    def _join(threads: list[ActorThread]) -> list[ActorThread]:
        end = monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - monotonic()))
        return [thread for thread in threads if thread.is_alive()]

    def __repr__(self) -> str:
        return f"<Runtime of {self.plan!r}: {sum(self.memory.chunks.values())} bytes>"


def _with_number(function: Callable[..., Any], actor: Any) -> Callable[..., Any]:
    return lambda *arrays: function(actor.acts, *arrays)
