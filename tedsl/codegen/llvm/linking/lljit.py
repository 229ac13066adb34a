"""LLVM's linker: it takes objects that other compilers made, and those of processors that `loader.py` does not know.

Each module becomes one library of an LLJIT, unloaded when the last reference to its `Library` is dropped. LLVM retains about
9 KB for every library it has linked, so an LLJIT takes 64 libraries, then a new one is created; it is disposed of with its last
library.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tedsl.codegen.llvm.linking.library import Library
from tedsl.errors import InternalError
from tedsl.runtime.fork import guarded_lock
from tedsl.runtime.interrupts import whole_destructors

_LIBRARIES_PER_JIT = 64
_lock = guarded_lock()
_names = itertools.count()
_dropped: deque[tuple[Any, _Linker]] = deque()


class _Linker:
    """An LLJIT with the number of libraries that it has linked and the number of those still alive."""

    def __init__(self) -> None:
        from llvmlite import binding

        initialize()
        # JITLink lays each library out in one piece. The older linker places sections apart and ends the process when they
        # come to stand more than 2 GB from each other, as in a program that maps large arrays between two builds.
        self.jit = binding.create_lljit_compiler(use_jit_link=True)
        self.taken = self.alive = 0


_linker: _Linker | None = None


def initialize() -> None:
    """Initialises LLVM for the host, once."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def link(images: Sequence[bytes], exports: Iterable[str], bound: Mapping[str, int]) -> Library:
    """Links objects whose undefined symbols have the addresses `bound`."""
    global _linker
    with _lock:
        _unload_dropped()
        if _linker is None or _linker.taken >= _LIBRARIES_PER_JIT:
            full, _linker = _linker, _Linker()
            if full is not None and full.alive == 0:
                _close(full)
        return _linked(_linker, images, exports, bound)


def _linked(linker: _Linker, images: Sequence[bytes], exports: Iterable[str], bound: Mapping[str, int]) -> Library:
    from llvmlite import binding

    builder = binding.JITLibraryBuilder()
    for image in images:
        builder.add_object_img(image)
    for name, address in bound.items():
        builder.import_symbol(name, address)
    wanted = list(exports)
    for name in wanted:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker.jit, f"tedsl.{next(_names)}")
    except RuntimeError as error:
        raise InternalError(f"LLVM could not link the machine code: {error}") from error
    linker.taken += 1
    linker.alive += 1
    library = Library({name: tracker[name] for name in wanted})
    weakref.finalize(library, _drop, tracker, linker).atexit = False  # at exit the process goes as a whole
    return library


def _drop(tracker: Any, linker: _Linker) -> None:
    """Marks a library as dropped once it is unreachable.

    Never waits for the lock, because garbage collection may run during a call into LLVM.
    """
    with whole_destructors():
        _dropped.append((tracker, linker))
        if _lock.acquire(blocking=False):
            try:
                _unload_dropped()
            finally:
                _lock.release()


def _unload_dropped() -> None:
    """Unloads the libraries that were dropped, and a full linker with its last library."""
    while _dropped:
        tracker, linker = _dropped.popleft()
        tracker.close()
        linker.alive -= 1
        if linker.alive == 0 and linker is not _linker:
            _close(linker)


def _close(linker: _Linker) -> None:
    linker.jit.close()
    _return_free_memory()


def _return_free_memory() -> None:
    """Returns memory that LLVM freed to the system, where the C library would keep most of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
