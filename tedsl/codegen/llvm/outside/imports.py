"""Adds code of other languages to a module: `pragma import_llvm` (LLVM IR) and `pragma import_c` (C or C++).

IR is parsed, verified and linked into the module before it is optimised; its functions then have local linkage. C is compiled
to IR if clang is installed and emits IR that our LLVM can read. Otherwise C, and IR with assembler, is compiled to an object
that is linked beside the module. Code that cannot be parsed, is for another machine or needs functions that no library has is
refused before LLVM compiles it; what the code does at run time is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from tedsl.codegen.llvm.linking.elf import defined_functions, has_initializers, thread_local_variables, undefined_symbols
from tedsl.codegen.llvm.machine import llvm_lock, loaded_llvm
from tedsl.codegen.llvm.outside.assembler import assembled
from tedsl.codegen.llvm.outside.compile_c import compile_c
from tedsl.codegen.llvm.outside.ir_code import Prototype, contents, initializers_refused, thread_local_refused
from tedsl.errors import LoweringError
from tedsl.ir.expr import Call, StringImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.functions import C_MATH
from tedsl.ir.ops import CALL_EXTERN, CALL_PURE_EXTERN
from tedsl.ir.stmt import AttrStmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record
from tedsl.runtime.symbols import extern_address, is_known
from tedsl.target import Target

LLVM, C = "pragma_import_llvm", "pragma_import_c"


@record
class Imports:
    """The imported code of a module. functions: those that it defines, with their types where these are known.

    process: functions that the code calls and that the libraries of this process have.
    """

    texts: tuple[str, ...] = ()
    objects: tuple[bytes, ...] = ()
    functions: dict[str, Prototype | None] = field(default_factory=dict)
    process: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.objects)


@record
class _Code:
    """One imported text: the functions that it exports, those that it needs, and its local ones, with their linkage.

    text: LLVM IR to be linked into the module; or image: the object to be linked beside it, and source: its C.
    """

    functions: dict[str, Prototype | None]
    needed: tuple[str, ...]
    hidden: dict[str, str] = field(default_factory=dict)
    text: str = ""
    image: bytes | None = None
    source: str = ""

    def hidden_as(self, name: str) -> str:
        """Returns the linkage of a function that others cannot call; "" for all others."""
        if name in self.hidden or not self.source:
            return self.hidden.get(name, "")
        return "static" if re.search(rf"\bstatic\b[^;{{}}=]*\b{re.escape(name)}\s*\(", self.source) else ""


_HIDDEN = {"internal": "an internal function", "private": "a private function", "static": "a static function",
           "alias": "an alias",
           "available_externally": "available_externally, a copy of a function that is elsewhere and that no library of this "
                                   "process has"}


def imports_of(funcs: Sequence[PrimFunc], target: Target) -> Imports:
    """Collects the code that pragmas of `funcs` import, each text once."""
    wanted: dict[tuple[str, str], StringImm] = {}
    for func in funcs:
        for node in post_order(func.body) if contains(func.body, LLVM, C) else ():
            if isinstance(node, AttrStmt) and node.attr_key in (LLVM, C):
                code = _code(node)
                wanted.setdefault((node.attr_key, code.value), code)
    if not wanted:
        return Imports()
    codes = []
    for (kind, text), code in wanted.items():
        with _about(code):
            compiled = _read(text) if kind == LLVM else compile_c(text, target, _is_readable)
            codes.append(_of_ir(compiled, target) if isinstance(compiled, str) else _of_object(compiled, text))
    imports = _checked(codes, target)
    _check_calls(funcs, codes, imports.functions, target)
    return imports


def _of_ir(text: str, target: Target) -> _Code:
    parts = contents(text, target)
    functions: dict[str, Prototype | None] = dict(parts.functions)
    if not parts.assembler:
        return _Code(functions, parts.needed, dict(parts.hidden), text)
    image = _refused_or(assembled(parts.assembler, target))
    return _Code(functions, tuple(undefined_symbols(image)), dict(parts.hidden), image=image)


def _of_object(image: bytes, source: str) -> _Code:
    functions: dict[str, Prototype | None] = dict.fromkeys(defined_functions(_refused_or(image)))
    return _Code(functions, tuple(undefined_symbols(image)), source=source, image=image)


def _refused_or(image: bytes) -> bytes:
    """Returns the object if it can be linked into a running process without a program loader, else raises LoweringError."""
    of_threads = thread_local_variables(image)
    if of_threads:
        raise thread_local_refused(of_threads[0])
    if has_initializers(image):
        raise initializers_refused()
    return image


@contextmanager
def _about(code: StringImm) -> Iterator[None]:
    """Context manager that adds the pragma with this code to errors raised inside."""
    try:
        yield
    except LoweringError as error:
        error.about = code
        raise


def _code(node: AttrStmt) -> StringImm:
    name = node.attr_key.removeprefix("pragma_")
    if not isinstance(node.value, StringImm):
        raise LoweringError(f"the pragma {name} takes the code as text, got {node.value!r}",
                            hint=f's[C].pragma(axis, "{name}", """...""")', about=node.value)
    if not node.value.value.strip():
        raise LoweringError(f"the pragma {name} has no code", hint=f's[C].pragma(axis, "{name}", """...""")',
                            about=node.value)
    return node.value


def _read(text: str) -> str:
    """Returns the LLVM IR of a pragma's value: the value itself, or the content of the .ll file that it names."""
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


