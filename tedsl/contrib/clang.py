"""Compiles C and C++ to LLVM IR with clang: `create_llvm`, whose text goes to the pragma import_llvm; `find_clang`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from tedsl.codegen.llvm.outside.compile_c import llvm_text
from tedsl.contrib.utils import is_source_path
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError


def find_clang(required: bool = True) -> list[str]:
    """Returns the path of the clang that `create_llvm` runs, in a list; without one, none, or an error if `required`."""
    found = shutil.which("clang")
    if found is None and required:
        raise LoweringError("there is no clang on the PATH",
                            hint="install clang, or give the C code itself to the pragma import_c, which takes any compiler")
    return [] if found is None else [found]


def create_llvm(inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] | None = None,
                cc: str | None = None) -> str:
    """Returns the LLVM IR, as text, of one source or of the file at a path. output: a file that is written too.
    cc: the clang to use.

    Several sources are an error: compile and import them one by one.
    """
    sources = [inputs] if isinstance(inputs, str) else list(inputs) if isinstance(inputs, Sequence) else []
    if not isinstance(inputs, Sequence) or not all(isinstance(source, str) for source in sources):
        raise ArgumentTypeError(f"create_llvm: inputs is the code of a source or the path of its file, a str, not {inputs!r}")
    if len(sources) != 1:
        raise ArgumentError(f"create_llvm: {len(sources)} sources would be linked", hint="call it for each, import each text")
    if isinstance(options, str):
        raise ArgumentTypeError(f"create_llvm: options is a list of str, not {options!r}", hint='write ["-O2"]')
    text = llvm_text(_source(sources[0]), tuple(options or ()), cc)
    if output is not None:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def _source(given: str) -> str:
    if not is_source_path(given):
        return given
    if not os.path.exists(given):
        raise ArgumentError(f"create_llvm: there is no file {given!r}")
    with open(given, encoding="utf-8") as file:
        return file.read()
