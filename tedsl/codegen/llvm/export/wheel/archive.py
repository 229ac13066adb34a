"""Writes a wheel: extension modules for one or several processors, Python files and metadata in one archive."""

from __future__ import annotations

import base64
import hashlib
import io
import keyword
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tedsl.codegen.llvm.export.library import Function, Library, kernel_declarations, make_library
from tedsl.codegen.llvm.export.link import LIBC, shared_library
from tedsl.codegen.llvm.export.wheel.extension import PYTHON_NAMES, extension_source
from tedsl.codegen.llvm.export.wheel.package import PYTHON, Wheel, docstring, kernel_of, metadata, python_files
from tedsl.codegen.llvm.linking.elf import defined_functions, undefined_symbols
from tedsl.errors import ArgumentTypeError, ModuleError
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import replace_file
from tedsl.runtime.modules.image import Image
from tedsl.target import Target

_FILE = re.compile(r"(?P<name>[A-Za-z0-9_.]+?)-(?P<version>[0-9][A-Za-z0-9_.!+]*)(-.*)?\.whl")
_DATE = (1980, 1, 1, 0, 0, 0)  # the same kernels make the same wheel
# The oldest glibc that has all of `LIBC`: of each architecture the one that manylinux names.
_GLIBC = {"x86_64": "2_17", "aarch64": "2_17", "riscv64": "2_31"}


def write_wheel(module: Module, path: Path, options: Mapping[str, Any]) -> Path:
    """Writes a wheel beside `path`, whose name gives those of the package and its version: kernels-1.0.whl becomes
    kernels-1.0-cp311-abi3-manylinux_2_17_x86_64.whl. Returns its path.

    options: name, version; levels, modules of the same functions for other processors, of which the best is chosen at import.
    """
    rest = dict(options)
    wanted, levels = _named(path, rest.pop("name", None), rest.pop("version", None)), rest.pop("levels", ())
    linker = rest.pop("linker", "")
    if rest:
        raise ArgumentTypeError(f"export_library: {path.name} takes no {', '.join(rest)}",
                                hint="its options: name, version, levels, linker")
    modules = [module, *_modules(levels)]
    images = sorted((other.image() for other in modules), key=lambda image: len(image.features), reverse=True)
    wheel = Wheel(*wanted, _tag(images))
    libraries = [_extension(image, wheel.name, f"_level{k}") for k, image in enumerate(images)]
    functions = libraries[0].functions
    if any([*map(kernel_of, library.functions)] != [*map(kernel_of, functions)] for library in libraries):
        raise ModuleError("export_library: the modules of the levels have other functions, parameters or assertions",
                          hint="build the same program for each processor")
    files = python_files(wheel, functions, [(f"_level{k}", image.features) for k, image in enumerate(images)])
    for k, library in enumerate(libraries):
        name = f"_level{k}.abi3.so"
        exports = [f"PyInit__level{k}", *(function.symbol for function in functions)]
        files[f"{wheel.name}/{name}"] = shared_library([_code(library), *library.image.beside], exports, library.target, name,
                                                       linker)
    place = path.with_name(wheel.file_name)
    replace_file(place, _packed(wheel, {**files, **metadata(wheel, functions)}))
    return place


def _named(path: Path, name: Any, version: Any) -> tuple[str, str]:
    """Returns the names of the package and its version."""
    parts = _FILE.fullmatch(path.name)
    if parts is None and (name is None or version is None):
        raise ModuleError(f"export_library: {path.name!r} does not say name and version of the wheel",
                          hint='write "kernels-1.0.whl"')
    if not all(given is None or isinstance(given, str) for given in (name, version)):
        raise ArgumentTypeError(f"export_library: name and version of a wheel are str, not {name!r} and {version!r}")
    package = re.sub(r"[-.]+", "_", name if name is not None else parts["name"] if parts else "")
    number = version if version is not None else parts["version"] if parts else ""
    if not package.isidentifier() or keyword.iskeyword(package) or not re.fullmatch(r"[0-9][A-Za-z0-9_.!+]*", number):
        raise ModuleError(f"export_library: a wheel cannot have the name {package!r} and the version {number!r}",
                          hint='write "kernels-1.0.whl"')
    if package in ("numpy", *sys.stdlib_module_names):
        raise ModuleError(f"export_library: a wheel called {package!r} would stand in the place of the package of that name, "
                          "or behind it", hint='write "kernels-1.0.whl"')
    return package, number


def _modules(levels: Any) -> Sequence[Module]:
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Sequence) or not all(isinstance(m, Module) for m in levels):
        raise ArgumentTypeError(f"export_library: levels are modules of the functions for other processors, not {levels!r}",
                                hint='levels=[build(s, args, target="llvm -mcpu=x86-64-v3"), ...]')
    return levels


def _tag(images: Sequence[Image]) -> str:
    """Returns the tag of a wheel of `images`; ModuleError for a platform on which there are no such wheels."""
    machines = sorted({image.triple.split("-")[0] for image in images})
    if len(machines) > 1:
        raise ModuleError(f"export_library: one wheel is for one architecture, not for {' and '.join(machines)}")
    if machines[0] not in _GLIBC or "linux" not in images[0].triple or "musl" in images[0].triple:
        raise ModuleError(f"export_library: wheels are made for 64-bit Linux with glibc, not for {images[0].triple}",
                          hint="export a .so file, or build for x86-64, AArch64 or RISC-V")
    return f"{PYTHON}-abi3-manylinux_{_GLIBC[machines[0]]}_{machines[0]}"


def _extension(image: Image, package: str, module: str) -> Library:
    """Compiles the library of an extension module."""
    runs_long = {kernel.name: kernel.runs_long for kernel in image.kernels}

    def more(functions: Sequence[Function], target: Target) -> str:
        described = [(function, runs_long[function.signature.name], docstring(function)) for function in functions]
        return "\n".join([f'target triple = "{target.triple}"', *kernel_declarations(functions),
                          extension_source(module, described)])

    library = make_library(image, package, more, (f"PyInit_{module}",))
    if library.needed:
        raise ModuleError(f"export_library: the kernels call {', '.join(library.needed)}, which a wheel does not bring",
                          hint="import the code of these functions: pragma import_c or import_llvm")
    return library


def _code(library: Library) -> bytes:
    """Returns the object. ModuleError if it needs more than Python's stable ABI and an old glibc have: its tag would be wrong.
    """
    code = library.code()
    images = (code, *library.image.beside)
    known = {*LIBC, *PYTHON_NAMES, *(name for image in images for name in defined_functions(image))}
    foreign = sorted({name for image in images for name in undefined_symbols(image)} - known)
    if foreign:
        raise ModuleError(f"export_library: the kernels need {', '.join(foreign)}, which not every Python and glibc has")
    return code


def _packed(wheel: Wheel, files: Mapping[str, bytes]) -> bytes:
    """Returns the archive with its list of all files."""
    rows = [f"{name},sha256={_hash(content)},{len(content)}" for name, content in files.items()]
    record = f"{wheel.about}/RECORD"
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, record: "\n".join([*rows, f"{record},,", ""]).encode()}.items():
            member = zipfile.ZipInfo(name, _DATE)
            member.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return memory.getvalue()


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
