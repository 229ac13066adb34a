"""When registers are in use: the memory of a plan over time, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.actors.machine.clock import Span
from tedsl.actors.machine.kinds import kind_named
from tedsl.actors.plan.description import Plan, Task
from tedsl.actors.plan.memory import memory_of
from tedsl.display.markup import Markup
from tedsl.display.timeline import Bar, timeline_of
from tedsl.record import record


@record(eq=False)
class Lifetime:
    """Register `number` of a description holds batch `batch` from `begin`, when it begins to be filled, to `end`, when the last
    who reads it, or what is made of its arrays, is done.
    """

    register: str
    number: int
    batch: int
    begin: float
    end: float


def lifetimes(plan: Plan, spans: Sequence[Span]) -> list[Lifetime]:
    """The lifetimes of all registers with memory of their own, by what each actor did: of `Schedule.spans` or `Report.spans()`.

    Batches of which not all acts are among the spans are left out. Registers of a description are taken in turn.
    """
    acts = {(span.actor, span.number): span for span in spans}
    found = []
    for name in memory_of(plan).blocks:
        register, producer = plan.registers[name], plan.tasks[plan.registers[name].producer]
        filled = {span.number // _acts_of_output(producer) for span in spans if span.actor == producer.name}
        for batch in sorted(filled):
            first = acts.get((producer.name, batch * _acts_of_output(producer)))
            end = _end(plan, name, batch, acts)
            if first is not None and end is not None:
                found.append(Lifetime(name, batch % register.count, batch, first.begin, end))
    return found


def memory_over_time(plan: Plan, spans: Sequence[Span]) -> Markup:
    """The lifetimes as SVG: a row for each register with its address, a bar for each batch in it."""
    blocks = memory_of(plan).blocks
    bars = []
    for one in lifetimes(plan, spans):
        block = blocks[one.register]
        row = f"{block.device}+{block.offset + one.number * block.stride} {one.register}[{one.number}] {block.stride} B"
        bars.append(Bar(row, one.begin, one.end, str(one.batch)))
    return timeline_of(bars, f"Registers of {plan.name} in use")


def _acts_of_output(task: Task) -> int:
    """The acts that fill one output."""
    kind = kind_named(task.kind)
    return len(task.inputs) if kind.one_by_one else task.steps if kind.gathers else 1


def _acts_of_input(task: Task) -> int:
    """The acts that one input stays for."""
    kind = kind_named(task.kind)
    return len(task.inputs) if kind.one_by_one else task.steps if kind.spreads else 1


def _end(plan: Plan, name: str, batch: int, acts: dict[tuple[str, int], Span]) -> float | None:
    """When a batch of a register is given back by all; None if that is not known."""
    producer = plan.tasks[plan.registers[name].producer]
    last = acts.get((producer.name, (batch + 1) * _acts_of_output(producer) - 1))
    ends: list[float | None] = [last.end if last is not None else None]
    for reader in [plan.tasks[one] for one in plan.registers[name].consumers]:
        count = _acts_of_input(reader)
        ends.append(_read(reader, [acts.get((reader.name, batch * count + step)) for step in range(count)], ends[0]))
        lends = kind_named(reader.kind).borrows and name == reader.inputs[0]
        for out in reader.outputs:
            if lends or plan.registers[out].in_place == name:
                ends += [_end(plan, out, each, acts) for each in range(batch * count, (batch + 1) * count)]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _read(reader: Task, group: list[Span | None], filled: float | None) -> float | None:
    """When a task is done with an input that it reads in these acts. An input-wise task reads each in one act: which is not
    recorded, so that it is the first that begins when the input is there.
    """
    if kind_named(reader.kind).one_by_one and filled is not None:
        return next((span.end for span in group if span is not None and span.begin >= filled), None)
    return group[-1].end if group[-1] is not None else None
