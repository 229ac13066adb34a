"""Links objects into the process and returns addresses: the only place where machine code enters the process.

Each module becomes one library, whose memory is given back when the last reference to its `Library` is dropped. The runtime's
own code (thread pool, workspaces, timer) is linked once and stays.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from tedsl.cache.store import RUNTIME, current_store
from tedsl.codegen.llvm.linking import lljit
from tedsl.codegen.llvm.linking.elf import Object, defined_functions
from tedsl.codegen.llvm.linking.library import Library
from tedsl.codegen.llvm.linking.loader import NotUnderstood, load
from tedsl.digest import digest
from tedsl.errors import InternalError, TedslError
from tedsl.runtime import symbols
from tedsl.runtime.fork import guarded_lock
from tedsl.runtime.interrupts import whole_destructors
from tedsl.runtime.versions import versions
from tedsl.target.executable import Pages
from tedsl.target.host import host

_lock = guarded_lock()  # re-entered: a library of the runtime is linked while one that needs it is
_runtime: dict[str, Library] = {}  # source -> library; never dropped: worker threads wait in this code


def link(image: bytes, exports: Iterable[str], *, beside: Sequence[bytes] = (), process: Collection[str] = (),
         elsewhere: Mapping[str, int] = MappingProxyType({})) -> Library:
    """Links the object `image` into the process and returns a Library with the addresses of `exports`.

    Refuses code that cannot be linked before linking anything.
    beside: objects of other compilers. process: functions that imported code takes from the libraries of this process.
    elsewhere: addresses of functions that the code calls and that the caller keeps alive.
    """
    if not sys.platform.startswith("linux"):
        raise TedslError(f"kernels run on Linux (x86-64 or AArch64); this is {sys.platform}",
                         hint="lower and get_source work here; run the kernel on Linux")
    known = {*process, *elsewhere, *(name for other in beside for name in defined_functions(other))}
    parts = [Object(part) for part in (image, *beside)]
    needed = {name: None for part in parts for name in part.undefined}
    bound = {name: _bind(name) for name in _checked([name for name in needed if name not in known])}
    bound |= {name: symbols.extern_address(name) or 0 for name in process} | dict(elsewhere)
    return _linked(parts, exports, bound)


def _checked(names: list[str]) -> list[str]:
    unknown = sorted(name for name in names if not symbols.is_known(name))
    if unknown:
        raise InternalError(f"the machine code calls {', '.join(unknown)}, which tedsl does not provide")
    return names


def _bind(name: str) -> int:
    return runtime_address(name) if name in symbols.RUNTIME else symbols.address_of(name)


def _linked(images: Sequence[Object], exports: Iterable[str], bound: Mapping[str, int]) -> Library:
    wanted = list(exports)
    if len(images) == 1:
        try:
            loaded = load(images[0], wanted, bound)
        except NotUnderstood:
            pass
        else:
            library = Library(loaded.addresses)
            weakref.finalize(library, _release, loaded.pages).atexit = False  # at exit the process goes as a whole
            return library
    return lljit.link([image.image for image in images], wanted, bound)


def _release(pages: Pages) -> None:
    with whole_destructors():
        pages.release()


def runtime_address(name: str) -> int:
    """Returns the address of one of the runtime's own functions, compiled on first use."""
    source = symbols.RUNTIME[name]
    with _lock:
        if source not in _runtime:
            image = Object(_compiled(symbols.provider(source)()))
            bound = {n: symbols.address_of(n) for n in _checked(image.undefined)}
            _runtime[source] = _linked([image], [n for n, s in symbols.RUNTIME.items() if s == source], bound)
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

    lljit.initialize()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = binding.parse_assembly(text)
    module.verify()
    return bytes(machine.emit_object(module))
