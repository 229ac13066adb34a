"""Mathematical functions of `-math=fast`: the approximations that the device has, for float32 and what is computed in it.

    exp(x)  =  ex2.approx(x * log2(e))        relative error some 2**-22 of the power, for an exponent that was rounded once

Errors by the PTX ISA (the sections of each instruction): ex2 2**-22.5 relative; lg2 2**-22.6 absolute on (0.5, 2), relative
elsewhere; sin and cos 2**-20.5 absolute on [-2 pi, 2 pi], unbounded far away; tanh 2**-11 relative; rsqrt 2**-22.9, sqrt 2**-23
relative; rcp 1 ulp; div.full 2 ulp. Powers of negative numbers are NaN. float64 has no such instructions: it keeps our own
functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tedsl.codegen.formulas.exponential import LOG2_E
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.expr import emit_division
from tedsl.codegen.llvm.types import float_text, register_type
from tedsl.codegen.llvm.values.floats import rounded
from tedsl.ir.expr import Call, Div, Expr
from tedsl.target.choices import chosen
from tedsl.target.target import Target

CHOICES = ("own", "fast")
_TANH_SINCE = 75  # sm


def is_fast(target: Target) -> bool:
    """Tells whether functions of float32 are the approximations of the device: `-math=fast`, as nvcc's --use_fast_math."""
    return chosen(target, "math", CHOICES) == "fast"


class _Lane:
    """Writes instructions on single floats; constants are Python's floats."""

    def __init__(self, out: Emitter) -> None:
        self.out = out

    def ptx(self, name: str, *args: str) -> str:
        """The result of the instruction `name`."""
        places, kinds = ", ".join(f"${k}" for k in range(len(args) + 1)), ",".join(["=f", *("f" for _ in args)])
        return self.out.assign(f'call float asm "{name} {places};", "{kinds}"({", ".join(f"float {a}" for a in args)})')

    def times(self, a: str, by: float) -> str:
        return self.out.assign(f"fmul float {a}, {float_text(by, 32)}")

    def plus(self, a: str, by: float) -> str:
        return self.out.assign(f"fadd float {a}, {float_text(by, 32)}")

    def exp2(self, a: str) -> str:
        return self.ptx("ex2.approx.f32", a)

    def sigmoid(self, a: str) -> str:
        """1 / (1 + exp(-a))"""
        return self.ptx("rcp.approx.f32", self.plus(self.exp2(self.times(a, -LOG2_E)), 1.0))

    def tanh(self, a: str) -> str:
        """tanh.approx where the device has it; else 2 / (1 + exp(-2 a)) - 1"""
        if int(self.out.target.cpu.removeprefix("sm_")) >= _TANH_SINCE:
            return self.ptx("tanh.approx.f32", a)
        return self.plus(self.times(self.sigmoid(self.times(a, 2.0)), 2.0), -1.0)


_FUNCTIONS: dict[str, Callable[..., str]] = {
    "exp": lambda lane, a: lane.exp2(lane.times(a, LOG2_E)),
    "exp2": _Lane.exp2,
    "exp10": lambda lane, a: lane.exp2(lane.times(a, math.log2(10.0))),
    "log": lambda lane, a: lane.times(lane.ptx("lg2.approx.f32", a), math.log(2.0)),
    "log2": lambda lane, a: lane.ptx("lg2.approx.f32", a),
    "log10": lambda lane, a: lane.times(lane.ptx("lg2.approx.f32", a), math.log10(2.0)),
    "sin": lambda lane, a: lane.ptx("sin.approx.f32", a),
    "cos": lambda lane, a: lane.ptx("cos.approx.f32", a),
    "tan": lambda lane, a: lane.ptx("div.full.f32", lane.ptx("sin.approx.f32", a), lane.ptx("cos.approx.f32", a)),
    "tanh": _Lane.tanh,
    "sigmoid": _Lane.sigmoid,
    "sqrt": lambda lane, a: lane.ptx("sqrt.approx.f32", a),
    "rsqrt": lambda lane, a: lane.ptx("rsqrt.approx.f32", a),
    "pow": lambda lane, a, b: lane.exp2(lane.out.assign(f"fmul float {b}, {lane.ptx('lg2.approx.f32', a)}")),
}


def emit_fast(out: Emitter, e: Call) -> str | None:
    """Emits a function by the approximations of the device; None where the target or the function has none."""
    write = _FUNCTIONS.get(e.op.short)
    if write is None or not e.dtype.is_float or e.dtype.bits > 32 or not is_fast(out.target):
        return None
    return _by_lanes(out, e, e.args, write)


def emit_fast_division(out: Emitter, e: Div) -> str:
    """Emits a division, of float32 by `div.full` if the target asks for fast functions."""
    if not e.dtype.is_float or e.dtype.bits > 32 or not is_fast(out.target):
        return emit_division(out, e)
    return _by_lanes(out, e, (e.a, e.b), lambda lane, a, b: lane.ptx("div.full.f32", a, b))


def _by_lanes(out: Emitter, e: Expr, args: Sequence[Expr], write: Callable[..., str]) -> str:
    lane, values, t = _Lane(out), [out.value(arg) for arg in args], register_type(e.dtype)
    if e.dtype.lanes == 1:
        return rounded(out, e.dtype, write(lane, *values))
    result = "poison"
    for k in range(e.dtype.lanes):
        one = write(lane, *(out.assign(f"extractelement {t} {value}, i32 {k}") for value in values))
        result = out.assign(f"insertelement {t} {result}, float {one}, i32 {k}")
    return rounded(out, e.dtype, result)
