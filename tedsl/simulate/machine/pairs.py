"""Steps that compare registers of two halves: one instruction with a predicate for each half."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tedsl.simulate.instructions.compare import comparison
from tedsl.simulate.instructions.halves import halves_of
from tedsl.simulate.instructions.operation import LOGIC, unknown
from tedsl.simulate.instructions.rounding import bfloat_values
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.ptx.syntax import Group, Instruction

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Sites


def compares_pairs(instruction: Instruction) -> bool:
    """Tells whether an instruction is a setp on registers of two halves."""
    return instruction.name == "setp" and instruction.type in ("f16x2", "bf16x2")


def comparison_of_pairs(instruction: Instruction, names: Names, sites: Sites) -> tuple[Callable[[Frame], None], str]:
    """The step of setp on pairs: the first predicate is that of the lower halves."""
    target, form = instruction.operands[0], instruction.type.removesuffix("x2")
    if not isinstance(target, Group) or len(target.items) != 2 or len(instruction.parts) != 3:
        raise unknown(instruction)
    try:
        compare = comparison(instruction.parts[1], form)
    except KeyError:
        raise unknown(instruction) from None
    writers = [names.writer(one, instruction) for one in target.items]
    first, second = (names.reader(one, "b32", instruction) for one in instruction.operands[1:])

    def run(frame: Frame) -> None:
        sides = zip(*(halves_of(read(frame.registers), form) for read in (first, second)), strict=True)
        for write, (a, b) in zip(writers, list(sides), strict=True):
            write(frame.registers, compare(bfloat_values(a), bfloat_values(b)) if form == "bf16" else compare(a, b))

    return run, LOGIC
