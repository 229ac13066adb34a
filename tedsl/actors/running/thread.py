"""Threads of actors: each takes messages, its own first, and does the acts that are possible."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any, Protocol

from tedsl.actors.machine.actor import Act, Actor, Message
from tedsl.actors.running.report import Record
from tedsl.errors import ActorError
from tedsl.record import record


@record(eq=False)
class Failure:
    """What ended a run: the exception of an actor in its act `number`."""

    actor: str
    number: int
    error: BaseException


class Home(Protocol):
    """Where actors run: a thread of this process, or another process."""

    def send(self, message: Message | None) -> None:
        """Brings a message to an actor there. None: the run is to stop."""


class Bus:
    """Brings messages to the threads of the actors that they are for, and tells all of them to stop."""

    def __init__(self) -> None:
        self.homes: dict[str, Home] = {}
        self.failure: Failure | None = None
        self.stopping = False

    def fail(self, failure: Failure) -> None:
        """Ends the run; the first failure is the one that is told."""
        if self.failure is None:
            self.failure = failure
        self.stop()

    def stop(self) -> None:
        """Every thread ends after its present act."""
        self.stopping = True
        for thread in set(self.homes.values()):
            thread.send(None)


class ActorThread(threading.Thread):
    """Runs actors one act at a time. functions: what their acts call, of the number of the act and the arrays.

    cores: the processors of the machine that it may run on; None: all that the process may use.
    """

    def __init__(self, name: str, actors: list[Actor], bus: Bus, functions: Mapping[str, Callable[..., Any] | None],
                 records: Mapping[str, Record], cores: Collection[int] | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self.actors = {actor.name: actor for actor in actors}
        self.inbox: SimpleQueue[Message | None] = SimpleQueue()
        self.local: deque[Message] = deque()
        self.send = self.inbox.put
        self.cores = cores
        self.bus, self.functions, self.records = bus, functions, records
        self.acting: Act | None = None
        bus.homes |= dict.fromkeys(self.actors, self)

    def run(self) -> None:
        """Until every actor is done, or the run is to stop."""
        try:
            if self.cores is not None:
                os.sched_setaffinity(0, self.cores)  # of this thread alone
            self._run()
        except BaseException as error:  # also the end of the interpreter: nobody else would tell of it
            act = self.acting
            self.bus.fail(Failure(act.actor.name if act else next(iter(self.actors)), act.number if act else 0, error))

    def _run(self) -> None:
        ready: deque[Actor] = deque()
        for actor in self.actors.values():
            if actor.batches == 0:
                actor.stop()
                self._post(actor.flush())
            self._look(actor, ready)
        open_actors = [actor for actor in self.actors.values() if not actor.is_done]
        while not self.bus.stopping:
            if self.local:
                self._take(self.local.popleft(), ready)
            elif not self.inbox.empty():
                self._take(self.inbox.get(), ready)
            elif ready:
                self._act(ready.popleft(), ready)
            else:
                open_actors = [actor for actor in open_actors if not actor.is_done]
                if not open_actors:
                    return
                self._take(self.inbox.get(), ready)

    def _take(self, message: Message | None, ready: deque[Actor]) -> None:
        if message is None:
            return
        actor = self.actors[message.to]
        actor.receive(message)
        if actor.messages:
            self._post(actor.flush())
        self._look(actor, ready)

    def _post(self, messages: list[Message]) -> None:
        homes = self.bus.homes
        for message in messages:
            home = homes[message.to]
            if home is self:
                self.local.append(message)
            else:
                home.send(message)

    @staticmethod
    def _look(actor: Actor, ready: deque[Actor]) -> None:
        if actor.ready and actor not in ready:
            ready.append(actor)

    def _act(self, actor: Actor, ready: deque[Actor]) -> None:
        act = self.acting = actor.begin()
        begin = perf_counter_ns()
        try:
            more = act.run(self.functions.get(actor.name))
        except StopIteration:
            if actor.task.inputs:
                raise
            more = False
        for device in actor.devices:
            device.sync()  # what others read, or fill again, is done
        if more is not None:
            self._check_result(more, act)
        if more is False and not actor.task.inputs:
            self._post(actor.cancel(act))
        else:
            end = perf_counter_ns()
            messages = actor.finish(act)
            can_read, can_write = actor.read_ready, actor.write_ready
            self.records[actor.name].add(act.number, begin, end, can_read, can_write)
            self._post(messages)
            if can_read and can_write and not actor.zombie and actor not in ready:
                ready.append(actor)
        self.acting = None

    @staticmethod
    def _check_result(result: Any, act: Act) -> None:
        own = hasattr(result, "shape") and not any(result is one for register in act.outputs for one in register.arrays)
        if own and act.outputs:
            raise ActorError(f"the function of {act.actor.name} returned an array of its own",
                             hint="it fills the arrays of its outputs: out[...] = x")
