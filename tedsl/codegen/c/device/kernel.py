"""Kernels of a device as functions: their parameters, the threads that run them, the memory of a block, their text."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.c.device.language import Language
from tedsl.codegen.c.device.memory import SharedArray, device_tables, dynamic_arrays, emit_dynamic_arrays, shared_arrays
from tedsl.codegen.c.emitter import Emitter, FunctionFacts
from tedsl.codegen.c.kernel import WIDTH, bind_parameters
from tedsl.codegen.c.text.function import WORD, without_unused
from tedsl.codegen.c.text.module_text import ModuleText
from tedsl.codegen.c.text.names import RESERVED, Names, is_identifier
from tedsl.codegen.c.text.piece import INT64_MAX, Piece
from tedsl.codegen.c.text.types import memory_type
from tedsl.errors import ArgumentError, InternalError
from tedsl.ir.build import as_int
from tedsl.ir.dtype import FLOAT32, INT64, UINT64
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Stmt, Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.threads.gather_threads import Kernel, kernel_of
from tedsl.runtime.devices.code import DeviceFunction, DeviceParameter
from tedsl.runtime.raw_form import ARRAY, NUMBER, RawParameter, travelling_type


def emit_device_kernel(func: PrimFunc, module: ModuleText, language: Language) -> DeviceFunction:
    """Writes the kernel `func` into the module, and returns how it is launched."""
    if not is_identifier(func.name):
        raise ArgumentError(f"a kernel cannot be named {func.name!r}: a name has letters, digits and single underscores",
                            hint='build(..., name="fused_add")')
    launch = kernel_of(func.body)
    names = Names(RESERVED | language.reserved | {func.name})
    parameters = kernel_parameters(func, names)
    noalias = bool(func.attrs.get("tir.noalias"))
    out = Emitter(module, device_tables(language), FunctionFacts(func.name, frozenset(), noalias, _no_status, func.name), names)
    bind_parameters(out, parameters, set())
    body = launch.running.body
    shared, dynamic = shared_arrays(out, body, language), dynamic_arrays(body)
    threads = _bind_threads(out, launch, language)
    declared = [_declared(p, language, module.dialect.restrict if noalias else "") for p in parameters]
    first: list[str] = []
    if dynamic:
        memory = out.names.fresh("dynamic.shared")
        (declared if language.dynamic_is_parameter else first).append(language.dynamic.format(name=memory))
        emit_dynamic_arrays(out, dynamic, memory, language)
    out.statement(body)
    lines = without_unused(out.blocks[0].lines)
    used = {word for line in lines for word in WORD.findall(line)}
    shared = _with_what_they_need([array for array in shared if array.name in used], shared)
    first += [array.declaration for array in shared] + [line for name, line in threads.items() if name in used]
    block = fixed_block(launch)
    lines = [f"    {line}" if line else "" for line in [*first, *lines]]
    module.functions[func.name] = "\n".join([_header(func.name, declared, language, block), "{", *lines, "}\n"])
    return DeviceFunction(func.name, tuple(_given(p) for p in parameters), tuple(axis.axis.thread_tag for axis in launch.axes),
                          bool(dynamic), sum(array.size for array in shared), block)


def _with_what_they_need(used: list[SharedArray], every: list[SharedArray]) -> list[SharedArray]:
    """Returns the arrays `used`, and those of `every` inside of which they lie."""
    words = {word for array in used for word in WORD.findall(array.declaration)}
    return [array for array in every if array.name in words]


def _no_status(message: str) -> int:
    raise InternalError(f"a kernel cannot fail with a message: {message}")


def kernel_parameters(func: PrimFunc, names: Names) -> list[RawParameter]:
    """Returns the parameters of a kernel: its pointers, then its numbers, which travel wide."""
    stored = written(func.body)
    found = []
    for var in func.params:
        annotation = var.type_annotation
        if isinstance(annotation, PointerType):
            found.append(RawParameter(names.fresh(var.name), var, annotation.element_type.dtype.element, ARRAY, var in stored))
        else:
            found.append(RawParameter(names.fresh(var.name), var, var.dtype, NUMBER))
    return found


def written(body: Stmt) -> set[Expr]:
    """Returns the data pointers that the statements store to, or give to a function that may."""
    found: set[Expr] = set()
    for node in post_order(body):
        if isinstance(node, Store):
            found.add(node.buffer_var)
        elif isinstance(node, Call) and node.op.effect == "opaque":
            found.update(var for arg in node.args for var in post_order(arg) if isinstance(var, Var))
    return found


def _bind_threads(out: Emitter, launch: Kernel, language: Language) -> dict[str, str]:
    """Tells `out` the number of the thread in each axis; returns the declarations by name."""
    declared = {}
    for axis in launch.axes:
        if not axis.is_single:
            name, count = out.names.fresh(axis.var.name), as_int(axis.count)
            declared[name] = f"const int64_t {name} = {language.places[axis.axis.thread_tag]};"
            limit = INT64_MAX if axis.var.dtype.max_value is None else axis.var.dtype.max_value
            out.index[axis.var] = Piece(name, low=0, high=limit - 1 if count is None else max(0, count - 1))
    return declared


def fixed_block(launch: Kernel) -> tuple[int, int, int]:
    """Returns the sizes of a block along x, y and z; 0, 0, 0 where one is not a constant, or nothing runs."""
    counts = {axis.axis.thread_tag: as_int(axis.count) for axis in launch.axes}
    x, y, z = (counts.get(f"threadIdx.{letter}", 1) for letter in "xyz")
    return (x, y, z) if x and y and z else (0, 0, 0)


def _header(name: str, declared: Sequence[str], language: Language, block: tuple[int, int, int]) -> str:
    before = language.kernel.format(**dict(zip("xyz", block))) if block[0] else language.any_block
    start = f"{before}{name}("
    indent = " " * len(start.rsplit("\n", 1)[-1])
    one_line = f"{indent}{', '.join(declared)})"
    return start + (one_line.lstrip() if len(one_line) <= WIDTH else (",\n" + indent).join(declared) + ")")


def _declared(p: RawParameter, language: Language, restrict: str) -> str:
    if p.kind == ARRAY:
        const, restricted = "" if p.written else "const ", f"{restrict} " if restrict else ""
        return f"{language.array}{const}{memory_type(p.dtype)} *{restricted}{p.name}"
    return f"const {travelling_type(p.dtype)} {p.name}"


def _given(p: RawParameter) -> DeviceParameter:
    """Returns a parameter as the host gives it: numbers travel wide."""
    if p.kind == ARRAY:
        return DeviceParameter(p.name, p.dtype, True, p.written)
    wide = UINT64 if p.dtype.is_uint and p.dtype.bits == 64 else INT64
    if p.dtype.is_float:
        wide = p.dtype if p.dtype.bits == 64 else FLOAT32
    return DeviceParameter(p.name, wide, False)
