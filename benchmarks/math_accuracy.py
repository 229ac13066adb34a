"""`python -m benchmarks.math_accuracy [name ...]`: the largest error of the float32 functions over all 2**32 arguments.

The reference is numpy's (erf: scipy's) float64. Takes one to three minutes a function on one core; prints a line each.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tests.codegen.math_harness import compiled, reference, worst_ulp

NAMES = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "sin", "cos", "tan",
         "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
CHUNK = 2**22


def worst_of(name: str) -> tuple[float, float]:
    """(ulp, argument) of the largest error over every float32."""
    function = compiled(name, 32, 16, True)
    worst = (0.0, 0.0)
    for begin in range(0, 2**32, CHUNK):
        x = np.arange(begin, begin + CHUNK, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            error, at = worst_ulp(function(x), reference(name, x.astype("float64")))
        worst = max(worst, (error, float(x[at])))
    return worst


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        start = time.perf_counter()
        ulp, x = worst_of(name)
        print(f"{name:8s} {ulp:.3f} ulp at {x!r} ({time.perf_counter() - start:.0f} s)", flush=True)
