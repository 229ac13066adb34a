"""Arithmetic on f16 and bf16, single and in pairs: computed in doubles, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from tedsl.simulate.instructions.approximate import FUNCTIONS
from tedsl.simulate.instructions.compare import comparison
from tedsl.simulate.instructions.convert import doubles, rounded
from tedsl.simulate.instructions.floating import maximum, minimum, saturated, with_nan
from tedsl.simulate.instructions.operation import HALF, LOGIC, SPECIAL, Array, Operation, modifiers, unknown
from tedsl.simulate.instructions.rounding import odd_sum
from tedsl.simulate.ptx.syntax import Instruction

HALVES = frozenset(("f16", "bf16", "f16x2", "bf16x2"))
_EXACT: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, odd_sum), "sub": (2, lambda a, b: odd_sum(a, -b)), "mul": (2, np.multiply),
    "fma": (3, lambda a, b, c: odd_sum(a * b, c)),
    "min": (2, minimum), "max": (2, maximum), "abs": (1, np.abs), "neg": (1, np.negative)}


def arithmetic(instruction: Instruction) -> Operation:
    """The operation of add, sub, mul, fma, min, max, abs and neg on halves, and of those functions that approximate."""
    form, name = instruction.type, instruction.name
    found = modifiers(instruction, {"rn", "ftz", "sat", "relu", "NaN", "approx"})
    if name in FUNCTIONS:
        count, exact = 1, cast("Callable[..., Array]", FUNCTIONS[name])
    else:
        count, exact = _EXACT[name]
    if "NaN" in found:
        exact = with_nan(exact)
    if {"sat", "relu"} & found:
        exact = _clamped(exact, "sat" in found)
    if "ftz" in found and not form.startswith("bf") and name not in FUNCTIONS:
        raise unknown(instruction)
    single, half = _in_halves(exact, form.removesuffix("x2")), form.removesuffix("x2")
    function = in_pairs(single, half) if form.endswith("x2") else single
    held = "b32" if form.endswith("x2") else form
    return Operation(held, (held,) * count, function, SPECIAL if name in FUNCTIONS else HALF)


def _clamped(exact: Callable[..., Array], to_one: bool) -> Callable[..., Array]:
    if to_one:
        return lambda *values: saturated(exact(*values))
    return lambda *values: np.maximum(exact(*values), 0.0)


def _in_halves(exact: Callable[..., Array], form: str) -> Callable[..., Array]:
    """The function on halves that `exact` is on doubles."""
    return lambda *values: rounded(exact(*[doubles(one, form) for one in values]), form)


def halves_of(pair: Array, form: str) -> tuple[Array, Array]:
    """Returns the lower and the upper half of registers that hold two."""
    low, high = (pair & np.uint32(0xFFFF)).astype(np.uint16), (pair >> np.uint32(16)).astype(np.uint16)
    return (low, high) if form == "bf16" else (low.view(np.float16), high.view(np.float16))


def in_pairs(single: Callable[..., Array], form: str) -> Callable[..., Array]:
    """Returns the function on registers that hold two halves, of the one on halves."""
    def both(*values: Array) -> Array:
        parts = [halves_of(one, form) for one in values]
        low, high = (single(*[part[side] for part in parts]).view(np.uint16).astype(np.uint32) for side in (0, 1))
        return cast(Array, low | (high << np.uint32(16)))

    return both


def set_of(instruction: Instruction) -> Operation:
    """The operation of set on pairs of halves: 1.0 in each half where the comparison holds."""
    result, form = instruction.parts[-2:]
    if result != form or form != "f16x2" or len(instruction.parts) != 4:
        raise unknown(instruction)
    compare = comparison(instruction.parts[1], "f16")
    return Operation("b32", ("b32", "b32"), in_pairs(lambda a, b: compare(a, b).astype(np.float16), "f16"), LOGIC)
