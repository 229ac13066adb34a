"""Loads shared libraries that tedsl has written as modules: their content is checked before the loader of programs sees it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import io
import itertools
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.llvm.entry import call_source, declarations, disjoint_source, entry_source, slots_source
from tedsl.codegen.llvm.export.library import versions_of
from tedsl.codegen.llvm.export.link import shared_library
from tedsl.codegen.llvm.export.trailer import (
    Described,
    checked_file,
    described,
    described_prefix,
    linked_prefixes,
    read_description,
)
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.linking.elf import exported_symbols
from tedsl.codegen.llvm.machine import assembly, object_code, optimize
from tedsl.errors import ModuleError
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.fork import guarded_lock
from tedsl.runtime.layout import array_layout
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import from_bytes, read_file
from tedsl.runtime.modules.image import Image, KernelRecord
from tedsl.target import Target
from tedsl.target.current import host_target

# The libraries that are loaded, by path and digest of the file; the loader never unloads one, so neither are these forgotten.
_loaded: dict[tuple[str, bytes], Any] = {}
_from_memory = itertools.count(1)
_lock = guarded_lock()


def load_shared(path: Path) -> Module:
    """Returns the module in a shared library. ModuleError if it is damaged, not of tedsl, for another machine, or needs C
    functions that no loaded library has.

    A library that another linker made of objects of tedsl, `g++ -shared kernels.o more.o`, has no sum of its content to
    compare; the module has the functions of all of them.
    """
    data = read_file(path)
    prefixes = linked_prefixes(data)
    if prefixes:
        return _together([_linked_by_others(path, prefix) for prefix in prefixes])
    about = described(data, path.name)
    about.image.check_host(path.name)
    library = _opened(path, data, about)
    return _module(about, library, path.name)


def load_object(path: Path) -> Module:
    """Returns the module in an object of `export_library`, of which a linker of this machine makes a library. ModuleError if it
    is damaged or not of tedsl.
    """
    data = checked_file(read_file(path), "o", path.name)
    prefix = described_prefix(data)
    if prefix is None:
        raise ModuleError(f"{path.name} describes no module of tedsl", hint="export a .tedsl or .so file for load_module")
    shown = [name for name in exported_symbols(data) if name.startswith(prefix)]
    with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
        library = Path(folder, f"{path.name}.so")
        library.write_bytes(shared_library([data], shown, host_target(), library.name))
        return _of_prefix(ctypes.CDLL(str(library)), prefix, path.name)


def load_tar(path: Path) -> Module:
    """Returns the module in an archive of `export_library`, which is not linked for that. ModuleError if it is damaged."""
    archive = checked_file(read_file(path), "tar", path.name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        content = next(member for member in members if member.name.endswith(".tedsl"))
        return from_bytes(cast("IO[bytes]", members.extractfile(content)).read(), path.name)


def linked_in(prefix: str) -> Module:
    """Returns the module of the library with that prefix in the program itself, or in a library that it loaded for all
    (RTLD_GLOBAL). ModuleError if there is none.
    """
    try:
        return _of_prefix(ctypes.CDLL(None), prefix, f"the library {prefix!r} of this program")
    except ValueError as error:
        if isinstance(error, ModuleError):
            raise
        raise ModuleError(f"this program has no library with the prefix {prefix!r}",
                          hint="link the .o file of export_library into it with -rdynamic, or load the .so file for all: "
                               "ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)") from None


def _linked_by_others(path: Path, prefix: str) -> Module:
    try:
        return _of_prefix(ctypes.CDLL(str(path.absolute())), prefix, path.name)
    except OSError as error:
        raise ModuleError(f"{path.name} cannot be loaded: {error}",
                          hint="link it anew, with all that its functions call") from error


def _together(modules: Sequence[Module]) -> Module:
    """Returns a module with the functions of all `modules`."""
    first, *others = modules
    return first if not others else Module.joined(modules)


def _of_prefix(library: Any, prefix: str, where: str) -> Module:
    """Returns the module that the object with `prefix` describes in its memory; ValueError if `library` has no such object."""
    place = ctypes.addressof(ctypes.c_char.in_dll(library, f"{prefix}_module"))
    about = read_description(ctypes.string_at(place + 8, ctypes.c_uint64.from_address(place).value), where)
    about.image.check_host(where)
    return _module(about, library, where)


def _module(about: Described, library: Any, where: str) -> Module:
    """Returns the module of a library that is loaded."""
    image, target = about.image, Target(about.image.target)
    calls = {kernel.name: _call(kernel, about, library, where) for kernel in image.kernels}
    functions = _with_entries(calls, image, about, library, target)
    sources = {"ll": lambda: image.source, "tir": lambda: image.loops,
               "asm": lambda: assembly(optimize(image.source, target, vectorize=image.vectorize, unroll=image.unroll), target)}
    return Module(functions, calls, sources, target, image=(lambda: compiled_again(image)) if image.source else None)


def _with_entries(calls: Mapping[str, CheckedCall], image: Image, about: Described, library: Any,
                  target: Target) -> Mapping[str, Callable[..., Any]]:
    """Returns the functions with compiled checks of their arguments, which are made here: they depend on numpy and Python."""
    layout = array_layout()
    if layout is None:
        return calls
    texts: list[str] = []
    places: dict[str, int] = {}
    for kernel in image.kernels:
        symbols = about.symbols[kernel.name]
        versions = [replace(version, messages_before=0) for version in versions_of(kernel)]  # the library counts them itself
        tensors = len(list(kernel.signature.tensors()))
        texts += [slots_source(version, tensors, symbol) for version, symbol in zip(versions, symbols)]
        texts.append(entry_source(kernel.signature, versions[0], versions[1] if len(versions) > 1 else None, layout,
                                  release=kernel.runs_long))
        places |= {symbol: _address(library, symbol) for symbol in symbols}
    source = "\n".join([f'target triple = "{target.triple}"', declarations(""), disjoint_source(texts), *texts])
    code = object_code(optimize(source, target, vectorize=False), target, effort=0)
    linked = jit.link(code, [f"{name}.entry" for name in calls], elsewhere=places)
    return {name: call.with_entry(linked.address(f"{name}.entry"), linked) for name, call in calls.items()}


def _address(library: Any, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0


def _opened(path: Path, data: bytes, about: Described) -> Any:
    """Returns the loaded library whose content is `data`; that of a file that was loaded before, if it still has it."""
    place = str(path.absolute())
    key = place, hashlib.sha256(data).digest()
    with _lock:
        if key not in _loaded:
            _loaded[key] = _newly_opened(place, data, about, path.name)
        return _loaded[key]


def _newly_opened(place: str, data: bytes, about: Described, where: str) -> Any:
    """Loads the library from its file, or, where the loader knows another one by the name of that file, from memory."""
    if all(place != known for known, _ in _loaded):
        library = _dlopen(place, where, about)
        if _build(library, about) == about.build:
            return library
    with os.fdopen(os.memfd_create(where), "wb") as file:
        file.write(data)
        file.flush()
        library = _dlopen(_name_in_memory(file.fileno()), where, about)
    if _build(library, about) != about.build:
        raise ModuleError(f"{where} is not what its trailer says", hint="export the module again")
    return library


def _name_in_memory(handle: int) -> str:
    """Returns a name of the open file `handle` that no other file has in this process, also when `handle` is closed and its
    number taken again: the loader takes two files of one name for one library. The bits of a number make it: `.` and `/`.
    """
    return f"/proc/self/fd/{bin(next(_from_memory))[2:].replace('1', './').replace('0', '/')}{handle}"


def _dlopen(name: str, where: str, about: Described) -> Any:
    try:
        return ctypes.CDLL(name, mode=ctypes.DEFAULT_MODE | os.RTLD_NOW)
    except OSError as error:
        hint = "copy the file again, or export the module again"
        if any(symbol in str(error) for symbol in about.needed):
            hint = "load the library that has it first: ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)"
        raise ModuleError(f"{where} cannot be loaded: {error}", hint=hint) from error


def _build(library: Any, about: Described) -> str:
    """Returns what the loaded library says which build it is; "" if it does not."""
    try:
        return ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, about.build_symbol))).decode()
    except ValueError:
        return ""


def _call(kernel: KernelRecord, about: Described, library: Any, where: str) -> CheckedCall:
    try:
        addresses = [_address(library, symbol) for symbol in about.symbols[kernel.name]]
    except (AttributeError, KeyError) as error:
        raise ModuleError(f"{where} has no function {kernel.name!r}: {error}", hint="export the module again") from error
    return CheckedCall(kernel.signature, library, addresses[0], addresses[1] if len(addresses) > 1 else 0,
                       kernel.compact_scalars or (), kernel.messages,
                       functools.partial(jit.runtime_address, "tedsl_time_calls"))


def compiled_again(image: Image) -> Image:
    """Returns `image` with its code, which a shared library holds in another form, compiled from its LLVM IR."""
    target = Target(image.target)
    calls = [call_source(kernel.name + suffix, version, len(list(kernel.signature.tensors())))
             for kernel in image.kernels for suffix, version in zip(("", COMPACT), versions_of(kernel))]
    module = optimize("\n".join([image.source, *calls]), target, vectorize=image.vectorize, unroll=image.unroll)
    return replace(image, code=object_code(module, target, imported=bool(image.beside)), layout=None)
