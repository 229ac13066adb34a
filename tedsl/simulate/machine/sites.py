"""Accesses to memory in the text of a kernel, and what its text says about them."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.record import record
from tedsl.simulate.instructions.operation import unknown
from tedsl.simulate.machine.liveness import read, registers_in, written
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.ptx.flow import BARRIER, Block
from tedsl.simulate.ptx.matrices import CHUNK, Matrix, matrices_loaded, matrix_moved
from tedsl.simulate.ptx.syntax import BYTES, Instruction, Kernel, Memory, Number, Symbol

SPACES = frozenset(("global", "shared", "local", "const", "param"))
_KINDS = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
GENERIC = "generic"


@record(eq=False)
class Site:
    """An instruction that accesses memory: `count` elements of `width` bytes for each thread.

    kind: "load", "store", "atomic". stores_near: threads may store to shared memory between the same two barriers. sources: the
    parameters that its address may come from; none if that is not known.
    """

    number: int
    instruction: Instruction
    kind: str
    space: str
    width: int
    count: int
    stores_near: bool
    sources: frozenset[str]

    @property
    def size(self) -> int:
        return self.width * self.count


class Sites:
    """The sites of a kernel."""

    def __init__(self, kernel: Kernel, blocks: Sequence[Block], names: Names) -> None:
        self.all: list[Site] = []
        self._by_instruction: dict[int, Site] = {}
        self._copies: dict[int, tuple[Site, Site]] = {}
        sources = _sources(blocks, names)
        near = _stores_near(blocks)
        for number, block in enumerate(blocks):
            for instruction in block.instructions:
                matrix = matrix_moved(instruction)
                if matrix is not None:
                    self._add_matrix(instruction, matrix, near[number], sources)
                elif instruction.name == "ldmatrix":
                    self._add_lines(instruction, near[number])
                elif instruction.name in _KINDS and space_of(instruction) != "param":
                    self._add(instruction, near[number], sources)
                elif instruction.name == "cp" and len(instruction.operands) > 2:
                    self._add_copy(instruction, near[number], sources)

    def of(self, instruction: Instruction) -> Site:
        """Returns the site that an instruction is."""
        return self._by_instruction[id(instruction)]

    def copy_of(self, instruction: Instruction) -> tuple[Site, Site]:
        """Returns where an asynchronous copy reads and where it writes."""
        return self._copies[id(instruction)]

    def _add_copy(self, instruction: Instruction, near: bool, sources: dict[str, frozenset[str]]) -> None:
        target, source, size = instruction.operands[:3]
        if not isinstance(size, Number) or size.value not in (4, 8, 16):
            raise unknown(instruction)
        base = next(iter(registers_in(source)), "")
        reads = Site(len(self.all), instruction, "load", "global", 4, size.value // 4, near, sources.get(base, frozenset()))
        writes = Site(len(self.all) + 1, instruction, "store", "shared", 4, size.value // 4, near, frozenset())
        self.all += [reads, writes]
        self._copies[id(instruction)] = reads, writes

    def _add_matrix(self, instruction: Instruction, matrix: Matrix, near: bool, sources: dict[str, frozenset[str]]) -> None:
        base = next(iter(registers_in(instruction.operands[instruction.parts[1] == "load"])), "")
        width = min(4, matrix.chunk)
        site = Site(len(self.all), instruction, instruction.parts[1], space_of(instruction), width, matrix.chunk // width, near,
                    sources.get(base, frozenset()))
        self.all.append(site)
        self._by_instruction[id(instruction)] = site

    def _add_lines(self, instruction: Instruction, near: bool) -> None:
        if not matrices_loaded(instruction)[0]:
            raise unknown(instruction)
        site = Site(len(self.all), instruction, "load", "shared", 4, CHUNK // 4, near, frozenset())
        self.all.append(site)
        self._by_instruction[id(instruction)] = site

    def _add(self, instruction: Instruction, near: bool, sources: dict[str, frozenset[str]]) -> None:
        memory = next((one for one in instruction.operands if isinstance(one, Memory)), None)
        if memory is None or instruction.type not in BYTES:
            raise unknown(instruction)
        base = next(iter(registers_in(memory)), "")  # of an address in a register
        site = Site(len(self.all), instruction, _KINDS[instruction.name], space_of(instruction), BYTES[instruction.type],
                    vector_of(instruction), near, sources.get(base, frozenset()))
        self.all.append(site)
        self._by_instruction[id(instruction)] = site


def space_of(instruction: Instruction) -> str:
    """Returns the space of an access."""
    for part in instruction.parts[1:]:
        if part.partition("__")[0] in SPACES:
            return part.partition("__")[0]
    return GENERIC


def vector_of(instruction: Instruction) -> int:
    """Returns how many elements an access has."""
    return next((int(part[1:]) for part in instruction.parts if part in ("v2", "v4", "v8")), 1)


def _may_store(instruction: Instruction) -> bool:
    """Whether an instruction may write shared memory."""
    return (instruction.name in ("st", "atom", "red") and space_of(instruction) in ("shared", GENERIC)) \
        or (instruction.parts[:2] == ("wmma", "store") and space_of(instruction) in ("shared", GENERIC)) \
        or (instruction.name == "cp" and "async" in instruction.parts) or instruction.name == "stmatrix"


def _stores_near(blocks: Sequence[Block]) -> list[bool]:
    """Whether threads may store to shared memory between the two barriers between which each block runs: the blocks that paths
    without a barrier connect run between the same two.
    """
    parts = list(range(len(blocks)))

    def part(number: int) -> int:
        while parts[number] != number:
            parts[number] = parts[parts[number]]
            number = parts[number]
        return number

    for number, block in enumerate(blocks):
        for one in block.successors() if block.end != BARRIER else ():
            parts[part(number)] = part(one)
    storing = {part(number) for number, block in enumerate(blocks) if any(_may_store(one) for one in block.instructions)}
    return [part(number) in storing for number in range(len(blocks))]


def _sources(blocks: Sequence[Block], names: Names) -> dict[str, frozenset[str]]:
    """The parameters from which the values of 64-bit registers may come."""
    found: dict[str, frozenset[str]] = {}
    none: frozenset[str] = frozenset()
    changed = True
    while changed:
        changed = False
        for instruction in (one for block in blocks for one in block.instructions):
            for result in written(instruction):
                if names.types[names.numbers[result]].itemsize != 8:
                    continue
                now = found.get(result, none) | _sources_of(instruction, found)
                changed |= now != found.get(result, none)
                found[result] = now
    return found


def _sources_of(instruction: Instruction, found: dict[str, frozenset[str]]) -> frozenset[str]:
    if instruction.name == "ld":
        memory = instruction.operands[1]
        if "param" in instruction.parts and isinstance(memory, Memory) and isinstance(memory.base, Symbol):
            return frozenset((memory.base.name,))
        return frozenset()
    return frozenset().union(*[found.get(name, frozenset()) for name in read(instruction)])
