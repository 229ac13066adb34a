"""Links objects into the process and returns addresses: the only place where machine code enters the process.

Each module becomes one library, whose memory is given back when the last reference to its `Library` is dropped. The runtime's
own code (thread pool, workspaces, timer) is linked once and stays.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from tedsl.cache import carried
from tedsl.cache.store import RUNTIME
from tedsl.codegen.llvm.linking import lljit
from tedsl.codegen.llvm.linking.elf import Object, defined_functions, read
from tedsl.codegen.llvm.linking.kept import laid_out_of, laid_out_pieces
from tedsl.codegen.llvm.linking.library import Library
from tedsl.codegen.llvm.linking.loader import LaidOut, NotUnderstood, lay_out, load
from tedsl.digest import digest
from tedsl.errors import InternalError, TedslError
from tedsl.runtime import symbols
from tedsl.runtime.arguments.array_entry import SHARED_ENTRY, form_of
from tedsl.runtime.fork import guarded_lock
from tedsl.runtime.interrupts import whole_destructors
from tedsl.runtime.layout import array_layout
from tedsl.runtime.versions import versions
from tedsl.target.executable import Pages
from tedsl.target.host import host

_lock = guarded_lock()  # re-entered: a library of the runtime is linked while one that needs it is
_runtime: dict[str, Library] = {}  # by source, or form of an entry point; never dropped: worker threads wait in this code


def link(image: bytes, exports: Iterable[str], *, beside: Sequence[bytes] = (), process: Collection[str] = (),
         elsewhere: Mapping[str, int] = MappingProxyType({}), laid: LaidOut | None = None) -> Library:
    """Links the object `image` into the process and returns a Library with the addresses of `exports`.

    Refuses code that cannot be linked before linking anything.
    beside: objects of other compilers. process: functions that imported code takes from the libraries of this process.
    elsewhere: addresses of functions that the code calls and that the caller keeps alive. laid: the object laid out, which is
    read instead of it.
    """
    if not sys.platform.startswith("linux"):
        raise TedslError(f"kernels run on Linux (x86-64 or AArch64); this is {sys.platform}",
                         hint="lower and get_source work here; run the kernel on Linux")
    known = {*process, *elsewhere, *(name for other in beside for name in defined_functions(other))}
    given = {name: symbols.extern_address(name) or 0 for name in process} | dict(elsewhere)
    if laid is not None and not beside:
        placed = _placed(laid, _bound([name for name in laid.undefined if name not in known]) | given)
        if placed is not None:
            return placed
    parts = [read(part) for part in (image, *beside)]
    needed = {name: None for part in parts for name in part.undefined}
    return _linked(parts, exports, _bound([name for name in needed if name not in known]) | given)


def _bound(names: list[str]) -> dict[str, int]:
    """The addresses of symbols that tedsl provides."""
    return {name: _bind(name) for name in _checked(names)}


def _checked(names: list[str]) -> list[str]:
    unknown = sorted(name for name in names if not symbols.is_known(name))
    if unknown:
        raise InternalError(f"the machine code calls {', '.join(unknown)}, which tedsl does not provide")
    return names


def _bind(name: str) -> int:
    return runtime_address(name) if name in symbols.RUNTIME else symbols.address_of(name)


def _linked(images: Sequence[Object], exports: Iterable[str], bound: Mapping[str, int]) -> Library:
    wanted = list(exports)
    try:
        library = _placed(lay_out(images[0], wanted), bound) if len(images) == 1 else None
    except NotUnderstood:
        library = None
    return library or lljit.link([image.image for image in images], wanted, bound)


def _placed(laid: LaidOut, bound: Mapping[str, int]) -> Library | None:
    """The library of a laid-out object; None where the system refuses the memory."""
    try:
        loaded = load(laid, bound)
    except NotUnderstood:
        return None
    library = Library(loaded.addresses)
    weakref.finalize(library, _release, loaded.pages).atexit = False  # at exit the process goes as a whole
    return library


def _release(pages: Pages) -> None:
    with whole_destructors():
        pages.release()


def runtime_address(name: str) -> int:
    """Returns the address of one of the runtime's own functions, compiled on first use."""
    source = symbols.RUNTIME[name]
    with _lock:
        if source not in _runtime:
            exports = [n for n, s in symbols.RUNTIME.items() if s == source]
            text = symbols.provider(source)()
            _runtime[source] = _runtime_library(text, lambda: text, exports)
        return _runtime[source].address(name)


def shared_entry_address(form: str) -> int:
    """Returns the address of the entry point for kernels of this form, compiled on first use."""
    with _lock:
        if form not in _runtime:
            _runtime[form] = _runtime_library(form, lambda: _shared_entry(form), [SHARED_ENTRY])
        return _runtime[form].address(SHARED_ENTRY)


def _shared_entry(form: str) -> str:
    from tedsl.codegen.llvm.entry.shared import shared_entry_source

    layout = array_layout()
    assert layout is not None  # without it no function is made with an entry point
    return shared_entry_source(form_of(form), layout)


def _runtime_library(key_text: str, text: Callable[[], str], exports: list[str]) -> Library:
    """Links a text of the runtime, whose code comes from the cache on disk if it is there.

    key_text: what the text depends on, beside the sources of tedsl.
    """
    environment = versions()
    if environment is None:
        return link(_compile(text()), exports)
    key = digest(f"{environment}{host().triple} {key_text}".encode())
    pieces = carried.load(key, RUNTIME)
    if pieces is None or "object" not in pieces:
        image = _compile(text())
        pieces = {"object": image, **laid_out_pieces(image, exports)}
        carried.save(key, RUNTIME, pieces)
    return link(pieces["object"], exports, laid=laid_out_of(pieces))


def _compile(text: str) -> bytes:
    """Compiles a text of the runtime to an object for any machine of the host's architecture, without special instructions."""
    from llvmlite import binding

    lljit.initialize()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = binding.parse_assembly(text)
    module.verify()
    return bytes(machine.emit_object(module))
