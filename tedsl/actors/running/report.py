"""What the actors of a run did: how long each acted, and for what it waited."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from tedsl.actors.machine.clock import Span, simulate, spans_svg
from tedsl.actors.plan.description import Plan
from tedsl.actors.plan.stalls import with_counts
from tedsl.display.page import fragment
from tedsl.record import record

KEPT = 4096  # acts of each actor that are remembered one by one: runs of any length take the same memory


class Record:
    """What one actor did so far; times in nanoseconds."""

    def __init__(self, actor: str, begin: int) -> None:
        self.actor = actor
        self.acts = 0
        self.acting = 0
        self.waited = {"input": 0, "output": 0, "thread": 0}
        self.recent: deque[tuple[int, int, int]] = deque(maxlen=KEPT)
        self._last, self._why = begin, "input"

    def add(self, number: int, begin: int, end: int, read_ready: bool, write_ready: bool) -> None:
        """An act from `begin` to `end`, after which the actor waits for what is not ready."""
        self.acts += 1
        self.acting += end - begin
        self.waited[self._why] += begin - self._last
        self.recent.append((number, begin, end))
        self._last, self._why = end, "input" if not read_ready else "output" if not write_ready else "thread"

    def shift(self, by: int) -> None:
        """Moves all times, as between clocks of two processes."""
        self.recent = deque([(number, begin + by, end + by) for number, begin, end in self.recent], KEPT)


@record(eq=False)
class Share:
    """How an actor spent the run, in seconds: acting, waiting for inputs, for free outputs, for its thread."""

    actor: str
    acts: int
    acting: float
    for_input: float
    for_output: float
    for_thread: float


class Report:
    """A run that is over. seconds: from its begin to its end; shares: by actor. Prints as a table."""

    def __init__(self, plan: Plan, records: dict[str, Record], begin: int, end: int) -> None:
        self.plan, self._records, self._begin = plan, records, begin
        self.seconds = (end - begin) * 1e-9
        self.shares = {name: Share(name, one.acts, one.acting * 1e-9, one.waited["input"] * 1e-9, one.waited["output"] * 1e-9,
                                   one.waited["thread"] * 1e-9) for name, one in records.items()}

    @property
    def bottleneck(self) -> str:
        """The actor that acted for most of the run."""
        return max(self.shares.values(), key=lambda share: share.acting).actor

    def spans(self) -> list[Span]:
        """The last acts of each actor, in seconds from the begin of the run."""
        found = [Span(name, number, (begin - self._begin) * 1e-9, (end - self._begin) * 1e-9)
                 for name, one in self._records.items() for number, begin, end in one.recent]
        return sorted(found, key=lambda span: span.begin)

    def timeline(self, path: str | None = None) -> str:
        """The last acts as events of Chrome's trace format (JSON), which is written to `path` too if one is given.

        Shown by chrome://tracing and Perfetto: a row for each thread.
        """
        threads = list(dict.fromkeys([self.plan.tasks[name].thread or name for name in self.plan.tasks]))
        events: list[dict[str, Any]] = [{"name": "thread_name", "ph": "M", "pid": 0, "tid": at, "args": {"name": thread}}
                                        for at, thread in enumerate(threads)]
        rows = {name: threads.index(task.thread or name) for name, task in self.plan.tasks.items()}
        events += [{"name": span.actor, "ph": "X", "pid": 0, "tid": rows[span.actor],
                    "ts": 1e6 * span.begin, "dur": 1e6 * (span.end - span.begin), "args": {"act": span.number}}
                   for span in self.spans()]
        made = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        if path is not None:
            Path(path).write_text(made)
        return made

    def _repr_html_(self) -> str:
        return fragment(f"Run of {self.plan.name}, {self.seconds:.3f} s", spans_svg(self.spans()))

    def more_registers(self) -> dict[str, float]:
        """For each register of which one more would shorten the run by over 2 %: by what factor, best first.

        Found by runs under a virtual clock with the durations that were measured.
        """
        taken = {name: [(end - begin) * 1e-9 for _, begin, end in one.recent] for name, one in self._records.items()
                 if one.recent}
        durations: Any = {name: (lambda number, times=times: times[number % len(times)]) for name, times in taken.items()}
        batches = min(max((len(times) for times in taken.values()), default=0), 200)
        now = simulate(self.plan, durations, batches).end
        gains = {name: now / simulate(with_counts(self.plan, {name: register.count + 1}), durations, batches).end
                 for name, register in self.plan.registers.items()} if now else {}
        return {name: gain for name, gain in sorted(gains.items(), key=lambda item: -item[1]) if gain > 1.02}

    def __str__(self) -> str:
        width = max(map(len, [*self.shares, "actor"]))
        lines = [f"{'actor':{width}}   acts   acting  for input  for output  for thread   mean"]
        for share in self.shares.values():
            parts = [f"{100 * part / max(self.seconds, 1e-12):6.1f} %" for part in
                     (share.acting, share.for_input, share.for_output, share.for_thread)]
            mean = share.acting / max(share.acts, 1)
            lines.append(f"{share.actor:{width}} {share.acts:>6} {parts[0]}   {parts[1]}    {parts[2]}    {parts[3]} "
                         f"{1e6 * mean:9.1f} µs")
        lines.append(f"{self.seconds:.3f} s; the bottleneck is {self.bottleneck}")
        for name, gain in list(self.more_registers().items())[:1]:
            count = self.plan.registers[name].count
            lines.append(f"{count + 1} registers of {name} in place of {count} would make it {gain:.2f} times as fast")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Report of {self.plan.name}: {self.seconds:.3f} s, bottleneck {self.bottleneck}>"
