"""Loads shared libraries that tedsl has written as modules: their content is checked before the loader of programs sees it."""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from tedsl.codegen.llvm.abi import COMPACT
from tedsl.codegen.llvm.entry.symbol import call_source
from tedsl.codegen.llvm.export.library import versions_of
from tedsl.codegen.llvm.export.trailer import Described, described
from tedsl.codegen.llvm.linking import jit
from tedsl.codegen.llvm.machine import assembly, object_code, optimize
from tedsl.errors import ModuleError
from tedsl.runtime.call import CheckedCall
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import read_file
from tedsl.runtime.modules.image import Image, KernelRecord
from tedsl.target import Target


def load_shared(path: Path) -> Module:
    """Returns the module in a shared library. ModuleError if it is damaged, not of tedsl, for another machine, or needs C
    functions that no loaded library has.
    """
    data = read_file(path)
    about = described(data, path.name)
    about.image.check_host(path.name)
    library = _opened(path, data, about)
    image, target = about.image, Target(about.image.target)
    calls = {kernel.name: _call(kernel, about, library, path.name) for kernel in image.kernels}
    sources = {"ll": lambda: image.source, "tir": lambda: image.loops,
               "asm": lambda: assembly(optimize(image.source, target, vectorize=image.vectorize, unroll=image.unroll), target)}
    return Module(calls, calls, sources, target, image=lambda: compiled_again(image))


def _opened(path: Path, data: bytes, about: Described) -> Any:
    """Returns the loaded library whose content is `data`.

    The loader may answer with a library that it loaded before from a file of this name; then the content is loaded from memory.
    """
    library = _dlopen(str(path.absolute()), path.name, about)
    if _build(library, about) == about.build:
        return library
    handle = os.memfd_create(path.name)  # stays open: its number is the name by which the loader knows the library
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(data)
    library = _dlopen(f"/proc/self/fd/{handle}", path.name, about)
    if _build(library, about) != about.build:
        raise ModuleError(f"{path.name} is not what its trailer says", hint="export the module again")
    return library


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
        addresses = [ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0 for symbol in about.symbols[kernel.name]]
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
