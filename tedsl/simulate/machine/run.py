"""Runs a kernel: batches of blocks, and in each the blocks of the program that its threads come to.

Of the threads that wait somewhere those run that stand at the lowest block of the program, all together, until they go apart or
come to a barrier. Threads that went apart at a branch so meet again where its sides join. A barrier lets threads go when no
thread can run any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.machine.asynchronous import Flights
from tedsl.simulate.machine.batch import Batch, Size, coordinates
from tedsl.simulate.machine.counters import BlockCount, SiteCount
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.memories import Memories
from tedsl.simulate.machine.program import CompiledBlock, Program, merged
from tedsl.simulate.memory.region import Region
from tedsl.simulate.memory.space import Space
from tedsl.simulate.ptx.flow import BARRIER, BRANCH, NEXT
from tedsl.simulate.reports.findings import DIVERGENT_BARRIER, Findings

THREADS = 16384  # that run side by side, so that their registers stay in the caches of the processor
SAMPLE = 2048  # threads of a sample: as many as a processor of a device holds


class Run:
    """One launch of a program. arguments: the bytes of its parameters. watched: accesses are noted and counted.

    contested: the regions that the kernel may read and write; None if that may be any. sampled: some blocks run, spread
    over the grid, and what is counted is scaled to all of them.
    """

    def __init__(self, program: Program, grid: Size, block: Size, arguments: bytes, shared: int, memory: Space, *,
                 watched: bool = True, checked: bool = False, contested: set[Region] | None = None,
                 sampled: bool = False) -> None:
        self.program, self.grid, self.block = program, grid, block
        self.arguments, self.dynamic_shared, self.global_memory = arguments, shared, memory
        self.watched, self.contested = watched, contested
        self.numbers = _blocks(grid, block, sampled)
        self.findings = Findings(program.name, checked)
        self.site_counts = [SiteCount() for _ in program.sites.all]
        self.block_counts = [BlockCount() for _ in program.blocks]
        self.memory: Memories
        self.flights: Flights
        self._batch: Batch
        self._registers: list[Array] = []
        self._scratch: list[Array] = []

    def parameter(self, name: str, offset: int, width: int) -> Array:
        """Returns `width` bytes of a parameter as an unsigned number."""
        start = self.program.parameter(name).offset + offset
        return np.frombuffer(self.arguments[start:start + width], f"u{width}")

    def special(self, name: str) -> Array | None:
        """Returns the value of a special register that tells of the launch or the machine; None if it is not known."""
        values: Mapping[str, int] = {
            "%dynamic_smem_size": self.dynamic_shared, "%smid": 0, "%nsmid": 1, "%clock": 0, "%clock64": 0, "%globaltimer": 0,
            "%total_smem_size": self.dynamic_shared + sum(v.size for v in self.program.shared.values())}
        return np.array([values[name]], np.uint64) if name in values else None

    def run(self) -> None:
        """Runs the blocks of the grid."""
        together = max(1, THREADS // (self.block[0] * self.block[1] * self.block[2]))
        with np.errstate(all="ignore"):
            for first in range(0, len(self.numbers), together):
                self._run_batch(Batch(self.numbers[first:first + together], self.grid, self.block))
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        if len(self.numbers) < blocks:
            factor = blocks / len(self.numbers)
            for block_count in self.block_counts:
                block_count.scale(factor)
            for site_count in self.site_counts:
                site_count.scale(factor)

    def _run_batch(self, batch: Batch) -> None:
        self._batch = batch
        self.memory = Memories(self, self.program, batch, self.dynamic_shared)
        self.flights = Flights(batch.count)
        self._registers = [np.zeros(1, kind) for kind in self.program.names.types]
        self._scratch = list(self._registers)
        ready: dict[int, Array | None] = {0: None}
        waiting: list[tuple[int, Array | None]] = []
        while ready or waiting:
            if not ready:
                ready, waiting = self._let_go(waiting), []
                continue
            number = min(ready)
            lanes = ready.pop(number)
            block = self.program.blocks[number]
            for following, some in self._ran(number, block, lanes):
                if block.end == BARRIER:
                    waiting.append((number, some))
                else:
                    self._put(ready, following, some)

    def _put(self, ready: dict[int, Array | None], number: int, lanes: Array | None) -> None:
        other = ready.get(number)
        if other is not None and lanes is not None:
            lanes = np.sort(np.concatenate((other, lanes)), kind="stable")
            lanes = None if lanes.size == self._batch.count else lanes
        ready[number] = lanes

    def _ran(self, number: int, block: CompiledBlock, lanes: Array | None) -> Sequence[tuple[int, Array | None]]:
        """Runs a block of the program, and returns where its threads go."""
        if lanes is None:
            frame = Frame(self, self._batch, self._registers, None)
        else:
            frame = Frame(self, self._batch, self._scratch, lanes)
            for register in block.taken:
                value = self._registers[register]
                self._scratch[register] = value if value.size == 1 else value[lanes]
        for step in block.steps:
            step(frame)
        goes = self._goes(block, frame)
        if lanes is not None:
            for register in block.left:
                self._registers[register] = merged(self._registers[register], self._scratch[register], lanes, self._batch.count)
        if self.watched:
            self._count(self.block_counts[number], block, frame, goes)
        return goes

    def _goes(self, block: CompiledBlock, frame: Frame) -> list[tuple[int, Array | None]]:
        """Where these threads go: those whose predicate holds to the target of a branch, or to their end."""
        if block.guard is None:
            if block.end == BRANCH:
                return [(block.target, frame.lanes)]
            return [(block.following, frame.lanes)] if block.end in (NEXT, BARRIER) else []
        register, negated = block.guard
        holds = frame.registers[register] != negated
        target: list[tuple[int, Array | None]] = [(block.target, frame.lanes)] if block.end == BRANCH else []
        if holds.all():
            return target
        if not holds.any():
            return [(block.following, frame.lanes)]
        yes, no = np.flatnonzero(holds), np.flatnonzero(~holds)
        if frame.lanes is not None:
            yes, no = frame.lanes[yes], frame.lanes[no]
        rest: tuple[int, Array | None] = (block.following, no)
        return [(block.target, yes), rest] if block.end == BRANCH else [rest]

    def _count(self, count: BlockCount, block: CompiledBlock, frame: Frame, goes: Sequence[tuple[int, Array | None]]) -> None:
        warps = frame.warps()
        count.warps += warps
        count.threads += frame.count
        if block.guard is not None:
            count.branched += warps
            if len(goes) == 2:
                count.split += sum(Frame(self, self._batch, [], some).warps() for _, some in goes) - warps
            elif block.end != BRANCH and len(goes) == 1 and goes[0][1] is not None and goes[0][1].size < frame.count:
                rest = np.setdiff1d(np.arange(self._batch.count) if frame.lanes is None else frame.lanes, goes[0][1])
                count.split += sum(Frame(self, self._batch, [], some).warps() for some in (goes[0][1], rest)) - warps

    def _let_go(self, waiting: Sequence[tuple[int, Array | None]]) -> dict[int, Array | None]:
        """Lets all threads go that wait at barriers, and reports blocks whose threads do not all wait at the same."""
        batch = self._batch
        arrived = np.full(batch.count, -1)
        for number, lanes in waiting:
            arrived[slice(None) if lanes is None else lanes] = number
        if len(waiting) > 1 or waiting[0][1] is not None:
            self._require_all(arrived)
        rows = np.flatnonzero((arrived.reshape(batch.blocks, -1) >= 0).any(axis=1))
        batch.pass_barrier(rows)
        for name, offset, size in batch.lost:
            self.memory.lose(name, offset, size, rows)
        batch.lost.clear()
        ready: dict[int, Array | None] = {}
        for number, lanes in waiting:
            self._put(ready, self.program.blocks[number].following, lanes)
        return ready

    def _require_all(self, arrived: Array) -> None:
        batch, rows = self._batch, arrived.reshape(self._batch.blocks, -1)
        wrong = np.flatnonzero((rows >= 0).any(axis=1) & (rows != rows[:, :1]).any(axis=1))
        by_barrier: dict[int, list[int]] = defaultdict(list)
        for one in wrong.tolist():
            by_barrier[int(rows[one].max())].append(one)
        for barrier, these in by_barrier.items():
            row = these[0]
            there = int(np.count_nonzero(rows[row] == barrier))
            ended, elsewhere = int(np.count_nonzero(rows[row] < 0)), batch.threads - there
            where = "have ended" if ended == elsewhere else "wait at another barrier"
            last = self.program.blocks[barrier].last
            assert last is not None
            self.findings.add(DIVERGENT_BARRIER, last, len(these), f"{there} of {batch.threads} threads of block "
                              f"{coordinates(int(batch.numbers[row]), batch.grid)} wait here, the others {where}")


def _blocks(grid: Size, block: Size, sampled: bool) -> Array:
    """The numbers of the blocks that run: all, or of many threads a sample, spread evenly from the first to the last."""
    blocks = grid[0] * grid[1] * grid[2]
    most = max(1, SAMPLE // (block[0] * block[1] * block[2]))
    if not sampled or blocks <= most:
        return np.arange(blocks)
    return np.unique(np.linspace(0, blocks - 1, most).round().astype(np.int64))
