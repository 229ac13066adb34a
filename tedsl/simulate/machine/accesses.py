"""Steps that access memory: ld, st, atom, red."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tedsl.simulate.instructions.operation import MOVE, Array, array_type, bits_type, unknown
from tedsl.simulate.machine.atomics import FUNCTIONS, atomically
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.ptx.syntax import BYTES, Group, Instruction, Memory, Operand, Register, Symbol

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Site, Sites

Made = tuple[Callable[[Frame], None], str]
_ORDER = {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "cta", "gpu", "sys", "cluster"}
_CACHES = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1__no_allocate", "L1__evict_last", "L1__evict_first", "L1", "L2",
           "L1__evict_normal", "L1__evict_unchanged", "no_allocate", "evict_last", "evict_first", "L2__64B", "L2__128B",
           "L2__256B"}
_PLACES = {"global", "shared", "local", "const", "param", "shared__cta"}
_VECTORS = {"v2", "v4", "v8"}


def class_of(site: Site) -> str:
    """Returns the class of an access in reports."""
    space = "global" if site.space in ("generic", "const") else site.space
    return f"{space} {site.kind}"


def address_reader(memory: Operand, names: Names, instruction: Instruction) -> Callable[[list[Any]], Array]:
    """Returns the function that gives the addresses of a location, as signed numbers."""
    if not isinstance(memory, Memory):
        raise unknown(instruction)
    offset = np.int64(memory.offset)
    if not isinstance(memory.base, Register):
        whole = memory.offset
        if isinstance(memory.base, Symbol):
            if memory.base.name not in names.addresses:
                raise unknown(instruction, f"there is no variable {memory.base.name}")
            whole += names.addresses[memory.base.name] + memory.base.offset
        constant = np.array([whole], np.int64)
        return lambda registers: constant
    number = names.number(memory.base, instruction)
    if names.types[number].itemsize == 8:
        if offset == 0:
            return lambda registers: cast(Array, registers[number].view(np.int64))
        return lambda registers: cast(Array, registers[number].view(np.int64) + offset)
    return lambda registers: cast(Array, registers[number].astype(np.int64) + offset)


def _checked(instruction: Instruction, known: set[str]) -> None:
    if not set(instruction.parts[1:-1]) <= known:
        raise unknown(instruction)


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Group) else (operand,)


def load(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of ld."""
    _checked(instruction, _ORDER | _CACHES | _PLACES | _VECTORS)
    if "param" in instruction.parts:
        return _parameter(instruction, names), MOVE
    site = sites.of(instruction)
    address = address_reader(instruction.operands[1], names, instruction)
    writers = [names.writer(one, instruction) for one in _items(instruction.operands[0])]
    form = array_type(instruction.type)

    def run(frame: Frame) -> None:
        values = frame.run.memory.load(frame, site, address(frame.registers))
        for write, value in zip(writers, values):
            write(frame.registers, value.view(form))

    return run, class_of(site)


def _parameter(instruction: Instruction, names: Names) -> Callable[[Frame], None]:
    """The step that loads a parameter of the kernel, the same for all threads."""
    memory = instruction.operands[1]
    if not isinstance(memory, Memory) or not isinstance(memory.base, Symbol):
        raise unknown(instruction)
    name, offset = memory.base.name, memory.offset + memory.base.offset
    writers = [names.writer(one, instruction) for one in _items(instruction.operands[0])]
    form, width = array_type(instruction.type), BYTES[instruction.type]

    def run(frame: Frame) -> None:
        for number, write in enumerate(writers):
            write(frame.registers, frame.run.parameter(name, offset + number * width, width).view(form))

    return run


def store(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of st."""
    _checked(instruction, _ORDER | _CACHES | _PLACES | _VECTORS)
    if "param" in instruction.parts:
        raise unknown(instruction)
    site = sites.of(instruction)
    address = address_reader(instruction.operands[0], names, instruction)
    readers = [names.reader(one, instruction.type, instruction) for one in _items(instruction.operands[1])]
    bits = bits_type(instruction.type)

    def run(frame: Frame) -> None:
        registers = frame.registers
        frame.run.memory.store(frame, site, address(registers), [reader(registers).view(bits) for reader in readers])

    return run, class_of(site)


def atomic(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of atom and red: read, change, write, one thread after the other."""
    changes = [part for part in instruction.parts[1:-1] if part in FUNCTIONS]
    _checked(instruction, _ORDER | _PLACES | FUNCTIONS.keys() | {"noftz"})
    if len(changes) != 1 or instruction.type not in BYTES or "x2" in instruction.type or instruction.type == "bf16":
        raise unknown(instruction)
    site = sites.of(instruction)
    operands = list(instruction.operands)
    write = None if instruction.name == "red" else names.writer(operands.pop(0), instruction)
    address = address_reader(operands[0], names, instruction)
    readers = [names.reader(one, instruction.type, instruction) for one in operands[1:]]
    form, function = array_type(instruction.type), FUNCTIONS[changes[0]]

    def run(frame: Frame) -> None:
        registers = frame.registers
        addresses = np.broadcast_to(address(registers), frame.count)
        values = [np.broadcast_to(reader(registers), frame.count) for reader in readers]
        before = np.zeros(frame.count, form)
        for region, places, threads in frame.run.memory.atomics(frame, site, addresses):
            given = [value if threads is None else value[threads] for value in values]
            old = atomically(region.elements(site.width).view(form), places, given, function)
            before[slice(None) if threads is None else threads] = old
        if write is not None:
            write(registers, before)

    return run, class_of(site)
