"""Threads of actors: each takes messages, its own first, and does the acts that are possible.

To wake a thread takes longer than a short act (10 to 25 µs on two processors), and Python runs one thread at a time. A kernel
whose acts have been short is therefore lent: whoever has nothing else to do acts for it, and its own thread sleeps on.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice, repeat
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any, Protocol

from tedsl.actors.machine.actor import Act, Actor, Message
from tedsl.actors.running.report import Record
from tedsl.errors import ActorError
from tedsl.record import record

_SHORT = 20_000  # nanoseconds of an act, which to wake a thread would double
_SHORT_ACTS = 16  # in a row, after which an actor is lent
_AT_ONCE = 16  # messages and acts of a lent thread, after which whoever acts for it looks for its own


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
        self._lent: deque[ActorThread] = deque()  # those for which messages wait

    def lend(self, thread: ActorThread) -> None:
        """Leaves the messages of a lent thread to the next one of this process that has nothing else to do."""
        self._lent.append(thread)

    def help(self) -> bool:
        """Acts a little for those who wait at present, and returns whether there were any."""
        count = len(self._lent)
        for thread in islice(self._waiting(), count):
            thread.act_for()
        return count > 0

    def wake(self) -> None:
        """Wakes those who wait, since nobody will be there to act for them."""
        for thread in self._waiting():
            thread.wake()

    def _waiting(self) -> Iterator[ActorThread]:
        with suppress(IndexError):  # another thread may take the last one
            while True:
                yield self._lent.popleft()

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

    cores: the processors of the machine that it may run on; None: all that the process may use. lends: whether other threads
    may act for its actors while these have short acts.
    """

    def __init__(self, name: str, actors: list[Actor], bus: Bus, functions: Mapping[str, Callable[..., Any] | None],
                 records: Mapping[str, Record], cores: Collection[int] | None = None, lends: bool = False) -> None:
        super().__init__(name=name, daemon=True)
        self.actors = {actor.name: actor for actor in actors}
        self.inbox: deque[Message | None] = deque()
        self.local: deque[Message] = deque()
        self.cores = cores
        self.bus, self.functions, self.records = bus, functions, records
        self.acting: Act | None = None
        self._ready: deque[Actor] = deque()
        self._open = actors
        self._turn = threading.Lock()  # of whoever takes its messages and acts
        self._asleep = False
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._lends = lends and cores is None and not any(actor.devices for actor in actors)
        self._shown = self._to_show = _SHORT_ACTS  # short acts after which it is lent, and those of them that are to come
        bus.homes |= dict.fromkeys(self.actors, self)

    @property
    def is_lent(self) -> bool:
        """Whether other threads may act for its actors at present."""
        return self._lends and not self._to_show

    @property
    def _ended(self) -> bool:
        return self.bus.stopping or not self._open

    def run(self) -> None:
        """Until every actor is done, or the run is to stop."""
        try:
            if self.cores is not None:
                os.sched_setaffinity(0, self.cores)  # of this thread alone
            with self._turn:
                self._begin()
                self._work()
            while not self._ended:
                self._sleep()
                with self._turn:
                    self._work()
        except BaseException as error:  # also the end of the interpreter: nobody else would tell of it
            self._fail(error)
        finally:
            self.bus.wake()

    def send(self, message: Message | None) -> None:
        """Brings a message, and wakes the thread."""
        self.inbox.append(message)
        self.wake()

    @property
    def _has_work(self) -> bool:
        return bool(self.inbox or self.local or self._ready)

    def wake(self) -> None:
        """Wakes the thread if it sleeps and has something to do."""
        if self._asleep and self._has_work:
            self._asleep = False
            self._bell.put(None)  # a second one, of two wakers at once, makes the thread look once more

    def act_for(self) -> None:
        """Does a little of what the thread would do if it woke, on the calling thread, while it is lent; wakes it otherwise."""
        if self.is_lent and self._turn.acquire(blocking=False):
            try:
                self._work(_AT_ONCE)
            except BaseException as error:
                self._fail(error)
            finally:
                self._turn.release()
        if self._ended:
            self._bell.put(None)
        elif not self.is_lent or self._turn.locked():
            self.wake()
        elif self._has_work:
            self.bus.lend(self)

    def _sleep(self) -> None:
        """Waits for messages, and acts meanwhile for others."""
        self._asleep = True  # before it looks: who sends after the look wakes
        while not self._has_work and not self._ended:
            if not self.bus.help():
                self._bell.get()
                self._asleep = True
        self._asleep = False

    def _fail(self, error: BaseException) -> None:
        act = self.acting
        self.bus.fail(Failure(act.actor.name if act else next(iter(self.actors)), act.number if act else 0, error))

    def _begin(self) -> None:
        for actor in self.actors.values():
            if actor.batches == 0:
                actor.stop()
                self._post(actor.flush())
            self._look(actor)

    def _work(self, most: int | None = None) -> None:
        """Takes messages and acts while there are any; the caller has the turn. most: of both together, for another thread,
        which ends when this one is lent no longer; None: all, for itself.
        """
        for _ in repeat(None) if most is None else repeat(None, most):
            if self.bus.stopping or (most is not None and not self.is_lent):
                break
            if self.local:
                self._take(self.local.popleft())
            elif self.inbox:
                self._take(self.inbox.popleft())
            elif self._ready:
                self._act(self._ready.popleft())
            else:
                break
        self._open = [actor for actor in self._open if not actor.is_done]

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        actor = self.actors[message.to]
        actor.receive(message)
        if actor.messages:
            self._post(actor.flush())
        self._look(actor)

    def _post(self, messages: list[Message]) -> None:
        homes = self.bus.homes
        for message in messages:
            home = homes[message.to]
            if home is self:
                self.local.append(message)
            elif isinstance(home, ActorThread) and home.is_lent:
                home.inbox.append(message)
                self.bus.lend(home)
            else:
                home.send(message)

    def _look(self, actor: Actor) -> None:
        if actor.ready and actor not in self._ready:
            self._ready.append(actor)

    def _act(self, actor: Actor) -> None:
        act = self.acting = actor.begin()
        if not self.is_lent:
            self.bus.wake()  # before an act that may be long, beside which they run
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
            self._show(end - begin)
            messages = actor.finish(act)
            can_read, can_write = actor.read_ready, actor.write_ready
            self.records[actor.name].add(act.number, begin, end, can_read, can_write)
            self._post(messages)
            if can_read and can_write and not actor.zombie and actor not in self._ready:
                self._ready.append(actor)
        self.acting = None

    def _show(self, nanoseconds: int) -> None:
        """Counts short acts. After a long one while it was lent, which kept another from its own, it has to show twice as many.
        """
        if nanoseconds > _SHORT:
            self._shown *= 1 if self._to_show else 2
            self._to_show = self._shown
        elif self._to_show:
            self._to_show -= 1

    @staticmethod
    def _check_result(result: Any, act: Act) -> None:
        own = hasattr(result, "shape") and not any(result is one for register in act.outputs for one in register.arrays)
        if own and act.outputs:
            raise ActorError(f"the function of {act.actor.name} returned an array of its own",
                             hint="it fills the arrays of its outputs: out[...] = x")
