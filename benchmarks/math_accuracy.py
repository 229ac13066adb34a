"""`python -m benchmarks.math_accuracy [name ...]`: the largest error of the float32 functions over all 2**32 arguments, with
and without fused multiply-add.

The reference is numpy's (erf: scipy's) float64. Takes one to five minutes a function on one core; prints a line each.
With `--float64` first: over 10**6 float64 arguments stratified by exponent, half as many near 0, and as many again around those
with the largest errors so far; the reference is the long double of x86 (erf: mpmath, 10**5 arguments). Seconds a function.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tests.codegen.math_harness import compiled, floats64, reference, worst_ulp

NAMES = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "sin", "cos", "tan",
         "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
CHUNK = 2**22


def worst_of(name: str) -> tuple[float, float]:
    """(ulp, argument) of the largest error over every float32."""
    functions = [compiled(name, 32, 16, True), compiled(name, 32, 4, False)]
    worst = (0.0, 0.0)
    for begin in range(0, 2**32, CHUNK):
        x = np.arange(begin, begin + CHUNK, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            exact = reference(name, x.astype("float64"))
            for function in functions:
                error, at = worst_ulp(function(x), exact)
                worst = max(worst, (error, float(x[at])))
    return worst


def exact_erf(x: np.ndarray) -> np.ndarray:
    """erf in long doubles, by mpmath; NaN stays NaN."""
    import mpmath

    def one(value: float) -> np.longdouble:
        if not np.isfinite(value):
            return np.longdouble(np.sign(value))
        exact = mpmath.erf(mpmath.mpf(value))
        high = float(exact)
        return np.longdouble(high) + np.longdouble(float(exact - high))

    with mpmath.workprec(200):
        return np.array([one(float(value)) for value in x])


def worst_of_float64(name: str) -> tuple[float, float]:
    """(ulp, argument) of the largest error over the stratified float64, and over others near it."""
    functions, worst = [compiled(name, 64, 8, True), compiled(name, 64, 2, False)], (0.0, 1.0)
    x, rng = floats64(10**5 if name == "erf" else 10**6), np.random.default_rng(0)
    for spread in (0.0, 0.1, 0.03, 0.01, 0.003):
        if spread:
            x = worst[1] * rng.uniform(1 - spread, 1 + spread, len(x) // 4)
        exact = exact_erf(x) if name == "erf" else reference(name, x.astype(np.longdouble))
        for function in functions:
            error, at = worst_ulp(function(x), exact)
            worst = max(worst, (error, float(x[at])))
    return worst


if __name__ == "__main__":
    wide = "--float64" in sys.argv
    for name in [a for a in sys.argv[1:] if a != "--float64"] or NAMES:
        start = time.perf_counter()
        ulp, x = worst_of_float64(name) if wide else worst_of(name)
        print(f"{name:8s} {ulp:.3f} ulp at {x!r} ({time.perf_counter() - start:.0f} s)", flush=True)
