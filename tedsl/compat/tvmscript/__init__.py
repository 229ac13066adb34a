"""TVMScript: functions of loops written as Python functions, as `mod.script()` prints them, and as programs write them by hand.

    from tedsl.script import tir as T

    @T.prim_func
    def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.serial(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0

    f = tedsl.build(add)

A block becomes what it means: its axes stand for their values, and `T.init()` runs where the axes of reductions begin.
`tir.Schedule`, which schedules blocks, is not part of tedsl: schedules are of `te`.

functions.py: scripts as functions; texts.py: as texts; parser.py: their statements; blocks.py: what blocks become;
expressions.py: what statements read; declarations.py: what the names of `T` make; tir.py, axis.py, ir.py: those names.
"""

from tedsl.compat.tvmscript import ir, tir
from tedsl.compat.tvmscript.ir import ir_module
from tedsl.compat.tvmscript.texts import from_source

__all__ = ["from_source", "ir", "ir_module", "tir"]
