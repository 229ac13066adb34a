"""What the stages of a schedule have of the counts of a kernel.

The text of a kernel says for each instruction the line of the printed loops that it was written for (`.loc`), and each line
belongs to the stage whose memory its statement writes. An instruction that serves several statements, such as an address that
two of them need, stands where it was needed first, or belongs to none. So do loops around several stages, and barriers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tedsl.record import record
from tedsl.runtime.devices.code import LoopLine
from tedsl.simulate.memory.traffic import WARP
from tedsl.simulate.reports.access import Access, Traffic, traffic_of

if TYPE_CHECKING:
    from tedsl.simulate.machine.run import Run


@record
class StageReport:
    """What one stage did in one launch; its fields are those of a KernelReport. name: of the memory that it writes; "" for what
    belongs to no stage. lines: of the printed loops.
    """

    name: str
    lines: tuple[int, ...]
    instructions: dict[str, int]
    threads: int
    branches: int
    divergent: int
    accesses: tuple[Access, ...]

    @property
    def activity(self) -> float:
        """The part of the threads of warps that took part in the instructions of the stage."""
        total = sum(self.instructions.values())
        return self.threads / (WARP * total) if total else 1.0

    def traffic(self, space: str, kind: str = "", memory: str = "") -> Traffic:
        """Returns the accesses to a space, of one kind or of all, to the array called `memory` or to all."""
        return traffic_of(self.accesses, space, kind, memory)


@dataclass
class _Sum:
    """The counts of a stage so far."""

    lines: set[int] = field(default_factory=set)
    instructions: Counter[str] = field(default_factory=Counter)
    threads: int = 0
    branches: int = 0
    divergent: int = 0
    accesses: list[Access] = field(default_factory=list)


def stages_of(run: Run, accesses: Sequence[Access], source: Sequence[LoopLine]) -> tuple[StageReport, ...]:
    """Returns what each stage did, in the order of the loops, and last what belongs to none. Without `source`, nothing."""
    if not source:
        return ()
    sums: dict[str, _Sum] = {}

    def of(line: int) -> _Sum:
        found = sums.setdefault(source[line - 1].stage if 0 < line <= len(source) else "", _Sum())
        found.lines.add(line)
        return found

    for block, count in zip(run.program.blocks, run.block_counts):
        for (_, line), kind, number in block.lines:
            stage = of(line)
            stage.instructions[kind] += number * count.warps
            stage.threads += number * count.threads
        if block.last is not None:
            stage = of(block.last.source[1])
            stage.branches += count.branched
            stage.divergent += count.split
    for access in accesses:
        of(access.source[1]).accesses.append(access)
    order = sorted(sums, key=lambda name: (not name, min(sums[name].lines)))
    return tuple(_report(name, sums[name]) for name in order if sums[name].instructions.total())


def _report(name: str, found: _Sum) -> StageReport:
    instructions = {kind: count for kind, count in found.instructions.items() if count}
    return StageReport(name, tuple(sorted(found.lines - {0})), instructions, found.threads, found.branches, found.divergent,
                       tuple(found.accesses))
