"""Steps that move values: mov, cvta, parameters; and those that do nothing to a machine without caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from tedsl.simulate.instructions.operation import MOVE, Array, bits_type, unknown
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.memory.space import LOCAL_WINDOW, SHARED_WINDOW
from tedsl.simulate.ptx.syntax import BYTES, Group, Instruction, Number, Special, Symbol

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Sites

Made = tuple[Callable[[Frame], None], str]
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def move(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of mov."""
    target, source = instruction.operands
    form = instruction.type
    if isinstance(target, Group):
        return _unpacked(instruction, names, target), MOVE
    write = names.writer(target, instruction)
    if isinstance(source, Group):
        return _packed(instruction, names, source), MOVE
    if isinstance(source, Special):
        return _special(instruction, names, source), MOVE
    read = names.reader(source, form, instruction)
    return (lambda frame: write(frame.registers, read(frame.registers))), MOVE


def _special(instruction: Instruction, names: Names, source: Special) -> Callable[[Frame], None]:
    write, kind = names.writer(instruction.operands[0], instruction), bits_type(instruction.type)

    def run(frame: Frame) -> None:
        value = frame.batch.special(source.name)
        if value is None:
            value = frame.run.special(source.name)
        if value is None:
            raise unknown(instruction, f"it does not know {source.name}")
        write(frame.registers, frame.of_these(value).astype(kind))

    return run


def _packed(instruction: Instruction, names: Names, source: Group) -> Callable[[Frame], None]:
    """Several registers as one; the first has the low bits."""
    write, kind = names.writer(instruction.operands[0], instruction), bits_type(instruction.type)
    each = 8 * BYTES[instruction.type] // len(source.items)
    readers = [names.reader(one, f"b{each}", instruction) for one in source.items]

    def run(frame: Frame) -> None:
        whole = np.zeros(1, kind)
        for place, reader in enumerate(readers):
            whole = whole | (reader(frame.registers).astype(kind) << kind.type(place * each))
        write(frame.registers, whole)

    return run


def _unpacked(instruction: Instruction, names: Names, target: Group) -> Callable[[Frame], None]:
    each = BYTES[instruction.type] // len(target.items)
    writers = [names.writer(one, instruction) for one in target.items]
    read = names.reader(instruction.operands[1], instruction.type, instruction)
    held = bits_type(instruction.type)
    part = np.dtype(f"u{each}")

    def run(frame: Frame) -> None:
        whole = read(frame.registers).view(held)
        for place, write in enumerate(writers):
            write(frame.registers, (whole >> held.type(8 * each * place)).astype(part))

    return run


def same_address(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of cvta: addresses of one space in the space of all, and (to) the other way."""
    form = instruction.type
    write, read = names.writer(instruction.operands[0], instruction), names.reader(instruction.operands[1], form, instruction)
    space = instruction.parts[-2]
    if space not in ("global", "shared", "local", "const", "param"):
        raise unknown(instruction)
    begin = bits_type(form).type(_WINDOWS.get(space, 0))
    if begin == 0:
        return (lambda frame: write(frame.registers, read(frame.registers))), MOVE
    if "to" in instruction.parts:
        return (lambda frame: write(frame.registers, read(frame.registers) - begin)), MOVE
    return (lambda frame: write(frame.registers, read(frame.registers) + begin)), MOVE


def in_space(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of isspacep: whether addresses lie in the window of a space."""
    write, read = names.writer(instruction.operands[0], instruction), names.reader(instruction.operands[1], "s64", instruction)
    space = instruction.parts[-1]
    windows = {"shared": (SHARED_WINDOW, LOCAL_WINDOW), "local": (LOCAL_WINDOW, 2 * LOCAL_WINDOW), "global": (1 << 40, 1 << 62)}
    if space not in windows:
        raise unknown(instruction)
    begin, end = windows[space]

    def run(frame: Frame) -> None:
        address = read(frame.registers)
        write(frame.registers, cast(Array, (address >= begin) & (address < end)))

    return run, MOVE


def undefined(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of a mark of ours: bytes of shared memory lose their content at the barrier that follows."""
    memory, offset, size = instruction.operands
    if not isinstance(memory, Symbol) or not isinstance(offset, Number) or not isinstance(size, Number):
        raise unknown(instruction)
    lost = memory.name, offset.value, size.value

    def run(frame: Frame) -> None:
        frame.batch.lost.add(lost)

    return run, "mark"


def nothing(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of instructions that this machine, which has no caches and runs in order, need not do."""
    return (lambda frame: None), "control"


def trap(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of trap."""
    def run(frame: Frame) -> None:
        frame.run.findings.trap(frame, instruction)

    return run, "control"
