"""Copies that go on while a thread does other things: cp.async from global to shared memory.

The bytes are read when the copy is issued and arrive when its thread waits for it. Until then what it writes counts as not
written: who reads it, reads uninitialised memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tedsl.record import record
from tedsl.simulate.instructions.operation import Array, unknown
from tedsl.simulate.machine.accesses import address_reader
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.ptx.syntax import Instruction, Number

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Site, Sites

Made = tuple[Callable[[Frame], None], str]


@record(eq=False)
class Flight:
    """A copy that has not arrived: `values` for the threads `lanes`, which committed it as their group number `groups`."""

    site: Site
    lanes: Array
    groups: Array
    addresses: Array
    values: tuple[Array, ...]


def copy(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The steps of cp.async, cp.async.commit_group, cp.async.wait_group and cp.async.wait_all."""
    rest = instruction.parts[2:]
    if instruction.parts[1] != "async":
        raise unknown(instruction)
    if rest == ("commit_group",):
        return (lambda frame: frame.run.flights.commit(frame)), "copy"
    if rest == ("wait_all",):
        return (lambda frame: frame.run.flights.wait(frame, -1)), "copy"
    if rest == ("wait_group",) and isinstance(instruction.operands[0], Number):
        kept = instruction.operands[0].value
        return (lambda frame: frame.run.flights.wait(frame, kept)), "copy"
    return _issued(instruction, names, sites)


def _issued(instruction: Instruction, names: Names, sites: Sites) -> Made:
    target, source, size, *less = instruction.operands
    known = {"ca", "cg", "shared", "shared__cta", "global", "L2__64B", "L2__128B", "L2__256B"}
    if not set(instruction.parts[2:]) <= known or not isinstance(size, Number) or len(less) > 1:
        raise unknown(instruction)
    reads, writes = sites.copy_of(instruction)
    to, of = address_reader(target, names, instruction), address_reader(source, names, instruction)
    kept = names.reader(less[0], "u32", instruction) if less else None

    def run(frame: Frame) -> None:
        registers = frame.registers
        taken = np.broadcast_to(kept(registers), frame.count) if kept is not None else None
        values = _read(frame, reads, np.broadcast_to(of(registers), frame.count), taken)
        frame.run.flights.issue(frame, writes, np.broadcast_to(to(registers), frame.count), values)

    return run, "copy"


def _read(frame: Frame, site: Site, addresses: Array, taken: Array | None) -> list[Array]:
    """The elements of the source; zeros behind the bytes that are taken. Threads that take none read nothing."""
    if taken is None or (taken >= site.size).all():
        return [np.broadcast_to(value, frame.count) for value in frame.run.memory.load(frame, site, addresses)]
    values = [np.zeros(frame.count, f"u{site.width}") for _ in range(site.count)]
    some = np.flatnonzero(taken > 0)
    if some.size:
        inner = Frame(frame.run, frame.batch, frame.registers, some if frame.lanes is None else frame.lanes[some])
        for number, value in enumerate(frame.run.memory.load(inner, site, addresses[some])):
            values[number][some] = np.where(taken[some] >= (number + 1) * site.width, value, 0)
    return values


class Flights:
    """The copies of a batch that have not arrived."""

    def __init__(self, count: int) -> None:
        self._groups = np.zeros(count, np.int64)  # that each thread has committed
        self._flying: list[Flight] = []

    def issue(self, frame: Frame, site: Site, addresses: Array, values: list[Array]) -> None:
        """Begins a copy of these threads."""
        lanes = np.arange(frame.batch.count) if frame.lanes is None else frame.lanes
        self._flying.append(Flight(site, lanes, self._groups[lanes], addresses, tuple(values)))
        frame.run.memory.begin_copy(frame, site, addresses)

    def commit(self, frame: Frame) -> None:
        """Ends the group of copies that each of these threads has issued."""
        self._groups[slice(None) if frame.lanes is None else frame.lanes] += 1

    def wait(self, frame: Frame, kept: int) -> None:
        """Lets copies of these threads arrive: but for the last `kept` groups; all, committed or not, if that is negative."""
        waits = np.zeros(frame.batch.count, bool)
        waits[slice(None) if frame.lanes is None else frame.lanes] = True
        flying, self._flying = self._flying, []
        for flight in flying:
            arrives = waits[flight.lanes] & ((flight.groups < self._groups[flight.lanes] - kept) | (kept < 0))
            if arrives.any():
                inner = Frame(frame.run, frame.batch, frame.registers, flight.lanes[arrives])
                frame.run.memory.store(inner, flight.site, flight.addresses[arrives], [v[arrives] for v in flight.values])
            if not arrives.all():
                rest = ~arrives
                self._flying.append(Flight(flight.site, flight.lanes[rest], flight.groups[rest], flight.addresses[rest],
                                           tuple(value[rest] for value in flight.values)))
