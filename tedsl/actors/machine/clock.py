"""A plan run by a virtual clock: what each actor does when, for given durations of its acts, without doing the work."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.actors.machine.actor import Act, Actor, actors_of, empty_registers
from tedsl.actors.plan.description import Plan
from tedsl.display.markup import Markup
from tedsl.display.page import fragment
from tedsl.display.timeline import Bar, timeline_of
from tedsl.errors import ArgumentError
from tedsl.record import record

Duration = float | Callable[[int], float]


@record(eq=False)
class Span:
    """Act `number` of an actor, from `begin` to `end`."""

    actor: str
    number: int
    begin: float
    end: float


def spans_svg(spans: Sequence[Span]) -> Markup:
    """Acts as bars, a row for each actor, labelled by the number of the batch from 1 on."""
    return timeline_of([Bar(span.actor, span.begin, span.end, str(span.number + 1)) for span in spans],
                       "What each actor does when")


@record(eq=False)
class Schedule:
    """What a run under the virtual clock did. spans: the acts by their begin. stalled: the actors that wait for ever."""

    spans: tuple[Span, ...]
    stalled: tuple[str, ...]
    run_ahead: int  # the most acts that a source was before the slowest of the ends that it leads to

    @property
    def end(self) -> float:
        return max((span.end for span in self.spans), default=0.0)

    def _repr_html_(self) -> str:
        return fragment(f"A run of {self.end:g} by the virtual clock", spans_svg(self.spans))

    def of(self, actor: str) -> list[Span]:
        """The acts of one actor, in order."""
        return [span for span in self.spans if span.actor == actor]

    def period(self, actor: str) -> float:
        """The time from one act of an actor to the next, over the second half of the run."""
        spans = self.of(actor)
        half = len(spans) // 2
        return (spans[-1].begin - spans[half].begin) / max(len(spans) - 1 - half, 1)


class Clock:
    """A run of a plan by events. Threads with several tasks run those that are ready in the order in which they became so."""

    def __init__(self, plan: Plan, durations: Mapping[str, Duration], batches: int) -> None:
        self.actors = actors_of(plan, empty_registers(plan), batches)
        self.durations = durations
        self.now = 0.0
        self.spans: list[Span] = []
        self.running: list[tuple[float, int, Act]] = []
        self.threads: dict[str, deque[Actor]] = {task.thread or name: deque() for name, task in plan.tasks.items()}
        self.thread_of = {name: task.thread or name for name, task in plan.tasks.items()}
        self.free = set(self.threads)
        self.ahead = 0
        self.leads_to = {self.actors[name]: [self.actors[end] for end in _ends(plan, name)]
                         for name, task in plan.tasks.items() if not task.inputs}

    def run(self) -> Schedule:
        for actor in self.actors.values():
            actor.stop() if actor.batches == 0 else None
            self._deliver(actor.flush())
            self._look(actor)
        self._start()
        while self.running:
            self.now, _, act = heapq.heappop(self.running)
            self._ended(act)
            while self.running and self.running[0][0] == self.now:
                self._ended(heapq.heappop(self.running)[2])
            self._start()
        stalled = tuple([name for name, actor in self.actors.items() if not actor.is_done])
        return Schedule(tuple(sorted(self.spans, key=lambda span: span.begin)), stalled, self.ahead)

    def _ended(self, act: Act) -> None:
        self.free.add(self.thread_of[act.actor.name])
        self._deliver(act.actor.finish(act))
        self._look(act.actor)

    def _deliver(self, messages: list[Any]) -> None:
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            actor = self.actors[message.to]
            actor.receive(message)
            waiting += actor.flush()
            self._look(actor)

    def _look(self, actor: Actor) -> None:
        queue = self.threads[self.thread_of[actor.name]]
        if actor.ready and actor not in queue:
            queue.append(actor)

    def _start(self) -> None:
        for thread in [thread for thread in self.threads if thread in self.free]:
            queue = self.threads[thread]
            while queue and thread in self.free:
                actor = queue.popleft()
                if actor.ready:
                    self.free.discard(thread)
                    self._begin(actor)
        for source, ends in self.leads_to.items():
            self.ahead = max(self.ahead, source.acts + source.busy - min(end.acts for end in ends))

    def _begin(self, actor: Actor) -> None:
        act = actor.begin()
        given = self.durations.get(actor.name, 0.0)
        takes = given(act.number) if callable(given) else given
        if takes < 0:
            raise ArgumentError(f"the duration of act {act.number} of {actor.name} is {takes}: it is at least 0")
        self.spans.append(Span(actor.name, act.number, self.now, self.now + takes))
        heapq.heappush(self.running, (self.now + takes, len(self.spans), act))


def _ends(plan: Plan, source: str) -> list[str]:
    """The tasks that a task leads to, itself included, whose results nobody reads."""
    found, stack = {source}, [source]
    while stack:
        for register in plan.outputs(plan.tasks[stack.pop()]):
            new = [] if register.primed else [name for name in register.consumers if name not in found]
            found.update(new)
            stack += new
    return [name for name in plan.tasks if name in found
            and not any(register.consumers for register in plan.outputs(plan.tasks[name]) if not register.primed)]


def simulate(plan: Plan, durations: Mapping[str, Duration], batches: int) -> Schedule:
    """When each actor acts in a run of `batches`, if its acts take `durations`: numbers, or functions of the number of the act.

    Messages take no time; tasks that are left out take none. Raises ArgumentError for names that are no tasks.
    """
    strangers = sorted(set(durations) - set(plan.tasks))
    if strangers:
        raise ArgumentError(f"simulate: there is no task {strangers[0]!r}; tasks: {', '.join(plan.tasks)}")
    return Clock(plan, durations, batches).run()
