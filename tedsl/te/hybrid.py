"""Hybrid script, as a namespace: `script` makes a program of loops from a Python function, `build` a script from a schedule."""

from tedsl.errors import entries
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.hybrid.script import script
from tedsl.lower.hybrid.module import HybridModule
from tedsl.lower.hybrid.module import build_hybrid as build

__all__ = ["HybridModule", "HybridOp", "build", "script"]

entries(globals())
