"""Steps of sums and differences of more bits than a register has: add.cc and sub.cc leave a carry, addc and subc take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tedsl.simulate.instructions.operation import INTEGER, bits_type, unknown
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.liveness import CARRY, makes_carry, takes_carry
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.ptx.syntax import Instruction

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Sites

Made = tuple[Callable[[Frame], None], str]


def chained(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of add.cc, sub.cc, addc, subc; the carry of a difference is what it borrows."""
    form, makes, takes = instruction.type, makes_carry(instruction), takes_carry(instruction)
    if instruction.name[:3] not in ("add", "sub") or form[0] not in "us" or len(instruction.parts) != 2 + makes:
        raise unknown(instruction)
    kind, carry, adds = bits_type(form), names.numbers[CARRY], instruction.name.startswith("add")
    write = names.writer(instruction.operands[0], instruction)
    first, second = (names.reader(one, form, instruction) for one in instruction.operands[1:])

    def run(frame: Frame) -> None:
        registers = frame.registers
        a, b = first(registers).view(kind), second(registers).view(kind)
        taken = registers[carry].astype(kind) if takes else kind.type(0)
        if adds:
            part = a + b
            whole = part + taken
            over = (part < a) | (whole < part)
        else:
            part = a - b
            whole = part - taken
            over = (a < b) | (part < taken)
        write(registers, whole)
        if makes:
            registers[carry] = over

    return run, INTEGER
