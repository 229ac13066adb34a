"""Reports: what one launch of a kernel did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tedsl.errors import OptionError
from tedsl.record import record
from tedsl.runtime.devices.code import LoopLine
from tedsl.simulate.memory.traffic import SECTOR, WARP
from tedsl.simulate.models import Duration, Model, duration
from tedsl.simulate.reports.access import Access, Traffic, access_of, traffic_of
from tedsl.simulate.reports.findings import UNINITIALISED, Finding
from tedsl.simulate.reports.stages import StageReport, stages_of
from tedsl.simulate.reports.table import listing_of, markup_of, text_of

if TYPE_CHECKING:
    from tedsl.simulate.machine.run import Run


@record
class KernelReport:
    """What one launch did.

    blocks: that ran; fewer than those of the grid in the mode "sampled", whose counts are scaled to all of them. instructions:
    of warps, by class. threads: those of threads, all together. branches, divergent: of warps, and of warps whose threads went
    apart. accesses: the instructions that access memory. lines: instructions of warps by number of the file and
    line of the program, where the text of the kernel says them. stages: what each stage has of all that; their sums are those
    of the kernel. source: the lines that `lines` counts. duration: by the model of the device. wall: seconds that the
    simulation took.
    """

    kernel: str
    device: int
    blocks: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    mode: str
    instructions: dict[str, int]
    threads: int
    branches: int
    divergent: int
    accesses: tuple[Access, ...]
    lines: dict[tuple[int, int], int]
    stages: tuple[StageReport, ...]
    source: tuple[LoopLine, ...]
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
        return traffic_of(self.accesses, space, kind, memory)

    def stage(self, name: str) -> StageReport:
        """Returns what a stage did; "" is what belongs to none. OptionError for a name that is none."""
        found = {stage.name: stage for stage in self.stages}
        if name not in found:
            known = ", ".join(filter(None, found)) or "none"
            raise OptionError(f"the kernel {self.kernel} has no stage {name!r}; it has: {known}")
        return found[name]

    def listing(self) -> str:
        """Returns the printed loops with the instructions of warps that each line took; "" where the text names no lines."""
        return listing_of(self)

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return markup_of(self)


def report_of(run: Run, device: int, model: Model, mode: str, wall: float, source: tuple[LoopLine, ...] = ()) -> KernelReport:
    """Returns the report of a run that has ended, or that was stopped. source: the lines that its text names."""
    classes, lines = Counter[str](), Counter[tuple[int, int]]()
    threads = 0
    for block, count in zip(run.program.blocks, run.block_counts):
        threads += sum(block.classes.values()) * count.threads
        for kind, number in block.classes.items():
            classes[kind] += number * count.warps
        for line, _, number in block.lines:
            lines[line] += number * count.warps
    warps = run.block_counts[0].warps
    sites = zip(run.program.sites.all, run.site_counts)
    accesses = tuple(access_of(run.program.name, site, count) for site, count in sites if count.requests)
    passes = sum(access.traffic.passes for access in accesses)
    sectors = sum(access.traffic.moved for access in accesses) // SECTOR
    blocks = run.grid[0] * run.grid[1] * run.grid[2]
    found = run.findings.all
    if len(run.numbers) < blocks:  # memory that the other blocks of this or an earlier launch would have written is none
        found = [one for one in found if one.kind != UNINITIALISED]
    return KernelReport(
        run.program.name, device, len(run.numbers), run.grid, run.block, mode,
        {kind: count for kind, count in classes.items() if count}, threads,
        sum(count.branched for count in run.block_counts), sum(count.split for count in run.block_counts), accesses,
        {line: number for line, number in lines.items() if line != (0, 0) and number}, stages_of(run, accesses, source), source,
        tuple(found), duration(model, blocks, warps, classes, passes, sectors), wall)
