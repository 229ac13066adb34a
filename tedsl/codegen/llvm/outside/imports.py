"""Code of other languages in a module: `pragma import_llvm` (LLVM IR) and `pragma import_c` (C or C++, by a compiler here).

IR is parsed, verified and linked into the module before it is optimised, its functions then local to it; C becomes IR if
clang is here and writes what our LLVM reads, else an object beside ours. What such code does is its author's business; that
it cannot be parsed, is for another machine or needs functions that nobody has is an error before LLVM sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tedsl.codegen.llvm.elf import defined_functions, undefined_symbols
from tedsl.codegen.llvm.machine import llvm_lock, loaded_llvm, optimize_import, target_machine
from tedsl.codegen.llvm.outside.compile_c import compile_c
from tedsl.errors import LoweringError
from tedsl.ir.expr import StringImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.symbols import extern_address, is_known
from tedsl.target import Target

LLVM, C = "pragma_import_llvm", "pragma_import_c"


@dataclass(frozen=True)
class Prototype:
    """The types of LLVM that a function takes and returns."""

    result: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.result} ({', '.join(self.parameters)})"


@dataclass(frozen=True)
class Imports:
    """What a module takes in. functions: those defined there, with their types where they are known.

    process: functions that the code calls and that the libraries of this process have.
    """

    texts: tuple[str, ...] = ()
    objects: tuple[bytes, ...] = ()
    functions: dict[str, Prototype | None] = field(default_factory=dict)
    process: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.objects)


def imports_of(funcs: Iterable[PrimFunc], target: Target) -> Imports:
    """The code that pragmas of `funcs` import, each text once."""
    wanted: dict[tuple[str, str], StringImm] = {}
    for func in funcs:
        for node in post_order(func.body):
            if isinstance(node, AttrStmt) and node.attr_key in (LLVM, C):
                code = _code(node)
                wanted.setdefault((node.attr_key, code.value), code)
    if not wanted:
        return Imports()
    texts: list[str] = []
    objects: list[bytes] = []
    for (kind, text), code in wanted.items():
        with _about(code):
            made = _read(text) if kind == LLVM else compile_c(text, target, _is_readable)
            if isinstance(made, str):
                _look_into(made, target)
                texts.append(made)
            else:
                objects.append(made)
    return _checked(tuple(texts), tuple(objects), target)


@contextmanager
def _about(code: StringImm) -> Iterator[None]:
    """Errors from inside are about the pragma that gave this code."""
    try:
        yield
    except LoweringError as error:
        error.about = code
        raise


def _code(node: AttrStmt) -> StringImm:
    name = node.attr_key.removeprefix("pragma_")
    if not isinstance(node.value, StringImm) or not node.value.value.strip():
        raise LoweringError(f"the pragma {name} has no code", hint=f's[C].pragma(axis, "{name}", """...""")',
                            about=node.value)
    return node.value


def _read(text: str) -> str:
    """LLVM IR as it is given: itself, or the name of a .ll file."""
    if "\n" in text or not text.endswith((".ll", ".bc")):
        return text
    if text.endswith(".bc"):
        raise LoweringError(f"import_llvm of {text!r}: bitcode belongs to one version of LLVM",
                            hint="give the text: llvm-dis, or clang -S -emit-llvm")
    try:
        with open(text, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise LoweringError(f"import_llvm of the file {text!r}: {error.strerror}") from error


def _checked(texts: tuple[str, ...], objects: tuple[bytes, ...], target: Target) -> Imports:
    functions: dict[str, Prototype | None] = {}
    needed: dict[str, None] = {}
    for text in texts:
        defined, missing = _look_into(text, target)
        _no_doubles(functions, dict(defined))
        functions.update(defined)
        needed.update(dict.fromkeys(missing))
    for image in objects:
        names = defined_functions(image)
        _no_doubles(functions, dict.fromkeys(names))
        functions.update(dict.fromkeys(names))
        needed.update(dict.fromkeys(undefined_symbols(image)))
    outside = [name for name in needed if name not in functions]
    absent = [name for name in outside if not is_known(name) and target.runs_here and not extern_address(name)]
    if absent:
        raise LoweringError(f"the imported code calls {', '.join(absent)}, which neither it nor a library of this process has",
                            hint="define it in the imported code, or load its library first: "
                                 "ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    return Imports(texts, objects, functions, tuple(name for name in outside if not is_known(name)))


def process_functions(imports: Imports, image: bytes) -> tuple[str, ...]:
    """What the machine code needs of the libraries of this process for the imported code: also what LLVM calls for operations
    that the target lacks."""
    if not imports:
        return ()
    more = [name for name in undefined_symbols(image) if not is_known(name) and name not in imports.functions]
    absent = [name for name in more if not extern_address(name)]
    if absent:
        intrinsics = [name for name in absent if name.startswith("llvm.")]
        if intrinsics:  # older LLVMs read them as functions
            raise LoweringError(f"import_llvm: LLVM has no intrinsic {', '.join(intrinsics)}",
                                hint="check its name and the types behind it")
        raise LoweringError(f"the imported code uses an operation that the target lacks; LLVM calls {', '.join(absent)} for "
                            "it, which no library of this process has", hint="write the operation in the imported code itself")
    return (*dict.fromkeys((*imports.process, *more)),)


def _no_doubles(known: dict[str, Prototype | None], more: dict[str, Prototype | None]) -> None:
    twice = [name for name in more if name in known]
    if twice:
        raise LoweringError(f"the function {twice[0]} is defined in two imported texts", hint="import it once, or rename one")


@lru_cache(maxsize=64)
def _look_into(text: str, target: Target) -> tuple[tuple[tuple[str, Prototype], ...], tuple[str, ...]]:
    """The functions that the IR defines, and the names that it uses without defining them."""
    with llvm_lock:
        module = parsed(text, target)
        defined = tuple((f.name, _prototype(f)) for f in module.functions if not f.is_declaration)
        used = [f.name for f in module.functions if f.is_declaration] + [
            g.name for g in module.global_variables if g.is_declaration]
    if not defined:
        raise LoweringError("import_llvm: the code defines no function", hint="write define i32 @name(...) { ... }")
    return defined, tuple(name for name in used if not name.startswith("llvm."))


def _prototype(function: Any) -> Prototype:
    of = function.global_value_type
    return Prototype(str(of.get_function_return()), tuple(str(t) for t in of.get_function_parameters()))


def _is_readable(text: str) -> bool:
    """Whether our LLVM reads the IR that another one wrote."""
    llvm = loaded_llvm()
    with llvm_lock:
        try:
            llvm.parse_assembly(text)
        except RuntimeError:
            return False
    return True


# --- IR ------------------------------------------------------------------------------------------------------------------

def parsed(text: str, target: Target) -> Any:
    """The module of an imported text, verified, for `target`. Call it under the lock of LLVM."""
    llvm = loaded_llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise LoweringError(f"import_llvm: {_at_line(str(error), text)}",
                            hint="the text is LLVM IR, as clang -S -emit-llvm writes it") from None
    if module.triple and _platform(module.triple) != target.platform:
        raise LoweringError(f"import_llvm: the code is for {module.triple}, and the target is {target.triple}",
                            hint="compile it for this target, or leave out the line `target triple = ...`")
    unknown = re.search(r"; Unknown intrinsic\n(?:;.*\n)*declare [^@]*@([\w.]+)", str(module))
    if unknown:
        raise LoweringError(f"import_llvm: LLVM has no intrinsic {unknown[1]}", hint="check its name and the types behind it")
    _check_features(module, target)
    module.triple = target.triple
    module.data_layout = str(target_machine(target).target_data)
    return module


def _check_features(module: Any, target: Target) -> None:
    """Refuse intrinsics of instructions that the target lacks: LLVM would end the process over them."""
    from tedsl.codegen.llvm.outside.intrinsics import x86_feature

    if '"target-features"' in str(module) or '"target-cpu"' in str(module):
        return  # functions that say themselves for which machine they are
    for function in module.functions:
        name = function.name
        if name.startswith("llvm.x86.") and target.arch == "x86-64":
            needed = x86_feature(name)
            if needed and needed not in target.features:
                raise LoweringError(f"import_llvm: {name} needs {needed}, which target {target} does not have",
                                    hint=f"build for a machine that has it: llvm -mattr=+{needed}")
        elif re.match(r"llvm\.(x86|aarch64|arm|nvvm|amdgcn|ppc)\.", name) and name.split(".")[1] != target.arch:
            raise LoweringError(f"import_llvm: {name} is an instruction of {name.split('.')[1]}, and the target is {target}")


def _platform(triple: str) -> str:
    return Target(f"llvm -mtriple={triple}").platform


_PLACE = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _at_line(message: str, text: str) -> str:
    """LLVM's message with the line that it speaks of."""
    found = _PLACE.search(message)
    if found is None:
        return message.strip()
    number = int(found[1])
    lines = text.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number} of the code: {found[3]}\n    {line}"


def linked_text(source: str, texts: Sequence[str], target: Target) -> str:
    """The module as LLVM has it before it is optimised."""
    with llvm_lock:
        module = loaded_llvm().parse_assembly(source)
        link_into(module, texts, target)
        return str(module)


def link_into(module: Any, texts: Sequence[str], target: Target) -> None:
    """Puts the functions of the imported texts into `module`, where nobody else sees them. Call it under the lock of LLVM."""
    names: list[str] = []
    for text in texts:
        other = parsed(text, target)
        optimize_import(other, target)
        names += [f.name for f in other.functions if not f.is_declaration]
        names += [g.name for g in other.global_variables if not g.is_declaration and str(g.linkage) == "Linkage.external"]
        try:
            module.link_in(other)
        except RuntimeError as error:
            raise LoweringError(f"import_llvm: the code cannot be linked: {error}") from None
    local = set(names)
    for function in module.functions:
        if function.name in local:
            function.linkage = "internal"
