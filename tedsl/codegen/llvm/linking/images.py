"""Images become modules: their code is linked into the process, and its entry points become callable.

Both freshly compiled code and code from a file take this path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.llvm.debug.watchers import NOBODY, Watchers
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.linking.library import Library
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.layout import array_layout
from tedsl.runtime.module import Module
from tedsl.runtime.modules.image import Image, KernelRecord
from tedsl.target.target import Target

Sources = Mapping[str, Callable[[], str]]


def linked_module(image: Image, sources: Sources, target: Target, again: Callable[[], Image],
                  watchers: Watchers = NOBODY, code_key: str = "") -> Module:
    """Links `image` into the process and returns its functions.

    sources: functions that return the source text in each format. again: returns the image for a file, with all its texts.
    watchers: who is told about the code. code_key: of the image in the cache on disk.
    """
    layout = array_layout()
    has_entries = image.layout is not None and layout is not None and astuple(layout) == image.layout
    exports = [f"{name}.call" for k in image.kernels for name in _versions(k)]
    exports += [f"{k.name}.entry" for k in image.kernels] if has_entries else []
    library = jit.link(image.code, exports, beside=image.beside, process=image.process)
    watchers.tell(image.code, exports[0], library.address(exports[0]), library)
    checked = {k.name: _checked_call(k, library) for k in image.kernels}
    functions: dict[str, Callable[..., Any]] = {
        name: call.with_entry(library.address(f"{name}.entry")) if has_entries else call for name, call in checked.items()}
    return Module(functions, checked, sources, target, image=again, code_key=code_key)


def _versions(kernel: KernelRecord) -> list[str]:
    return [kernel.name] if kernel.compact_scalars is None else [kernel.name, kernel.name + COMPACT]


def _checked_call(kernel: KernelRecord, library: Library) -> CheckedCall:
    compact = 0 if kernel.compact_scalars is None else library.address(f"{kernel.name}{COMPACT}.call")
    return CheckedCall(kernel.signature, library, library.address(f"{kernel.name}.call"), compact,
                       kernel.compact_scalars or (), kernel.messages,
                       functools.partial(jit.runtime_address, "tedsl_time_calls"))
