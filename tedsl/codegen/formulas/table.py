"""The mathematical functions that have formulas, and the error that each may have. docs/math.md shows the table."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.formulas import exponential, logarithm, power, special
from tedsl.codegen.formulas.language import FunctionBody, Value

Formula = Callable[..., Value]

# float32 formulas of their own; what is missing here is computed in float64 and rounded once.
SINGLE: dict[str, Formula] = {
    "exp": exponential.exp, "exp2": exponential.exp2, "log": logarithm.log_single, "tanh": exponential.tanh,
    "exp10": exponential.exp10, "sinh": exponential.sinh_single, "cosh": exponential.cosh_single,
    "log2": logarithm.log2_single, "log10": logarithm.log10_single, "log1p": logarithm.log1p_single,
    "asinh": logarithm.asinh_single, "acosh": logarithm.acosh_single, "atanh": logarithm.atanh_single,
    "sigmoid": exponential.sigmoid, "erf": special.erf_single, "asin": special.asin_single, "acos": special.acos_single,
    "atan": special.atan_single, "atan2": special.atan2_single, "pow": power.power_single, "hypot": power.hypot_single,
}
DOUBLE: dict[str, Formula] = {
    "exp": exponential.exp, "exp2": exponential.exp2, "exp10": exponential.exp10, "log": logarithm.log,
    "log2": logarithm.log2, "log10": logarithm.log10, "log1p": logarithm.log1p, "tanh": exponential.tanh,
    "sigmoid": exponential.sigmoid, "erf": special.erf, "sinh": exponential.sinh, "cosh": exponential.cosh,
    "asinh": logarithm.asinh, "acosh": logarithm.acosh, "atanh": logarithm.atanh, "asin": special.asin,
    "acos": special.acos, "atan": special.atan, "pow": power.power, "atan2": special.atan2, "hypot": power.hypot,
}
BOUNDED: dict[str, Formula] = {"exp_bounded": exponential.exp_bounded}  # where arguments allow it
TRIGONOMETRIC = ("sin", "cos", "tan")
BINARY = ("pow", "atan2", "hypot", "fmod")
# Scalar calls of the C library, lane by lane: (function, dtype). Their symbols are provided at link time.
LIBM: dict[tuple[str, int], str] = {("fmod", 64): "fmod", ("fmod", 32): "fmodf"}
# The largest error in ulp that the tests allow, a little above what was measured: (float32, float64)
MAX_ULP: dict[str, tuple[float, float]] = {
    "acos": (1.3, 1.3), "acosh": (1.2, 2.0), "asin": (1.3, 0.8), "asinh": (1.2, 2.0), "atan": (1.4, 2.0),
    "atanh": (1.2, 1.6), "cos": (1.0, 0.9), "cosh": (1.6, 1.6), "erf": (1.3, 1.3), "exp": (1.1, 1.1), "exp10": (1.3, 1.5),
    "exp2": (1.1, 1.1), "log": (1.0, 0.9), "log10": (1.8, 0.8), "log1p": (1.0, 1.0), "log2": (1.5, 0.9),
    "rsqrt": (1.6, 1.6), "sigmoid": (1.9, 1.8), "sin": (1.0, 0.9), "sinh": (1.5, 1.8), "tan": (1.3, 1.7),
    "tanh": (1.2, 1.5), "pow": (1.2, 1.2), "atan2": (1.7, 2.0), "hypot": (0.6, 0.8), "fmod": (0.0, 0.0),
}


def has_function(name: str) -> bool:
    """Tells whether there is a function `name`, given without the prefix tir."""
    return name in DOUBLE or name in TRIGONOMETRIC or name in BINARY or name in BOUNDED or name == "rsqrt"


def formula(name: str, bits: int, out: FunctionBody, arguments: list[Value]) -> Value:
    """Writes the function `name` of float32 or float64, by its own formula or that of float64, and returns its value."""
    if name == "rsqrt":
        return 1.0 / arguments[0].sqrt()
    if name in BOUNDED:
        return BOUNDED[name](out, *arguments)
    if bits == 64:
        return DOUBLE[name](out, *arguments)
    if name in SINGLE:
        return SINGLE[name](out, *arguments)
    return DOUBLE[name](out, *(a.widen() for a in arguments)).narrow()
