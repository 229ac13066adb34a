"""Operations: what an instruction computes from the values of its operands, for all threads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tedsl.errors import DeviceError
from tedsl.record import record
from tedsl.simulate.ptx.syntax import BYTES, Instruction

Array: TypeAlias = "NDArray[Any]"

# Classes of instructions in reports.
FLOAT, DOUBLE, HALF, INTEGER, SPECIAL, CONVERT, LOGIC, MOVE = (
    "float32", "float64", "float16", "integer", "special", "convert", "logic", "move")

_NUMPY = {"pred": np.dtype(np.bool_), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def array_type(form: str) -> np.dtype[Any]:
    """Returns the type of the elements of arrays that hold values of a PTX type. Types without one are held as bits."""
    if form not in _NUMPY:
        _NUMPY[form] = np.dtype(f"{'i' if form[0] == 's' else 'u'}{BYTES[form]}")
    return _NUMPY[form]


def bits_type(form: str) -> np.dtype[Any]:
    """Returns the type of the elements of arrays that hold the bits of values of a PTX type, as registers do."""
    return _NUMPY["pred"] if form == "pred" else np.dtype(f"u{BYTES[form]}")


@record
class Operation:
    """A result of type `result` from operands of types `operands`. kind: its class in reports."""

    result: str
    operands: tuple[str, ...]
    function: Callable[..., Array]
    kind: str


def chosen(condition: Array, a: Array, b: Array) -> Array:
    """Returns the elements of `a` where the condition holds, elsewhere those of `b`."""
    return np.where(condition, a, b)


def kind_of(form: str) -> str:
    """Returns the class of arithmetic on values of a PTX type."""
    return {"f32": FLOAT, "f64": DOUBLE}.get(form, HALF if "f" in form and form != "tf32" else INTEGER)


def unknown(instruction: Instruction, why: str = "") -> DeviceError:
    """Returns the error for an instruction that the simulator does not know."""
    return DeviceError(f"the simulator does not know the instruction {'.'.join(instruction.parts)}{why and ': ' + why} "
                       f"(line {instruction.line}: {instruction.text})")


def modifiers(instruction: Instruction, known: Iterable[str], types: int = 1) -> set[str]:
    """Returns the parts of an instruction's name between its first word and its types; DeviceError if one is not in `known`."""
    found = set(instruction.parts[1:len(instruction.parts) - types])
    if not found <= set(known):
        raise unknown(instruction)
    return found
