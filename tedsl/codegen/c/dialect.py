"""The dialect of C that is written: how vectors, parallel loops and mathematical functions are spelled.

All that a language of the C family says in its own way is asked here, so that a second language is a second Dialect.
"""

from __future__ import annotations

from tedsl.codegen.c.text.spelling import AS_IN_C, Spelling
from tedsl.record import record
from tedsl.target.choices import chosen
from tedsl.target.target import Target

CHOICES = {"vectors": ("loops", "gcc"), "math": ("libm", "own"), "parallel": ("launcher", "omp", "serial")}


@record
class Dialect:
    """C99 that a C++ compiler takes too.

    vectors: "loops" of a fixed number of lanes, or vector types of "gcc" (which clang has too) or of "opencl". math: functions
    of "libm", or our "own" ones. parallel: parallel loops call a "launcher", are annotated for "omp", or run "serial".
    fma: whether fused multiply-adds are an instruction of the machine.
    """

    vectors: str = "loops"
    math: str = "libm"
    parallel: str = "launcher"
    fma: bool = False

    helper: str = "static inline"  # before a function that is used in this file only
    restrict: str = "TEDSL_RESTRICT"  # of a pointer whose memory no other pointer reaches
    zeros: str = " = {0}"  # of an array that is written under conditions: compilers warn where that is all
    declares: bool = True  # functions of others are declared before they are called
    spelling: Spelling = AS_IN_C


def dialect_of(target: Target) -> Dialect:
    """Returns the dialect that the options of `target` choose; ArgumentError for a choice that there is not."""
    vectors, math, parallel = (chosen(target, option, known) for option, known in CHOICES.items())
    return Dialect(vectors, math, parallel, target.has_fma)
