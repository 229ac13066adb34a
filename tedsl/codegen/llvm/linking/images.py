"""Images become modules: their code is linked into the process, and its entry points become callable.

Freshly compiled code, code from a file and code from the cache on disk take this path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.llvm.debug.watchers import NOBODY, Watchers
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.linking.kept import laid_out_pieces
from tedsl.codegen.llvm.linking.library import Library
from tedsl.codegen.llvm.linking.loader import LaidOut
from tedsl.ir.func import PrimFunc
from tedsl.record import record
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.layout import array_layout
from tedsl.runtime.module import Module
from tedsl.runtime.modules.image import Image
from tedsl.runtime.modules.linkable import Head, Linkable, linkable
from tedsl.target.target import Target


@record
class Sources:
    """What a module is compiled from. texts: functions that return the text of each format. functions: returns the functions
    after all passes, each in its versions; None where only texts are known.
    """

    texts: Mapping[str, Callable[[], str]]
    functions: Callable[[], Sequence[PrimFunc]] | None = None


def linked_module(code: Linkable, sources: Sources, target: Target, again: Callable[[], Image],
                  watchers: Watchers = NOBODY, code_key: str = "", laid: LaidOut | None = None) -> Module:
    """Links `code` into the process and returns its functions.

    again: returns the image for a file, with all its texts.
    watchers: who is told about the code. code_key: of the image in the cache on disk. laid: the code laid out, if it is known.
    """
    layout = None if code.layout is None else array_layout()
    has_entries = layout is not None and layout.offsets == code.layout
    exports = _exports(code, has_entries)
    library = jit.link(code.code, exports, beside=code.beside, process=code.process, laid=laid)
    watchers.tell(code.code, exports[0], library.address(exports[0]), library)
    checked = {k.name: _KernelCall(k, library) for k in code.kernels}
    functions = {k.name: _function(checked[k.name], k, library, layout is not None, has_entries) for k in code.kernels}
    return Module(functions, checked, sources.texts, target, image=again, code_key=code_key, loops=sources.functions)


def _function(call: CheckedCall, kernel: Head, library: Library, shared: bool, own: bool) -> Callable[..., Any]:
    """What a program calls for `kernel`. shared: whether the entry points that kernels share can be used here; own: those that
    were compiled for one kernel.
    """
    if kernel.shared is not None:
        return call.with_shared_entry(kernel.shared.table, jit.shared_entry_address(kernel.shared.form)) if shared else call
    return call.with_entry(library.address(f"{kernel.name}.entry")) if own else call


def image_pieces(image: Image) -> dict[str, bytes]:
    """Returns the code of `image` laid out, as pieces of bytes; none if LLVM's linker has to link it."""
    return {} if image.beside else laid_out_pieces(image.code, _exports(linkable(image), image.layout is not None))


def _exports(code: Linkable, has_entries: bool) -> list[str]:
    """The symbols that are asked for: of functions, and of their own entry points for arrays if they are used."""
    exports = [f"{name}.call" for k in code.kernels for name in _versions(k)]
    return exports + [f"{k.name}.entry" for k in code.kernels if k.shared is None] if has_entries else exports


def _versions(kernel: Head) -> list[str]:
    return [kernel.name, kernel.name + COMPACT] if kernel.has_compact else [kernel.name]


class _KernelCall(CheckedCall):
    """The call of a linked kernel. What it needs to check arguments is read when it is first asked for."""

    _READ_LATER = ("signature", "_compact_scalars", "_messages")

    def __init__(self, kernel: Head, library: Library) -> None:
        compact = library.address(f"{kernel.name}{COMPACT}.call") if kernel.has_compact else 0
        self._link(library, library.address(f"{kernel.name}.call"), compact,
                   functools.partial(jit.runtime_address, "tedsl_time_calls"))
        self._head = kernel

    @property
    def described(self) -> tuple[str, str]:
        return self._head.name, self._head.described

    def __getattr__(self, name: str) -> Any:
        if name not in self._READ_LATER:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        whole = self._head.whole()
        self._check_by(whole.signature, whole.compact_scalars, whole.messages)
        return self.__dict__[name]
