"""How long builds take, beside numba's compilation of a*b+c in the same run; and how much of it is schedule and lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tedsl
from benchmarks.case import Case, Contender, Goal, Maker, maker
from benchmarks.contenders.with_numba import numba_or_none
from benchmarks.programs import PROGRAMS

PARTS = {"vector add": 0.06, "softmax": 0.12, "packed matmul": 0.3, "conv2d + relu": 0.5}  # of numba's time
LOWERING = 3.0  # a build takes at least so many times longer than its schedule and lowering


def numba_compiles() -> Callable[[], object] | None:
    """A call that compiles a*b+c for float32 vectors; None without numba."""
    numba = numba_or_none()
    if numba is None:
        return None
    vector = numba.types.Array(numba.float32, 1, "C")
    a = np.ones(4, "float32")

    def compiles() -> object:
        def multiply_add(a: Any, b: Any, c: Any, d: Any) -> None:
            for i in range(a.size):
                d[i] = a[i] * b[i] + c[i]

        return numba.njit((vector,) * 4, fastmath=True)(multiply_add)(a, a, a, a)

    return compiles


def build(name: str) -> Case:
    """Schedule, lower and build, each time from the start."""
    program, numba = PROGRAMS[name], numba_compiles()
    contenders = {"tedsl": Contender(lambda: tedsl.build(*program()))}
    if numba is not None:
        contenders["numba a*b+c"] = Contender(numba)
    return Case("build", contenders, goal=Goal(1 / PARTS[name]))


def lower(name: str) -> Case:
    """Schedule and lower, beside the whole build."""
    program = PROGRAMS[name]
    return Case("build", {"tedsl": Contender(lambda: tedsl.lower(*program())),
                          "the build": Contender(lambda: tedsl.build(*program()))}, goal=Goal(LOWERING))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite, which one thread runs."""
    if threads > 1:
        return []
    made = [maker(f"build {name}", build, name) for name in PARTS]
    return made + [maker(f"schedule + lower {name}", lower, name) for name in PROGRAMS]
