"""Reports: what one launch of a kernel did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tedsl.record import record
from tedsl.simulate.machine.counters import SiteCount
from tedsl.simulate.machine.sites import Site
from tedsl.simulate.memory.traffic import SECTOR, WARP
from tedsl.simulate.models import Duration, Model, duration
from tedsl.simulate.reports.findings import Finding
from tedsl.simulate.reports.table import markup_of, text_of

if TYPE_CHECKING:
    from tedsl.simulate.machine.run import Run


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


@record
class KernelReport:
    """What one launch did.

    instructions: of warps, by class. threads: those of threads, all together. branches, divergent: of warps, and of warps whose
    threads went apart. accesses: the instructions that access memory. lines: instructions of warps by number of the file and
    line of the program, where the text of the kernel says them. duration: by the model of the device. wall: seconds that the
    simulation took.
    """

    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    mode: str
    instructions: dict[str, int]
    threads: int
    branches: int
    divergent: int
    accesses: tuple[Access, ...]
    lines: dict[tuple[int, int], int]
    findings: tuple[Finding, ...]
    duration: Duration
    wall: float

    @property
    def activity(self) -> float:
        """The part of the threads of warps that took part in their instructions."""
        total = sum(self.instructions.values())
        return self.threads / (WARP * total) if total else 1.0

    @property
    def barriers(self) -> int:
        """How many barriers warps met."""
        return self.instructions.get("barrier", 0)

    def traffic(self, space: str, kind: str = "", memory: str = "") -> Traffic:
        """Returns the accesses to a space, of one kind or of all, to the array called `memory` or to all."""
        return sum((a.traffic for a in self.accesses if a.space == space and kind in ("", a.kind)
                    and (not memory or memory in a.memory)), Traffic())

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return markup_of(self)


def report_of(run: Run, device: int, model: Model, mode: str, wall: float) -> KernelReport:
    """Returns the report of a run that has ended, or that was stopped by what it found."""
    classes, lines = Counter[str](), Counter[tuple[int, int]]()
    threads = warps = 0
    for block, count in zip(run.program.blocks, run.block_counts):
        threads += sum(block.classes.values()) * count.threads
        for kind, number in block.classes.items():
            classes[kind] += number * count.warps
        for source, number in block.lines:
            lines[source] += number * count.warps
    warps = run.block_counts[0].warps
    sites = zip(run.program.sites.all, run.site_counts)
    accesses = tuple(_access(run.program.name, site, count) for site, count in sites if count.requests)
    passes = sum(access.traffic.passes for access in accesses)
    sectors = sum(access.traffic.moved for access in accesses) // SECTOR
    blocks = run.grid[0] * run.grid[1] * run.grid[2]
    return KernelReport(
        run.program.name, device, run.grid, run.block, mode, {kind: count for kind, count in classes.items() if count}, threads,
        sum(count.branched for count in run.block_counts), sum(count.split for count in run.block_counts), accesses,
        {source: number for source, number in lines.items() if source != (0, 0) and number}, tuple(run.findings.all),
        duration(model, blocks, warps, classes, passes, sectors), wall)


def _access(kernel: str, site: Site, count: SiteCount) -> Access:
    traffic = Traffic(count.requests, count.asked, count.sectors * SECTOR, count.passes, count.ideal, count.degree)
    space = "global" if site.space in ("generic", "const") else site.space
    names = tuple(sorted(name.removeprefix(f"{kernel}_") for name in count.regions))
    return Access(names, site.instruction.text, site.instruction.line, site.instruction.source, space, site.kind, traffic)