def _checked(codes: Sequence[_Code], target: Target) -> Imports:
    functions: dict[str, Prototype | None] = {}
    needed: dict[str, None] = {}
    for code in codes:
        _no_doubles(functions, code.functions)
        functions.update(code.functions)
    inside = {name for code in codes if code.image is None for name in code.functions}
    for code in codes:
        within = [name for name in code.needed if name in inside] if code.image is not None else []
        if within:
            raise LoweringError(f"imported code calls {within[0]}, which stands in another imported text of LLVM IR, where "
                                "only the program and other LLVM IR can call it", hint="import them as one text")
        needed.update(dict.fromkeys(code.needed))
    outside = [name for name in needed if name not in functions]
    absent = [name for name in outside if not is_known(name) and target.runs_here and not extern_address(name)]
    if absent:
        raise LoweringError(f"the imported code calls {', '.join(absent)}, which neither it nor a library of this process has",
                            hint="define it in the imported code, or load its library first: "
                                 "ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)")
    return Imports(tuple(code.text for code in codes if code.image is None),
                   tuple(code.image for code in codes if code.image is not None),
                   functions, tuple(name for name in outside if not is_known(name)))


def _check_calls(funcs: Sequence[PrimFunc], codes: Sequence[_Code], functions: Container[str], target: Target) -> None:
    """Refuses calls of functions that are local to the imported code."""
    called = {node.args[0].value: None for func in funcs for node in post_order(func.body)
              if isinstance(node, Call) and node.op in (CALL_EXTERN, CALL_PURE_EXTERN)
              and isinstance(node.args[0], StringImm)}
    for name in called:
        linkage = next((code.hidden_as(name) for code in codes if code.hidden_as(name)), "")
        if not linkage or name in functions or name in C_MATH:
            continue
        if linkage not in ("internal", "private", "static") and (extern_address(name) or not target.runs_here):
            continue  # a copy of a function of the process, for inlining
        raise LoweringError(f"the imported code has {name} as {_HIDDEN.get(linkage, linkage)}: the program cannot call it",
                            hint="write a function that calls it, and call that" if linkage == "alias" else
                                 f"drop {linkage!r} from its definition")


def process_functions(imports: Imports, image: bytes) -> tuple[str, ...]:
    """Lists the functions of this process's libraries that the imported code needs, including those that LLVM calls for
    operations that the target lacks.
    """
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


def _is_readable(text: str) -> bool:
    """Tells whether our LLVM can read the IR that another LLVM wrote."""
    llvm = loaded_llvm()
    with llvm_lock:
        try:
            llvm.parse_assembly(text)
        except RuntimeError:
            return False
    return True
