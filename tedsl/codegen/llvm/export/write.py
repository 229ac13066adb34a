"""Writes modules as libraries, in the format of the file's suffix: what `Module.export_library` calls."""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tedsl.codegen.llvm.debug.lines import with_loops_beside
from tedsl.codegen.llvm.export.header import header
from tedsl.codegen.llvm.export.library import Library, make_library, slot_call
from tedsl.codegen.llvm.export.link import shared_library
from tedsl.codegen.llvm.export.trailer import Described, sealed, sealed_file
from tedsl.errors import ArgumentTypeError, ModuleError
from tedsl.runtime.modules.files import replace_file, to_bytes

if TYPE_CHECKING:
    from tedsl.runtime.module import Module

_ELF = b"\x7fELF"


def write_shared(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes a shared library. options: prefix, linker; or fcompile, a function (file name, names of objects, options of its
    own) that makes the file.
    """
    rest = dict(options)
    fcompile = rest.pop("fcompile", None)
    library = _library(module, path, rest.pop("prefix", None))
    if fcompile is None:
        linker = rest.pop("linker", "")
        _no_more(rest, path, "prefix, linker, fcompile")
        content = shared_library([library.code(), *library.image.beside], library.exports(), library.target, path.name, linker)
        replace_file(path, sealed(content, described_by(library)))
        return
    _compiled_by(fcompile, library, path, rest)
    if path.is_file() and path.read_bytes()[:4] == _ELF:
        replace_file(path, sealed(path.read_bytes(), described_by(library)))


def _compiled_by(fcompile: Any, library: Library, path: Path, options: Mapping[str, Any]) -> None:
    """Lets a function of the user make the file of objects. It may have TVM's attributes `object_format`, `add_files`."""
    if not callable(fcompile):
        raise ArgumentTypeError(f"export_library: fcompile is a function (file name, objects), not {fcompile!r}",
                                hint="use tedsl.contrib.cc.create_shared")
    form = getattr(fcompile, "object_format", "o")
    if form not in ("o", "ll", "s"):
        raise ModuleError(f"export_library: fcompile wants objects of the format {form!r}; there are o, ll and s")
    with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
        files = []
        for name, content in _objects(library, form).items():
            place = Path(folder, name)
            place.write_bytes(content)
            files.append(str(place))
        fcompile(str(path), [*files, *map(str, getattr(fcompile, "add_files", None) or [])], **options)
    if not path.exists():
        raise ModuleError(f"export_library: fcompile made no file {str(path)!r}",
                          hint="it is a function (file name, objects) that writes that file, as tedsl.contrib.cc.create_shared")


def write_object(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes an object for a program's own linker. options: prefix."""
    replace_file(path, sealed_file(_alone(module, path, options).code(), "o"))


def write_llvm(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes the library as LLVM IR. options: prefix."""
    replace_file(path, _alone(module, path, options).text().encode())


def write_assembly(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes the library as assembly. options: prefix."""
    replace_file(path, _alone(module, path, options).assembly().encode())


def write_header(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes the C header. options: prefix."""
    replace_file(path, header(_prefixed(module, path, options)).encode())


def write_tar(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes an archive of the objects and the header, with the module as load_module reads it. options: prefix."""
    library = _prefixed(module, path, options)
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in {**_objects(library, "o"), f"{library.prefix}.h": header(library).encode(),
                              f"{library.prefix}.tedsl": to_bytes(module)}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    replace_file(path, sealed_file(memory.getvalue(), "tar"))


def described_by(library: Library) -> Described:
    """Returns what a shared library of `library` says about itself."""
    symbols = {function.signature.name: [slot_call(name) for name in function.entries()] for function in library.functions}
    return Described(library.image, symbols, library.needed, library.build, library.build_symbol)


def _objects(library: Library, form: str) -> dict[str, bytes]:
    """Returns the files that a linker takes. form: of the first, o, ll or s; what stands beside it are objects."""
    make: dict[str, Callable[[], bytes]] = {"o": library.code, "ll": lambda: library.text().encode(),
                                            "s": lambda: library.assembly().encode()}
    beside = {f"{library.prefix}_imported{k}.o": image for k, image in enumerate(library.image.beside)}
    return {f"{library.prefix}.{form}": make[form](), **beside}


def _alone(module: Module, path: Path, options: Mapping[str, Any]) -> Library:
    """Returns the library of one file; ModuleError if objects of imported code stand beside it."""
    library = _prefixed(module, path, options)
    if library.image.beside:
        raise ModuleError(f"export_library: {path.name} would lack the C that the program imports, an object of its own",
                          hint="export a .so or .tar file")
    return library


def _prefixed(module: Module, path: Path, options: Mapping[str, Any]) -> Library:
    rest = dict(options)
    prefix = rest.pop("prefix", None)
    _no_more(rest, path, "prefix")
    return _library(module, path, prefix)


def _library(module: Module, path: Path, prefix: Any) -> Library:
    if module.imported_modules:
        kinds = ", ".join(other.type_key for other in module.imported_modules)
        raise ModuleError(f"export_library: {path.name} cannot hold the modules that were imported: {kinds}",
                          hint="export a .tedsl file")
    if prefix is not None and not isinstance(prefix, str):
        raise ArgumentTypeError(f"export_library: prefix is a str, not {prefix!r}")
    image = module.image()
    image = replace(image, source=with_loops_beside(image.source, path))
    return make_library(image, _default_prefix(path) if prefix is None else prefix)


def _default_prefix(path: Path) -> str:
    """Returns the prefix that the name of the file stands for: kernels for libkernels.so."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", path.name.partition(".")[0].removeprefix("lib")) or "library"
    return f"_{name}" if name[0].isdecimal() else name


def _no_more(options: Mapping[str, Any], path: Path, known: str) -> None:
    if options:
        raise ArgumentTypeError(f"export_library: {path.name} takes no {', '.join(options)}", hint=f"its options: {known}")
