"""Links objects into the process and returns addresses: the only place where machine code enters the process.

Each module becomes one library of an LLJIT, unloaded when the last reference to its `Library` is dropped. LLVM retains about
9 KB for every library it has linked, so an LLJIT takes 64 libraries, then a new one is created; it is disposed of with its last
library. The runtime's own code (thread pool, workspaces, timer) is linked once and stays.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tedsl.codegen.llvm.linking.elf import defined_functions, undefined_symbols
from tedsl.errors import InternalError, TedslError
from tedsl.ir.walk.identity import digest
from tedsl.runtime import symbols
from tedsl.runtime.cache.store import RUNTIME, current_store
from tedsl.runtime.cache.versions import versions
from tedsl.runtime.fork import guarded_lock
from tedsl.runtime.interrupts import whole_destructors
from tedsl.target.host import host

_LIBRARIES_PER_JIT = 64
_lock = guarded_lock()  # re-entered: a library of the runtime is linked while one that needs it is
_names = itertools.count()
_dropped: deque[tuple[Any, _Linker]] = deque()


class Library:
    """Linked machine code. Its addresses are valid as long as it is referenced."""

    __slots__ = ("__weakref__", "_addresses")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._addresses = dict(addresses)

    def address(self, name: str) -> int:
        """Returns the address of the exported function `name`."""
        return self._addresses[name]


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
_runtime: dict[str, Library] = {}  # source -> library; never dropped: worker threads wait in this code
_runtime_linker: _Linker | None = None


def initialize() -> None:
    """Initialises LLVM for the host, once."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def link(image: bytes, exports: Iterable[str], *, beside: Sequence[bytes] = (), process: Collection[str] = (),
         elsewhere: Mapping[str, int] = MappingProxyType({})) -> Library:
    """Links the object `image` into the process and returns a Library with the addresses of `exports`.

    Refuses code that cannot be linked before linking anything.
    beside: objects of other compilers. process: functions that imported code takes from the libraries of this process.
    elsewhere: addresses of functions that the code calls and that the caller keeps alive.
    """
    global _linker
    if not sys.platform.startswith("linux"):
        raise TedslError(f"kernels run on Linux (x86-64 or AArch64); this is {sys.platform}",
                         hint="lower and get_source work here; run the kernel on Linux")
    known = {*process, *elsewhere, *(name for other in beside for name in defined_functions(other))}
    needed = {name: None for part in (image, *beside) for name in undefined_symbols(part)}
    bound = {name: _bind(name) for name in _checked([name for name in needed if name not in known])}
    bound |= {name: symbols.extern_address(name) or 0 for name in process} | dict(elsewhere)
    with _lock:
        _unload_dropped()
        if _linker is None or _linker.taken >= _LIBRARIES_PER_JIT:
            full, _linker = _linker, _Linker()
            if full is not None and full.alive == 0:
                _close(full)
        return _load(_linker, image, exports, bound, beside)


def _checked(names: list[str]) -> list[str]:
    unknown = sorted(name for name in names if not symbols.is_known(name))
    if unknown:
        raise InternalError(f"the machine code calls {', '.join(unknown)}, which tedsl does not provide")
    return names


def _bind(name: str) -> int:
    return runtime_address(name) if name in symbols.RUNTIME else symbols.address_of(name)


def _load(linker: _Linker, image: bytes, exports: Iterable[str], bound: Mapping[str, int],
          beside: Sequence[bytes] = ()) -> Library:
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(image)
    for other in beside:
        builder.add_object_img(other)
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


def runtime_address(name: str) -> int:
    """Returns the address of one of the runtime's own functions, compiled on first use."""
    global _runtime_linker
    source = symbols.RUNTIME[name]
    with _lock:
        if source not in _runtime:
            if _runtime_linker is None:
                _runtime_linker = _Linker()
            image = _compiled(symbols.provider(source)())
            bound = {n: symbols.address_of(n) for n in _checked(undefined_symbols(image))}
            _runtime[source] = _load(_runtime_linker, image, [n for n, s in symbols.RUNTIME.items() if s == source], bound)
        return _runtime[source].address(name)


def _compiled(text: str) -> bytes:
    """Returns the object of a text of the runtime, from the cache on disk if it is there."""
    store, environment = current_store(), versions()
    if store is None or environment is None:
        return _compile(text)
    key = digest(f"{environment}{host().triple} {text}".encode())
    pieces = store.load(key, RUNTIME)
    if pieces is None or "object" not in pieces:
        pieces = {"object": _compile(text)}
        store.save(key, RUNTIME, pieces)
    return pieces["object"]


def _compile(text: str) -> bytes:
    """Compiles a text of the runtime to an object for any machine of the host's architecture, without special instructions."""
    from llvmlite import binding

    initialize()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = binding.parse_assembly(text)
    module.verify()
    return bytes(machine.emit_object(module))
