"""Links libraries for Android with the compiler of its NDK, which the environment variable TVM_NDK_CC names, as in TVM."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tedsl.contrib import cc
from tedsl.errors import ModuleError, entries

__all__ = ["create_shared"]


def create_shared(output: str, objects: str | Sequence[str], options: Sequence[str] | None = None) -> None:
    """Links `objects` into the shared library `output` for Android: fcompile=ndk.create_shared of export_library."""
    compiler = os.environ.get("TVM_NDK_CC")
    if not compiler:
        raise ModuleError("ndk.create_shared: the environment variable TVM_NDK_CC does not name a compiler",
                          hint="make it the path of clang++ of a toolchain of the NDK")
    cc.create_shared(output, objects, ["-lm"] if options is None else options, cc=compiler)


entries(globals())
