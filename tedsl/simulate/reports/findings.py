"""Findings: what a kernel did that a device would not forgive, or would answer with any value."""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.errors import DeviceError
from tedsl.simulate.machine.batch import coordinates
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.ptx.syntax import Instruction

RACE, UNINITIALISED, OUTSIDE, MISALIGNED, DIVERGENT_BARRIER, ABSENT_LANE, TRAP, READ_ONLY, DISAGREEING = (
    "race", "uninitialised read", "access outside", "misaligned access", "barrier divergence", "shuffle from an absent thread",
    "trap", "write to memory read as constant", "different arguments in a warp")


@dataclass
class Finding:
    """One kind of mistake at one instruction. example: the first time. count: how many threads made it, all times together."""

    kind: str
    instruction: str
    line: int
    source: tuple[int, int]
    example: str
    count: int = 0

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind}: {self.example}{times}\n  at {self.instruction}  (line {self.line} of the PTX)"


class Findings:
    """The findings of one launch. checked: the first one is raised as a DeviceError."""

    def __init__(self, kernel: str, checked: bool) -> None:
        self.kernel, self.checked = kernel, checked
        self._found: dict[tuple[str, int], Finding] = {}

    def __iter__(self) -> object:
        return iter(self._found.values())

    @property
    def all(self) -> list[Finding]:
        return list(self._found.values())

    def add(self, kind: str, instruction: Instruction, count: int, example: str) -> None:
        """Notes that `count` threads made a mistake at an instruction."""
        key = (kind, instruction.line)
        if key not in self._found:
            self._found[key] = Finding(kind, instruction.text, instruction.line, instruction.source, example)
        self._found[key].count += count
        if self.checked:
            raise DeviceError(f"kernel {self.kernel}: {self._found[key]}")

    def trap(self, frame: Frame, instruction: Instruction) -> None:
        """Notes that threads ran into a trap, which ends the kernel."""
        self.add(TRAP, instruction, frame.count, f"{thread_name(frame, 0)} ended the kernel")
        raise DeviceError(f"kernel {self.kernel}: a trap ended it, at {instruction.text} (line {instruction.line})")


def thread_name(frame: Frame, at: int) -> str:
    """Returns how a thread of a frame is called in findings."""
    batch, number = frame.batch, frame.number(at)
    thread = coordinates(int(batch.thread[number]), batch.block)
    block = coordinates(int(batch.numbers[batch.row[number]]), batch.grid)
    return f"thread {thread} of block {block}"
