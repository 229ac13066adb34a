"""Makes an object of kernels that needs nothing of tedsl: kernels, entry points for C, thread pool and temporary memory in one.

Only the functions of its interface are visible, and the name of each begins with the prefix of the library; so two libraries in
one process do not meet.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.symbol import call_source
from tedsl.codegen.llvm.export.c_entry import BAD_VALUE, c_entry_source, kernel_types, raw_source
from tedsl.codegen.llvm.export.pool import FUNCTIONS, library_pool
from tedsl.codegen.llvm.export.tensors import tensor_functions
from tedsl.codegen.llvm.export.trailer import Described, description
from tedsl.codegen.llvm.machine import assembly, loaded_llvm, object_code, optimize, target_machine
from tedsl.codegen.llvm.types import global_name
from tedsl.errors import ModuleError
from tedsl.record import record
from tedsl.runtime.modules.image import Image, KernelRecord
from tedsl.runtime.signature import Signature
from tedsl.runtime.symbols import EXTERN, PROCESS
from tedsl.runtime.workspace import workspace_source
from tedsl.target import Target
from tedsl.version import VERSION

_NUMBERED_TYPE = re.compile(r"%(State|Pool|tedsl\.tensor)(\.\d+)+\b")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARED = re.compile(r"^declare [^\n]*?@(\"[^\"]*\"|[\w.$]+)\(", re.MULTILINE)
_SUFFIXES = ("_raw", "_raw_compact")  # of the other entry points of a function
_PYTHON = ("tedsl_begin_callbacks", "tedsl_call_packed", "tedsl_publish_error")


@record
class Function:
    """A kernel that a library offers. symbol: its name in C; messages: of its assertions, in the order of their statuses."""

    symbol: str
    signature: Signature
    general: KernelSymbol
    compact: KernelSymbol | None
    messages: tuple[str, ...]

    def entries(self) -> dict[str, KernelSymbol]:
        """Returns the entry points that check nothing, with the version that each of them calls."""
        compact = {} if self.compact is None else {f"{self.symbol}_raw_compact": self.compact}
        return {f"{self.symbol}_raw": self.general, **compact}


@record
class Library:
    """A library, compiled: its functions, the symbols of its pool, and the C functions that it takes from the program."""

    prefix: str
    image: Image
    target: Target
    functions: tuple[Function, ...]
    pool: tuple[str, ...]
    needed: tuple[str, ...]
    build: str
    module: Any = field(repr=False)

    @property
    def build_symbol(self) -> str:
        """The symbol of the text `build`, which tells one library from another of the same name."""
        return f"{self.prefix}_build"

    def code(self) -> bytes:
        """Returns the object."""
        return object_code(self.module, self.target, imported=bool(self.image.beside))

    def assembly(self) -> str:
        return assembly(self.module, self.target)

    def text(self) -> str:
        """Returns its LLVM IR, optimised. LLVM numbers types whose name it has seen in this process before: not here."""
        return _NUMBERED_TYPE.sub(r"%\1", str(self.module))

    def exports(self) -> list[str]:
        """Lists the visible symbols."""
        return [*_exports(self.functions), *self.pool, self.build_symbol, f"{self.prefix}_module"]


def slot_call(symbol: str) -> str:
    """Returns the symbol by which a loader calls the entry point `symbol` with arguments in 64-bit slots."""
    return f"{symbol}.call"


def make_library(image: Image, prefix: str, more: Callable[[Sequence[Function], Target], str] | None = None,
                 shown: Sequence[str] = ()) -> Library:
    """Compiles a library of the kernels of `image` whose symbols begin with `prefix`.
    more: makes LLVM IR that is linked into it; shown: the symbols of that which are visible.

    Raises ModuleError for kernels that call Python and for names that C cannot have.
    """
    if not _NAME.fullmatch(prefix):
        raise ModuleError(f"export_library: the prefix {prefix!r} is no name in C", hint='write prefix="kernels"')
    target = Target(image.target)
    functions = _functions(image.kernels, prefix)
    source, needed = _own_symbols(image)
    used = set(_DECLARED.findall(source))
    build = _build(prefix, target, source, image.beside)
    texts = [_interface(functions, target), f'@{prefix}_build = constant [33 x i8] c"{build}\\00"']
    pool: tuple[str, ...] = ()
    if "tedsl_parallel_launch" in used:
        texts.append(library_pool(target.triple.split("-")[0], prefix, BAD_VALUE))
        pool = tuple(f"{prefix}_{name}" for name in FUNCTIONS)
    if "tedsl_workspace_alloc" in used:
        texts.append(workspace_source(size_type(target)))
    texts.append(_described(image, functions, prefix, needed, build) if more is None else more(functions, target))
    visible = {*_exports(functions), *pool, f"{prefix}_build", *([f"{prefix}_module"] if more is None else []), *shown}
    module = optimize(source, target, vectorize=image.vectorize, unroll=image.unroll,
                      link=lambda into: _join(into, texts, visible, target))
    return Library(prefix, image, target, functions, pool, needed, build, module)


def _build(prefix: str, target: Target, source: str, beside: Sequence[bytes]) -> str:
    """Returns a digest of what a library is made of. beside: objects of imported code."""
    digest = hashlib.sha256("\n".join((VERSION, prefix, str(target), target.cpu, source)).encode())
    for content in beside:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:32]


def _described(image: Image, functions: Sequence[Function], prefix: str, needed: tuple[str, ...], build: str) -> str:
    """Returns the IR of what the library says about itself in memory, for programs that it is linked into: the length of the
    archive in 8 bytes, and the archive.
    """
    symbols = {function.signature.name: [slot_call(name) for name in function.entries()] for function in functions}
    archive = description(Described(replace(image, source=""), symbols, needed, build, f"{prefix}_build"))
    content = len(archive).to_bytes(8, "little") + archive
    text = "".join(f"\\{byte:02X}" for byte in content)
    return f'@{prefix}_module = constant [{len(content)} x i8] c"{text}", align 8'


def _functions(kernels: Sequence[KernelRecord], prefix: str) -> tuple[Function, ...]:
    symbols = _c_symbols([kernel.name for kernel in kernels], prefix)
    return tuple(Function(symbols[kernel.name], kernel.signature, versions_of(kernel)[0],
                          None if kernel.compact_scalars is None else versions_of(kernel)[1], kernel.messages)
                 for kernel in kernels)


def versions_of(kernel: KernelRecord) -> list[KernelSymbol]:
    """Returns the compiled versions of a kernel: for any strides that it takes, and for compact arrays if there is one."""
    versions = [("", kernel.signature.scalars, 0)]
    if kernel.compact_scalars is not None:
        versions.append((COMPACT, kernel.compact_scalars, kernel.first_compact_message))
    return [KernelSymbol(f"{kernel.name}{version}.kernel", scalars, before, kernel.signature.result)
            for version, scalars, before in versions]


def _c_symbols(names: Sequence[str], prefix: str) -> dict[str, str]:
    """Returns the C name of each function; ModuleError where two would be one."""
    symbols: dict[str, str] = {}
    owners = {f"{prefix}_{name}": "the library itself" for name in (*FUNCTIONS, "build")}
    for name in names:
        symbols[name] = symbol = f"{prefix}_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
        for taken in (symbol, *(symbol + suffix for suffix in _SUFFIXES)):
            if taken in owners:
                raise ModuleError(f"export_library: {taken} in C would be of the function {name!r} and of {owners[taken]}",
                                  hint="give the function another name: build(s, args, name=...)")
            owners[taken] = f"the function {name!r}"
    return symbols


def _own_symbols(image: Image) -> tuple[str, tuple[str, ...]]:
    """Returns the source with C functions under their own names, and lists those that are not of the C library."""
    source = image.source
    declared = set(_DECLARED.findall(source))
    if not declared.isdisjoint(_PYTHON):
        raise ModuleError(f"export_library: {', '.join(kernel.name for kernel in image.kernels)} calls Python "
                          "(tir.call_packed), and a library has none", hint="call a C function: tir.call_extern")
    needed = tuple(sorted(name.removeprefix(EXTERN) for name in declared if name.startswith(EXTERN)))
    for name in needed:
        if name in declared:  # one declaration is enough
            source = re.sub(rf"^declare [^\n]*@{re.escape(EXTERN + name)}\([^\n]*\n", "", source, flags=re.MULTILINE)
        source = source.replace(f"@{EXTERN}{name}(", f"@{name}(")
    others = (*needed, *(name for name in image.process if name not in needed))
    return source, tuple(name for name in others if name not in PROCESS)


def _exports(functions: Sequence[Function]) -> list[str]:
    entries = [name for function in functions for name in function.entries()]
    return [*(function.symbol for function in functions), *entries, *map(slot_call, entries)]


def _interface(functions: Sequence[Function], target: Target) -> str:
    """Returns the IR of all entry points."""
    lines = [f'target triple = "{target.triple}"', tensor_functions(size_type(target)), *kernel_declarations(functions)]
    for function in functions:
        pointers = len(list(function.signature.tensors()))
        lines.append(c_entry_source(function.symbol, function.signature, function.general, function.compact,
                                    function.messages, size_type(target)))
        for name, kernel in function.entries().items():
            lines += [raw_source(name, kernel, pointers), call_source(name, kernel, pointers)]
    return "\n".join(lines)


def kernel_declarations(functions: Sequence[Function]) -> Iterator[str]:
    """Lists the declarations of the kernels of `functions` in LLVM IR."""
    for function in functions:
        pointers = len(list(function.signature.tensors()))
        for kernel in function.entries().values():
            yield f"declare i32 {global_name(kernel.symbol)}({', '.join(kernel_types(kernel, pointers))})"


def size_type(target: Target) -> str:
    """Returns C's size_t as a type of LLVM."""
    return "i64" if "64" in target.triple.split("-")[0] else "i32"


def _join(module: Any, texts: Sequence[str], visible: set[str], target: Target) -> None:
    """Links the texts into `module`, and hides every symbol but the visible ones. The caller holds the lock of LLVM."""
    llvm = loaded_llvm()
    for text in texts:
        other = llvm.parse_assembly(text)
        other.verify()
        other.triple, other.data_layout = target.triple, str(target_machine(target).target_data)
        module.link_in(other)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in visible and value.linkage.name != "private":
            value.linkage = "internal"
