"""Modules by the names of TVM's files: `from tedsl.tir.op import exp` finds what `tedsl.tir` has.

TVM has a file for what stands in one module of names here. The names of such files are entered when the module is imported, and
cost nothing then. An attribute of the same name, as the function `generic_func` of `tedsl.target`, stays what it is.
"""

from __future__ import annotations

import sys
from typing import Any


def import_as(names: dict[str, Any], *files: str) -> None:
    """Makes a module what an import of each of `files`, paths below it, finds. names: the variables of the module."""
    own = str(names["__name__"])
    for file in files:
        sys.modules[f"{own}.{file}"] = sys.modules[own]
        if "." not in file:
            names.setdefault(file, sys.modules[own])
