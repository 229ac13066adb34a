"""Parses and verifies imported LLVM IR, refuses code that cannot work in a running process, and links it into a module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tedsl.codegen.llvm.machine import llvm_lock, loaded_llvm, optimize_import, target_machine
from tedsl.codegen.llvm.outside.intrinsics import x86_feature
from tedsl.errors import LoweringError
from tedsl.record import record
from tedsl.target import Target

_STRING = re.compile(r'"[^"]*"')
_ASSEMBLER = re.compile(r"(?<![@%\w.$-])asm(?![\w.$-])")
_ALIAS = re.compile(r'^@("[^"]*"|[\w.$-]+) = (?:[\w()]+ )*(alias|ifunc) ', re.MULTILINE)
# What others may call. Linkonce code is dropped where it is unused, and a call from outside does not count as a use.
_KEPT = {"linkonce_any": "weak_any", "linkonce_odr": "weak_odr"}
_VISIBLE = frozenset(("external", "weak_any", "weak_odr", *_KEPT))


@record
class Prototype:
    """The LLVM types that a function takes and returns."""

    result: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.result} ({', '.join(self.parameters)})"


@record
class Contents:
    """The functions of an imported text: those it exports, those it needs from elsewhere, and its local ones, each with its
    linkage.

    assembler: the text as LLVM prints it for the target, if it contains assembler; else "".
    """

    functions: tuple[tuple[str, Prototype], ...]
    needed: tuple[str, ...]
    hidden: tuple[tuple[str, str], ...]
    assembler: str


@lru_cache(maxsize=64)
def contents(text: str, target: Target) -> Contents:
    with llvm_lock:
        module = parsed(text, target)
        linkages = [(f, _linkage(f)) for f in module.functions if not f.is_declaration]
        used = [f.name for f in module.functions if f.is_declaration] + [
            g.name for g in module.global_variables if g.is_declaration]
        functions = tuple((f.name, _prototype(f)) for f, linkage in linkages if linkage in _VISIBLE)
        hidden = [(f.name, linkage) for f, linkage in linkages if linkage not in _VISIBLE]
        whole = str(module)
        _check_loader(module, whole, target)
    hidden += [(name.strip('"'), kind) for name, kind in _ALIAS.findall(whole)]
    if not functions and not hidden:
        raise LoweringError("import_llvm: the code defines no function", hint="write define i32 @name(...) { ... }")
    assembler = whole if _ASSEMBLER.search(_STRING.sub("", whole)) else ""
    return Contents(functions, tuple(name for name in used if not name.startswith("llvm.")), tuple(hidden), assembler)


def _check_loader(module: Any, whole: str, target: Target) -> None:
    """Refuses code that needs a program loader, since none runs when code is linked into a running process. Optimises
    `module`.
    """
    for g in module.global_variables:
        if re.search(r"\bthread_local\b", _STRING.sub("", str(g)).partition(" = ")[2]):
            raise thread_local_refused(g.name)
    chosen = next((name for name, kind in _ALIAS.findall(whole) if kind == "ifunc"), None)
    if chosen is not None:
        raise LoweringError(f"the imported code has the ifunc {chosen}, which a loader would resolve",
                            hint="choose the function by a branch, or by the target that you build for")
    if "@llvm.global_dtors" in whole:
        raise initializers_refused()
    if "@llvm.global_ctors" in whole:
        optimize_import(module, target)  # it runs those that do no more than set variables
        if any(g.name == "llvm.global_ctors" and "[0 x" not in str(g) for g in module.global_variables):
            raise initializers_refused()


def thread_local_refused(name: str) -> LoweringError:
    return LoweringError(f"the variable {name} of the imported code is thread-local: code that is linked into a running "
                         "process has no storage for each thread, it would use that of others",
                         hint="make it a plain variable, or pass a pointer to memory of the caller's")


def initializers_refused() -> LoweringError:
    return LoweringError("the imported code has functions to be run when it is loaded or unloaded (llvm.global_ctors, "
                         "__attribute__((constructor)), C++ objects with constructors), and nobody runs them",
                         hint="set the variable where it is declared, or on the first call of the function that uses it")


def _linkage(value: Any) -> str:
    name: str = value.linkage.name
    return name


def _prototype(function: Any) -> Prototype:
    of = function.global_value_type
    return Prototype(str(of.get_function_return()), tuple(str(t) for t in of.get_function_parameters()))


def parsed(text: str, target: Target) -> Any:
    """Returns the verified module of an imported text for `target`. The caller holds the lock of LLVM."""
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
    for function in module.functions:
        if not function.is_declaration and _linkage(function) in _KEPT:
            function.linkage = _KEPT[_linkage(function)]
    module.triple = target.triple
    module.data_layout = str(target_machine(target).target_data)
    return module


def _check_features(module: Any, target: Target) -> None:
    """Refuses intrinsics of instructions that the target lacks, which would make LLVM end the process."""
    if '"target-features"' in str(module) or '"target-cpu"' in str(module):
        return  # functions that say themselves for which machine they are
    for function in module.functions:
        name = function.name
        if name.startswith("llvm.x86.") and target.architecture == "x86-64":
            needed = x86_feature(name)
            if needed and needed not in target.features:
                raise LoweringError(f"import_llvm: {name} needs {needed}, which target {target} does not have",
                                    hint=f"build for a machine that has it: llvm -mattr=+{needed}")
        elif re.match(r"llvm\.(x86|aarch64|arm|nvvm|amdgcn|ppc)\.", name) and name.split(".")[1] != target.architecture:
            raise LoweringError(f"import_llvm: {name} is an instruction of {name.split('.')[1]}, and the target is {target}")


def _platform(triple: str) -> str:
    return Target(f"llvm -mtriple={triple}").platform


_PLACE = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _at_line(message: str, text: str) -> str:
    """Appends to LLVM's message the line of `text` that it refers to."""
    place = _PLACE.search(message)
    if place is None:
        return message.strip()
    number = int(place[1])
    lines = text.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number} of the code: {place[3]}\n    {line}"


def linked_text(source: str, texts: Sequence[str], target: Target) -> str:
    """Returns the IR of the module with the imported texts linked, before it is optimised."""
    with llvm_lock:
        module = loaded_llvm().parse_assembly(source)
        link_into(module, texts, target)
        return str(module)


def link_into(module: Any, texts: Sequence[str], target: Target) -> None:
    """Links the functions of the imported texts into `module` with local linkage. The caller holds the lock of LLVM."""
    names: list[str] = []
    for text in texts:
        other = parsed(text, target)
        optimize_import(other, target)
        names += [f.name for f in other.functions if not f.is_declaration and _linkage(f) in _VISIBLE]
        try:
            module.link_in(other)
        except RuntimeError as error:
            raise LoweringError(f"import_llvm: the code cannot be linked: {error}") from None
    local = set(names)
    for function in module.functions:
        if function.name in local:
            function.linkage = "internal"
