"""Hybrid script, as a namespace: `script` makes a program of loops from a Python function, `build` a script from a schedule."""

from typing import TYPE_CHECKING

from tedsl.aliases import import_as
from tedsl.errors import entries
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.hybrid.script import script

if TYPE_CHECKING:
    from tedsl.lang.hybrid.names import RUNTIME as HYBRID_GLOBALS
    from tedsl.lower.hybrid.module import HybridModule
    from tedsl.lower.hybrid.module import build_hybrid as build

__all__ = ["HYBRID_GLOBALS", "HybridModule", "HybridOp", "build", "script"]

entries(globals(), later={"HYBRID_GLOBALS": "tedsl.lang.hybrid.names:RUNTIME",
                          "HybridModule": "tedsl.lower.hybrid.module:HybridModule",
                          "build": "tedsl.lower.hybrid.module:build_hybrid"})
import_as(globals(), "calls", "module", "parser", "preprocessor", "runtime", "util", "utils")
