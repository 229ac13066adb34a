"""Which registers the blocks of a kernel take from others and leave to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tedsl.simulate.ptx.flow import Block
from tedsl.simulate.ptx.syntax import Group, Instruction, Memory, Operand, Register

WITHOUT_RESULT = frozenset(("st", "red", "bra", "bar", "barrier", "ret", "exit", "membar", "fence", "cp", "prefetch",
                            "prefetchu", "trap", "brkpt", "nanosleep", "stmatrix", "tedsl"))


CARRY = "%carry"  # the register of the carry of chained sums, which no text names


def makes_carry(instruction: Instruction) -> bool:
    """Whether an instruction leaves a carry."""
    return "cc" in instruction.parts


def takes_carry(instruction: Instruction) -> bool:
    """Whether an instruction takes the carry of the last one that left any."""
    return instruction.name in ("addc", "subc", "madc")


def registers_in(operand: Operand) -> Iterable[str]:
    """Yields the names of the registers in an operand."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Memory) and isinstance(operand.base, Register):
        yield operand.base.name
    elif isinstance(operand, Group):
        for one in operand.items:
            yield from registers_in(one)


def written(instruction: Instruction) -> list[str]:
    """Returns the registers that an instruction writes."""
    if instruction.name in WITHOUT_RESULT or not instruction.operands or isinstance(instruction.operands[0], Memory):
        return []
    return [*registers_in(instruction.operands[0]), *[CARRY] * makes_carry(instruction)]


def read(instruction: Instruction) -> list[str]:
    """Returns the registers that an instruction reads; where a predicate guards it, those that it may leave as they are too."""
    results = written(instruction)
    names = [name for operand in instruction.operands[bool(results):] for name in registers_in(operand)]
    if takes_carry(instruction):
        names.append(CARRY)
    if instruction.guard is not None:
        names += [instruction.guard[0].name, *results]
    return names


def _set(names: Iterable[str], numbers: Mapping[str, int]) -> int:
    made = 0
    for name in names:
        made |= 1 << numbers[name]
    return made


def taken_and_left(blocks: Sequence[Block], numbers: Mapping[str, int]) -> list[tuple[list[int], list[int]]]:
    """Returns, for each block, the registers that it reads before it writes them, and those it writes that others may read."""
    taken, made = [], []
    for block in blocks:
        inputs, results = 0, 0
        for instruction in (*block.instructions, *([block.last] if block.last else ())):
            inputs |= _set(read(instruction), numbers) & ~results
            results |= _set(written(instruction), numbers)
        taken.append(inputs)
        made.append(results)
    before = list(taken)
    after = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in range(len(blocks) - 1, -1, -1):
            for one in blocks[number].successors():
                after[number] |= before[one]
            now = taken[number] | (after[number] & ~made[number])
            changed |= now != before[number]
            before[number] = now
    return [(_members(taken[n]), _members(made[n] & after[n])) for n in range(len(blocks))]


def _members(numbers: int) -> list[int]:
    found = []
    while numbers:
        low = numbers & -numbers
        found.append(low.bit_length() - 1)
        numbers ^= low
    return found
