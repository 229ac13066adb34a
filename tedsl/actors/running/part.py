"""The tasks of a plan that one process runs: their registers, actors and threads.

A register whose producer runs in another process is mirrored here: its arrays are those that came with the message, and giving
it back is a message to that process. Messages between two processes are numbered, and taken in that order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from threading import Lock, Thread
from time import monotonic, perf_counter_ns
from typing import Any

import numpy

from tedsl.actors.machine.actor import Actor, Message, Register
from tedsl.actors.plan.check import lenders
from tedsl.actors.plan.description import Plan
from tedsl.actors.plan.memory import MemoryPlan, arrays_at
from tedsl.actors.running.report import Record
from tedsl.actors.running.thread import ActorThread, Bus
from tedsl.record import record
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.module import Module

_PATIENCE = 5.0  # seconds that a run which ends early waits for functions to return
_LOOK = 0.05  # seconds after which threads are woken while the one that would act for them is in a long act
Functions = Mapping[str, Callable[..., Any] | None]


@record(eq=False)
class Parcel:
    """A message from one process to another. number: of those from `sender` to this receiver, from 0.

    to: the actor; name: the register description; place: which of its registers; -1: the end of them. arrays: of a register
    that was filled.
    """

    sender: str
    number: int
    to: str
    name: str
    place: int
    arrays: tuple[Any, ...]


class Elsewhere:
    """Another process, as a home of actors. send: brings parcels there."""

    def __init__(self, part: Part, worker: str, send: Callable[[str, Parcel], None]) -> None:
        self.part, self.worker, self._send = part, worker, send
        self._lock = Lock()
        self._sent = 0

    def send(self, message: Message | None) -> None:
        """Sends a message; what ends a run (None) is told by those who wait for the processes."""
        if message is None:
            return
        register, arrays = message.register, ()
        if register is not None and self.part.is_here(register.description.producer):
            readers = self.part.inside(register.description.consumers, self.worker)
            arrays = tuple(register.arrays) if message.to == readers[0] else ()  # they go there once
        with self._lock:  # the number and the order of sending agree
            self._send(self.worker, Parcel(self.part.worker, self._sent, message.to, message.name,
                                           -1 if register is None else register.number, arrays))
            self._sent += 1


class Part:
    """What one process does in one run. worker: its name, "" for the process that the run was called in.

    arrays: of the registers that its tasks fill. functions: of its tasks; numbered: those called with the number of the act
    first. send: brings a parcel to another process. cores: by thread, the processors of the machine that it may run on.
    """

    def __init__(self, plan: Plan, worker: str, arrays: Mapping[str, list[list[Any]]], functions: Functions,
                 numbered: Functions, batches: int | None, send: Callable[[str, Parcel], None] | None = None,
                 cores: Mapping[str, Collection[int]] | None = None) -> None:
        self.plan, self.worker = plan, worker
        self.registers = {name: [Register(one, number, arrays[name][number] if name in arrays else [])
                                 for number in range(one.count)] for name, one in plan.registers.items()}
        tasks = {name: task for name, task in plan.tasks.items() if task.worker == worker}
        self.actors = {name: Actor(plan, task, self.registers, None if task.inputs else batches)
                       for name, task in tasks.items()}
        called = {**functions, **{name: _with_number(function, self.actors[name]) for name, function in numbered.items()
                                  if name in self.actors and function is not None}}
        self.bus, self.begin = Bus(), perf_counter_ns()
        self.records = {name: Record(name, self.begin) for name in self.actors}
        by_thread: dict[str, list[Actor]] = {}
        for name, actor in self.actors.items():
            by_thread.setdefault(tasks[name].thread or name, []).append(actor)
        self.threads = [ActorThread(name, members, self.bus, called, self.records, (cores or {}).get(name),
                                    lends=[actor.name for actor in members] == [name] and waits_for_nobody(called.get(name)))
                        for name, members in by_thread.items()]
        self._mirrors(arrays)
        for other in dict.fromkeys([task.worker for task in plan.tasks.values()]):
            if other != worker and send is not None:
                home = Elsewhere(self, other, send)
                self.bus.homes |= dict.fromkeys(self.inside(plan.tasks, other), home)
        self._lock = Lock()
        self._taken: Counter[str] = Counter()  # by sender: the parcels that were handed on
        self._early: dict[tuple[str, int], Parcel] = {}
        self.heard: Counter[str] = Counter()  # by register description: messages of other processes about it

    def _mirrors(self, arrays: Mapping[str, list[list[Any]]]) -> None:
        """Gives memory of its own to what comes from elsewhere and is changed here; all else is read where it arrives."""
        self._changed: set[str] = set()
        for register in self.plan.registers.values():
            if register.in_place and self.is_here(register.producer):
                self._changed |= {one.name for one in lenders(self.plan, register) if not self.is_here(one.producer)}
        for name in self._changed:
            for one in self.registers[name]:
                one.hold([numpy.empty(spec.shape, str(spec.dtype)) for spec in one.description.specs])

    def is_here(self, task: str) -> bool:
        """Whether a task runs in this process."""
        return self.plan.tasks[task].worker == self.worker

    def inside(self, tasks: Any, worker: str) -> list[str]:
        """Those of some tasks that run in the process of a worker."""
        return [name for name in tasks if self.plan.tasks[name].worker == worker]

    def receive(self, parcel: Parcel) -> None:
        """Takes a parcel of another process; one that overtook others waits for them."""
        with self._lock:
            self._early[parcel.sender, parcel.number] = parcel
            while (due := self._early.pop((parcel.sender, self._taken[parcel.sender]), None)) is not None:
                self._taken[parcel.sender] += 1
                self._hand(due)

    def _hand(self, parcel: Parcel) -> None:
        register = None
        if parcel.place >= 0:
            register = self.registers[parcel.name][parcel.place]
            self.heard[parcel.name] += 1
            if parcel.arrays and parcel.name in self._changed:
                for target, source in zip(register.arrays, parcel.arrays):
                    target[...] = source
            elif parcel.arrays:
                register.hold(list(parcel.arrays))
        self.bus.homes[parcel.to].send(Message(parcel.to, register, parcel.name))

    def run(self, also: list[Thread]) -> list[Thread]:
        """Starts the threads, and others that take part, and returns when all have ended; those that did not in time."""
        threads: list[Thread] = [*self.threads, *also]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive() and not self.bus.stopping:
                    thread.join(_LOOK)
                    for one in self.threads:
                        one.wake()
        except BaseException:  # Ctrl-C
            self.bus.stop()
            _join(threads)
            raise
        stuck = _join(threads) if self.bus.stopping else []
        if not stuck:
            self.bus.homes.clear()  # no circle of objects keeps what the run remembers until garbage is collected
        return stuck

    @property
    def incomplete(self) -> tuple[str, int, int] | None:
        """An actor that ended in the middle of what belongs together, its steps so far, and of how many."""
        return next(((one.name, one.step, one.task.steps) for one in self.actors.values() if one.is_incomplete), None)


def waits_for_nobody(function: Callable[..., Any] | None) -> bool:
    """Whether a function is a kernel, or there is none: others of Python may wait for what another actor does."""
    return function is None or isinstance(function, Module) or isinstance(getattr(function, "__self__", function), CheckedCall)


def allocated(plan: Plan, memory: MemoryPlan, chunks: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    """The arrays of registers, by description and number, in the chunks of the devices."""
    return {name: [arrays_at(chunks[block.device], plan.registers[name], block, number) for number in range(block.count)]
            for name, block in memory.blocks.items()}


def _join(threads: list[Thread]) -> list[Thread]:
    end = monotonic() + _PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - monotonic()))
    return [thread for thread in threads if thread.is_alive()]


def _with_number(function: Callable[..., Any], actor: Actor) -> Callable[..., Any]:
    return lambda *arrays: function(actor.acts, *arrays)
