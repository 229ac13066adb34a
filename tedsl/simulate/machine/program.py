"""Programs: kernels as steps that run for many threads at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from tedsl.record import record
from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.instructions.table import operation_of
from tedsl.simulate.machine import accesses, asynchronous, carries, dealt, matrices, moves, warps
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.liveness import CARRY, makes_carry, read, taken_and_left, takes_carry, written
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.machine.pairs import compares_pairs, comparison_of_pairs
from tedsl.simulate.machine.sites import Sites
from tedsl.simulate.memory.space import WINDOW
from tedsl.simulate.ptx.flow import BARRIER, Block, blocks_of
from tedsl.simulate.ptx.syntax import Instruction, Kernel, Parameter, Variable

Step: TypeAlias = Callable[[Frame], None]

_MAKERS: dict[str, Callable[[Instruction, Names, Sites], tuple[Step, str]]] = {
    "mov": moves.move, "cvta": moves.same_address, "ld": accesses.load, "ldu": accesses.load, "st": accesses.store,
    "atom": accesses.atomic, "red": accesses.atomic, "shfl": warps.shuffle, "vote": warps.vote, "activemask": warps.active,
    "redux": warps.reduction, "match": warps.match, "bar": warps.barrier, "barrier": warps.barrier, "cp": asynchronous.copy,
    "wmma": matrices.wmma, "mma": dealt.multiply, "ldmatrix": dealt.load_matrices,
    **dict.fromkeys(("membar", "fence", "prefetch", "prefetchu", "nanosleep", "griddepcontrol"), moves.nothing),
    "trap": moves.trap, "tedsl": moves.undefined, "isspacep": moves.in_space,
}


@record(eq=False)
class CompiledBlock:
    """A block of a program. guard: the register that decides about its end and whether it must be false. taken, left: what
    threads that are not all of a batch take from its registers and leave there. classes: its instructions by class.
    """

    steps: tuple[Step, ...]
    end: str
    last: Instruction | None
    target: int
    following: int
    guard: tuple[int, bool] | None
    taken: tuple[int, ...]
    left: tuple[int, ...]
    classes: dict[str, int]
    lines: tuple[tuple[tuple[int, int], str, int], ...]  # how many instructions of each class a line of the source has here


class Program:
    """A kernel that can run. globals: the addresses of the variables of its text in the memory of the device."""

    def __init__(self, kernel: Kernel, globals_: Mapping[str, int], dynamic: tuple[Variable, ...] = ()) -> None:
        self.name, self.parameters = kernel.name, kernel.parameters
        own = kernel.variables + dynamic
        self.shared = {v.name: v for v in own if v.space == "shared"}
        self.local = {v.name: v for v in own if v.space == "local"}
        self.addresses = dict(globals_)
        for variables in (self.shared, self.local):
            self.addresses.update((name, (number + 1) << WINDOW) for number, name in enumerate(variables))
        self.names = Names({**kernel.registers, CARRY: "pred"}, self.addresses)
        self.size_of_parameters = max((p.offset + p.size for p in kernel.parameters), default=0)
        blocks = blocks_of(kernel)
        self.sites = Sites(kernel, blocks, self.names)
        kept = taken_and_left(blocks, self.names.numbers)
        self.blocks = [self._compiled(number, block, *kept[number]) for number, block in enumerate(blocks)]
        self.warp_barriers = any(i.name in ("bar", "barrier") and "warp" in i.parts for b in blocks for i in b.instructions)

    def parameter(self, name: str) -> Parameter:
        """Returns the parameter called `name`."""
        return next(one for one in self.parameters if one.name == name)

    def _compiled(self, number: int, block: Block, taken: list[int], left: list[int]) -> CompiledBlock:
        steps, classes = [], Counter[str]()
        lines = Counter[tuple[tuple[int, int], str]]()
        for instruction in block.instructions:
            step, kind = step_of(instruction, self.names, self.sites)
            steps.append(guarded(step, instruction, self.names) if instruction.guard else step)
            classes[kind] += 1
            lines[instruction.source, kind] += 1
        guard = None
        if block.last is not None:
            kind = "barrier" if block.end == BARRIER else "branch"
            classes[kind] += 1
            lines[block.last.source, kind] += 1
            if block.last.guard is not None:
                guard = (self.names.number(block.last.guard[0], block.last), block.last.guard[1])
        return CompiledBlock(tuple(steps), block.end, block.last, block.target, block.following, guard, tuple(taken),
                             tuple(left), dict(classes), tuple((*key, number) for key, number in lines.items()))


def step_of(instruction: Instruction, names: Names, sites: Sites) -> tuple[Step, str]:
    """Returns the step that an instruction is, and its class in reports; DeviceError if the simulator does not know it."""
    if makes_carry(instruction) or takes_carry(instruction):
        return carries.chained(instruction, names, sites)
    if compares_pairs(instruction):
        return comparison_of_pairs(instruction, names, sites)
    if instruction.name in _MAKERS:
        return _MAKERS[instruction.name](instruction, names, sites)
    operation = operation_of(instruction)
    readers = [names.reader(operand, form, instruction)
               for operand, form in zip(instruction.operands[1:], operation.operands, strict=True)]
    write, function = names.writer(instruction.operands[0], instruction), operation.function
    if len(readers) == 2:
        first, second = readers

        def two(frame: Frame) -> None:
            registers = frame.registers
            write(registers, function(first(registers), second(registers)))

        return two, operation.kind

    def any_number(frame: Frame) -> None:
        registers = frame.registers
        write(registers, function(*[reader(registers) for reader in readers]))

    return any_number, operation.kind


def guarded(step: Step, instruction: Instruction, names: Names) -> Step:
    """Returns the step for the threads whose predicate lets it run."""
    assert instruction.guard is not None
    guard, negated = names.number(instruction.guard[0], instruction), instruction.guard[1]
    used = sorted({names.numbers[name] for name in read(instruction)})
    results = [names.numbers[name] for name in written(instruction)]

    def run(frame: Frame) -> None:
        holds = frame.registers[guard] != negated
        if holds.all():
            step(frame)
        elif holds.any():
            some = np.flatnonzero(holds)
            registers = list(frame.registers)
            for number in used:
                if registers[number].size > 1:
                    registers[number] = registers[number][some]
            step(Frame(frame.run, frame.batch, registers, some if frame.lanes is None else frame.lanes[some]))
            for number in results:
                frame.registers[number] = merged(frame.registers[number], registers[number], some, frame.count)

    return run


def merged(old: Array, new: Array, at: Array, count: int) -> Array:
    """Returns the values of `count` threads: `new` of those at `at`, `old` of the others."""
    whole = np.broadcast_to(old, count).copy()
    whole[at] = new
    return whole
