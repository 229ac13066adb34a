"""Functions that hardware approximates: ex2, lg2, sin, cos, tanh, rsqrt, and rcp, sqrt, div with `.approx`.

The model of all of them: the function is computed in doubles and rounded once. Hardware may differ in the last two bits
or so of a float; what a program makes of such results must not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tedsl.simulate.instructions.operation import SPECIAL, Array, Operation, modifiers, unknown
from tedsl.simulate.instructions.rounding import flushed
from tedsl.simulate.ptx.syntax import Instruction

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "rsqrt": lambda a: 1.0 / np.sqrt(a)}


def approximation(instruction: Instruction) -> Operation:
    """The operation of a function of `FUNCTIONS`."""
    form = instruction.type
    found = modifiers(instruction, {"approx", "ftz"})
    if "approx" not in found or form not in ("f32", "f64"):
        raise unknown(instruction)
    function, ftz = FUNCTIONS[instruction.name], "ftz" in found and form == "f32"

    def nearest(a: Array) -> Array:
        result = function((flushed(a) if ftz else a).astype(np.float64)).astype(a.dtype)
        return flushed(result) if ftz else result

    return Operation(form, (form,), nearest, SPECIAL)
