"""Hybrid script: names only. `script` makes a program of loops from a Python function."""

from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.hybrid.script import script

__all__ = ["HybridOp", "script"]
