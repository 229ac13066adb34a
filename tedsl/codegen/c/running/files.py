"""Modules in C as files: their text and its header, and why they have no other form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from tedsl.errors import ModuleError
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import no_options


def write_source(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes a `.c` file, and beside it the header; ModuleError for a module of another target."""
    no_options(options, path)
    if module.backend != "c":
        raise ModuleError(f"{path.name!r} is a file of C, and this module was built for target {module.backend!r}",
                          hint='build(..., target="c"); or write ".ll", ".o", ".so"')
    path.write_text(module.get_source("c"), encoding="utf-8")
    path.with_suffix(".h").write_text(module.get_source("h"), encoding="utf-8")


def write_declarations(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes the header of a module in C."""
    no_options(options, path)
    path.write_text(module.get_source("h"), encoding="utf-8")


def refuse_image() -> NoReturn:
    """Raises ModuleError: compiled code of a module in C belongs to the compiler that made it."""
    raise ModuleError("a module in C is written as text, which its users compile",
                      hint='export_library("kernels.c") writes it and its header; target="llvm" makes libraries and wheels')
