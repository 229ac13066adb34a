"""Accesses to memory, as reports show them."""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.record import record
from tedsl.simulate.machine.counters import SiteCount
from tedsl.simulate.machine.sites import Site
from tedsl.simulate.memory.traffic import SECTOR


@record
class Traffic:
    """Accesses to memory. requests: of warps. asked: bytes that threads asked for. moved: bytes of global memory, in whole
    sectors. passes: over the banks of shared memory; ideal: how many there would be without conflicts; conflict: the most
    words of one bank that the threads of a warp asked for at once, 0 where that does not matter.
    """

    requests: int = 0
    asked: int = 0
    moved: int = 0
    passes: int = 0
    ideal: int = 0
    conflict: int = 0

    @property
    def efficiency(self) -> float:
        """The bytes asked for by those moved; more than 1 where threads ask for the same."""
        return self.asked / self.moved if self.moved else 1.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.requests + other.requests, self.asked + other.asked, self.moved + other.moved,
                       self.passes + other.passes, self.ideal + other.ideal, max(self.conflict, other.conflict))


@record
class Access:
    """The accesses of one instruction to memory of `space` ("global", "shared", "local"); kind: "load", "store", "atomic".

    memory: the names of the arrays that it accessed: those of parameters, and of stages that have memory of their own.
    """

    memory: tuple[str, ...]
    instruction: str
    line: int
    source: tuple[int, int]
    space: str
    kind: str
    traffic: Traffic


def traffic_of(accesses: Iterable[Access], space: str, kind: str = "", memory: str = "") -> Traffic:
    """Returns the accesses to a space, of one kind or of all, to the array called `memory` or to all."""
    return sum((a.traffic for a in accesses if a.space == space and kind in ("", a.kind)
                and (not memory or memory in a.memory)), Traffic())


def access_of(kernel: str, site: Site, count: SiteCount) -> Access:
    """Returns the accesses of a site, as they were counted."""
    traffic = Traffic(count.requests, count.asked, count.sectors * SECTOR, count.passes, count.ideal, count.degree)
    space = "global" if site.space in ("generic", "const") else site.space
    names = tuple(sorted(name.removeprefix(f"{kernel}_") for name in count.regions))
    return Access(names, site.instruction.text, site.instruction.line, site.instruction.source, space, site.kind, traffic)
