"""How steps read and write operands: registers hold the bits of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from tedsl.errors import DeviceError
from tedsl.simulate.instructions.operation import Array, array_type, bits_type, unknown
from tedsl.simulate.ptx.syntax import BYTES, Instruction, Number, Operand, Register, Symbol

Reader = Callable[[list[Any]], Array]
Writer = Callable[[list[Any], Array], None]


class Names:
    """The registers of a kernel by number, and the addresses of its variables."""

    def __init__(self, registers: Mapping[str, str], addresses: Mapping[str, int]) -> None:
        self.numbers = {name: number for number, name in enumerate(registers)}
        self.types = [bits_type(form) for form in registers.values()]
        self.addresses = addresses

    def number(self, operand: Operand, instruction: Instruction) -> int:
        """Returns the number of a register."""
        if not isinstance(operand, Register) or operand.name not in self.numbers:
            raise unknown(instruction, f"{operand} is no register")
        return self.numbers[operand.name]

    def reader(self, operand: Operand, form: str, instruction: Instruction) -> Reader:
        """Returns the function that reads an operand as values of type `form`; wider registers give their low bits."""
        if isinstance(operand, Register):
            return self._register_reader(self.number(operand, instruction), form)
        value = self._constant(operand, form, instruction)
        return lambda registers: value

    def _register_reader(self, number: int, form: str) -> Reader:
        held, wanted, bits = self.types[number], array_type(form), bits_type(form)
        if held == wanted:
            return lambda registers: cast(Array, registers[number])
        if held.kind == "b" or wanted.kind == "b" or held.itemsize == wanted.itemsize:
            if held.kind == "b" or wanted.kind == "b":
                raise DeviceError(f"the simulator reads no predicate as {form}")
            return lambda registers: cast(Array, registers[number].view(wanted))
        return lambda registers: cast(Array, registers[number].astype(bits).view(wanted))

    def _constant(self, operand: Operand, form: str, instruction: Instruction) -> Array:
        wanted, bits = array_type(form), bits_type(form)
        if isinstance(operand, Symbol) and operand.name in self.addresses:
            operand = Number(self.addresses[operand.name] + operand.offset)
        if not isinstance(operand, Number):
            raise unknown(instruction, f"it does not know the operand {operand}")
        if wanted.kind == "b":
            return np.array([operand.value != 0])
        value = operand.value
        if operand.form and {"f32": 4, "f64": 8}[operand.form] != BYTES[form]:
            wide = np.array([value], f"u{BYTES[operand.form]}").view(array_type(operand.form))
            return wide.astype(wanted)
        if wanted.kind == "f" and not operand.form and value and abs(value) < 1 << 16 and form != "f16":
            raise unknown(instruction, "an integer stands where a floating-point number should")
        return np.array([value & ((1 << 8 * BYTES[form]) - 1)], bits).view(wanted)

    def writer(self, operand: Operand, instruction: Instruction) -> Writer:
        """Returns the function that writes a register; narrower values are extended, with their sign if they have one."""
        if isinstance(operand, Symbol) and operand.name == "_":
            return lambda registers, value: None
        number = self.number(operand, instruction)
        held = self.types[number]

        def write(registers: list[Any], value: Array) -> None:
            if value.dtype is not held:
                value = value.view(held) if value.dtype.itemsize == held.itemsize else extended(value, held)
            registers[number] = value

        return write


def extended(value: Array, held: np.dtype[Any]) -> Array:
    """Returns values in registers that are wider than they, or narrower."""
    if value.dtype.kind == "f":
        value = value.view(f"u{value.dtype.itemsize}")
    return value.astype(held)
