"""Files of modules: how each kind is written and loaded, chosen by the suffix of the file or by a format's name.

Kinds of others are functions registered by name (`tedsl.register_func`), as in TVM, or entry points of the group
`tedsl.modules` with the same names:

    runtime.module.loadfile_NAME(path, format)    what load_module calls for files of the suffix NAME
    runtime.module.loadbinary_NAME(data)          makes an imported module of type_key NAME again from its bytes
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tedsl.errors import ArgumentError, ArgumentTypeError, ModuleError, entry
from tedsl.ir.functions import FUNCTIONS
from tedsl.plugins import MODULES, load_plugin, plugin_names
from tedsl.runtime.devices.module import DeviceModule, device_module_of
from tedsl.runtime.modules.container import pack, unpack
from tedsl.runtime.modules.image import image_of
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.symbols import provider
from tedsl.target.kinds import find_kind, kind_names
from tedsl.target.target import Target

if TYPE_CHECKING:
    from tedsl.runtime.module import Module

# By format: a function (module, path, options) that writes the file.
WRITERS: dict[str, str] = {
    "tedsl": "tedsl.runtime.modules.files:write_archive",
    "so": "tedsl.codegen.llvm.export.write:write_shared",
    "o": "tedsl.codegen.llvm.export.write:write_object",
    "tar": "tedsl.codegen.llvm.export.write:write_tar",
    "h": "tedsl.codegen.llvm.export.write:write_header",
    "c": "tedsl.codegen.c.running.files:write_source",
    "ll": "tedsl.codegen.llvm.export.write:write_llvm",
    "s": "tedsl.codegen.llvm.export.write:write_assembly",
    "asm": "tedsl.codegen.llvm.export.write:write_assembly",
    "whl": "tedsl.codegen.llvm.export.wheel.archive:write_wheel",
}
# By type_key and format: the same, of modules whose files others write.
WRITERS_OF = {("c", "h"): "tedsl.codegen.c.running.files:write_declarations"}
# By format: a function (path) that loads the file.
READERS: dict[str, str] = {
    "tedsl": "tedsl.runtime.modules.files:read_archive",
    "so": "tedsl.codegen.llvm.export.load:load_shared",
    "o": "tedsl.codegen.llvm.export.load:load_object",
    "tar": "tedsl.codegen.llvm.export.load:load_tar",
    "examplejson": "tedsl.graph.byoc.examplejson.module:from_file",
}
_LIBRARIES = ("so", "o", "tar")  # formats of code that TVM links into a shared library
# What the other files are for, by format.
_NOT_LOADED = {
    "h": "a header is included by programs in C",
    "c": "the text is compiled by a C compiler",
    "ll": "the text is compiled by LLVM's tools",
    "s": "the text is assembled (cc kernels.s)",
    "asm": "the text is assembled (cc -x assembler kernels.asm)",
    "whl": "a wheel is installed (pip install FILE) and imported",
}
# By type_key: a function (data, where) that makes a module of the bytes of its `save_to_bytes`.
BINARY: dict[str, str] = {
    **dict.fromkeys(("llvm", "library", "system_lib"), "tedsl.runtime.modules.files:from_bytes"),
    "c": "tedsl.graph.byoc.ccompiler.module:from_bytes",
    "examplejson": "tedsl.graph.byoc.examplejson.module:from_bytes",
    "examplejson_constants": "tedsl.graph.byoc.examplejson.module:with_constants",
}
_LINKED = "tedsl.codegen.llvm.linking.files:loaded_module"
_ON_DEVICE = "tedsl.runtime.module:on_device"
_LINKED_IN = "tedsl.codegen.llvm.export.load:linked_in"
_IMPORTS = "imports/"
_ELF = b"\x7fELF"
_VERSIONED = re.compile(r"\.so(\.[0-9]+)+$")


def write_module(module: Module, file_name: Any, fmt: str, options: Mapping[str, Any]) -> Path:
    """Writes `module` to a file in the format `fmt` ("": by the file's suffix) and returns its path: a wheel's name gets tags.

    Raises ModuleError for a format that is not known and for a file that cannot be written.
    """
    path = file_path(file_name, "export")
    form = _format(path, fmt, "export")
    if form not in WRITERS:
        raise ModuleError(f"modules are not written to files of the format {form!r}, as in {path.name!r}",
                          hint=f"choose one of {', '.join('.' + known for known in WRITERS)}")
    kernels = [other for other in module.imported_modules if isinstance(other, DeviceModule)]
    if kernels and form != "tedsl":
        raise ModuleError(f"{path.name}: kernels of {kernels[0].kind} are launched by tedsl, and files of the format .{form} "
                          "run without it",
                          hint="export a .tedsl file; imported_modules[0].get_source() is the text of the kernels")
    try:
        writer = provider(WRITERS_OF.get((module.backend, form), WRITERS[form]))
        return writer(module, path, options) or path
    except OSError as error:
        raise ModuleError(f"{path} cannot be written: {error.strerror or error}") from error


@entry
def load_module(path: Any, fmt: str = "") -> Any:
    """Returns the module in the file `path`, of the format `fmt` ("": by the file's suffix).

    Raises ModuleError for a file that is not there, damaged, foreign, of a newer version, or for another machine.
    """
    file = file_path(path, "load_module")
    form = _format(file, fmt, "load_module")
    loader = None if form in READERS else _registered(f"loadfile_{form}")
    if form in _NOT_LOADED and loader is None:
        raise ModuleError(f"load_module: {file.name!r} is not loaded into Python: {_NOT_LOADED[form]}",
                          hint="export a .tedsl or .so file for load_module")
    if not file.is_file():
        raise ModuleError(f"there is no file {str(file)!r}" + (": it is a folder" if file.is_dir() else ""))
    if form in READERS:
        module = provider(READERS[form])(file)
        if form in _LIBRARIES:
            module.loaded_as = "library"
        return module
    if loader is None:
        raise ModuleError(f"files of the format {form!r} are not modules, as {file.name!r}",
                          hint=f"modules are in {', '.join('.' + known for known in READERS)} files; or register a function "
                               f"for this format: tedsl.register_func('runtime.module.loadfile_{form}', load)")
    return loader(str(file), form)


@entry
def system_lib(symbol_prefix: str = "") -> Module:
    """Returns the module of the library with the prefix `symbol_prefix` that is linked into this program.

    Raises ModuleError if there is none.
    """
    if symbol_prefix == "":
        raise ArgumentError("system_lib: each library of a program has a prefix of its own, and none is given",
                            hint='export_library("kernels.o", prefix="kernels"), and runtime.system_lib("kernels")')
    if not isinstance(symbol_prefix, str):
        raise ArgumentTypeError(f"system_lib: symbol_prefix is the prefix of a library, not {symbol_prefix!r}",
                                hint='export_library("kernels.o", prefix="kernels"), and runtime.system_lib("kernels")')
    module: Module = provider(_LINKED_IN)(symbol_prefix)
    module.loaded_as = "system_lib"
    return module


def write_archive(module: Module, path: Path, options: Mapping[str, Any]) -> None:
    """Writes a `.tedsl` file."""
    no_options(options, path)
    replace_file(path, to_bytes(module))


def read_archive(path: Path) -> Module:
    """Loads a `.tedsl` file."""
    return from_bytes(read_file(path), path.name)


def to_bytes(module: Module) -> bytes:
    """Returns the archive of a module, with the modules imported into it."""
    pieces = module.image().parts()
    for k, other in enumerate(module.imported_modules):
        pieces[f"{_IMPORTS}{k}.{other.type_key}"] = bytes(other.save_to_bytes())
    return pack(pieces)


def from_bytes(data: bytes, where: str) -> Module:
    """Returns the module whose archive is `data`; ModuleError, which names the file `where`, says what is wrong with it."""
    pieces = unpack(data, where)
    image = image_of(pieces, where)
    image.check_host(where)
    module: Module = provider(_LINKED)(image, where)
    for name in sorted((name for name in pieces if name.startswith(_IMPORTS)), key=_number):
        module.import_module(_imported(name, pieces[name], where))
    return _launching(module, image.device, where) if image.device else module


def _launching(host: Module, notation: str, where: str) -> Module:
    """Returns the module whose functions launch the kernels of the first imported module, on the devices of a target."""
    imported = host.imported_modules
    code = imported[0] if imported else None
    if not isinstance(code, DeviceModule):
        raise ModuleError(f"{where} lacks the kernels that its functions launch", hint="export the module again")
    try:
        module: Module = provider(_ON_DEVICE)(host, code, Target(notation))
    except ArgumentError as error:
        raise ModuleError(f"{where} was built for a target that is not known here: {error.problem}",
                          hint="import the package that registers it, or export the module again") from error
    for other in imported[1:]:
        module.import_module(other)
    return module


def _number(name: str) -> int:
    digits = name.removeprefix(_IMPORTS).partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _imported(name: str, data: bytes, where: str) -> RuntimeModule:
    """Returns the module that was saved as the piece `name` of the file `where`."""
    return module_of_kind(name.partition(".")[2], data, name, where)


def module_of_kind(kind: str, data: bytes, name: str, where: str) -> RuntimeModule:
    """Returns the module of type_key `kind` that was saved as `data`, the piece `name` of the file `where`."""
    if kind in _kinds_of_devices():
        return device_module_of(data, f"{name} of {where}")
    if kind in BINARY:
        module: RuntimeModule = provider(BINARY[kind])(data, f"{name} of {where}")
        return module
    loader = _registered(f"loadbinary_{kind}")
    if loader is None:
        raise ModuleError(f"{where} holds a module of the kind {kind!r}, which no package here can load",
                          hint="import the package that made it, or register a function that makes it of its bytes: "
                               f"tedsl.register_func('runtime.module.loadbinary_{kind}', load)")
    module = loader(data)
    if not isinstance(module, RuntimeModule):
        raise ModuleError(f"runtime.module.loadbinary_{kind} returned {module!r}, which is not a module",
                          hint="see tedsl.runtime.RuntimeModule: type_key, get_function, get_source, save_to_bytes")
    return module


def _kinds_of_devices() -> set[str]:
    """Returns the kinds of devices for which targets make kernels."""
    kinds = [find_kind(name) for name in kind_names()]
    return {kind.device_kind for kind in kinds if kind is not None and kind.device_backend}


def _registered(name: str) -> Any:
    """Returns the function registered as runtime.module.NAME, or declared so by a package; None if there is none."""
    known = FUNCTIONS.get(f"runtime.module.{name}")
    if known is not None:
        return known.function
    return load_plugin(MODULES, name) if name in plugin_names(MODULES) else None


def read_file(path: Path) -> bytes:
    """Returns the content of a file; ModuleError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModuleError(f"{path} cannot be read: {error.strerror or error}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file at once: where it fails the old one stays whole, and a process that has that loaded keeps it."""
    mode = 0o777 if content[:4] == _ELF and _suffix(path) == "so" else 0o666  # less what the process masks
    name = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def no_options(options: Mapping[str, Any], path: Path) -> None:
    """Raises ArgumentTypeError if there are options, for a format that takes none."""
    if options:
        raise ArgumentTypeError(f"export of {path.name!r}: files of this format take no {', '.join(options)}")


def file_path(given: Any, what: str) -> Path:
    """The path that a program gives; `what` names the function in errors."""
    try:
        path = os.fsdecode(given)
        os.fsencode(path)
    except TypeError:
        raise ArgumentTypeError(f"{what}: the file is named by a str or a path, not {given!r}") from None
    except UnicodeError:
        path = "\0"
    if "\0" in path:
        raise ArgumentError(f"{what}: {given!r} cannot be the name of a file")
    return Path(path)


def _format(path: Path, fmt: object, what: str) -> str:
    """Returns the format that is asked for, or that of the name of the file; `what` names the function in errors."""
    if not isinstance(fmt, str):
        raise ArgumentTypeError(f"{what}: the format is a str, not {fmt!r}", hint='fmt="so"; without it the suffix says it')
    return fmt or _suffix(path)


def _suffix(path: Path) -> str:
    """Returns the last suffix of a file without its dot; "so" also for libraries with a version, libkernels.so.1."""
    return "so" if _VERSIONED.search(path.name) else path.suffix.removeprefix(".").lower()
