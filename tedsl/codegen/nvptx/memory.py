"""The memory of a kernel: its parameters, shared memory, and memory of one thread."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tedsl.codegen.llvm.emitter import BufferInfo, Emitter, ModuleText
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, Index, atom_index
from tedsl.codegen.llvm.types import memory_type
from tedsl.codegen.nvptx.fragments import MATRIX_ALIGNMENT, Fragments, emit_fragments
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.build import as_int
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Call, Load, SizeVar, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF, CP_ASYNC, ELEMENTS_PAST_LINE
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, Stmt, Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.device.share_memory import ALIGNMENT as SHARED_ALIGNMENT
from tedsl.passes.device.share_memory import common_bytes, offset_of, scope_text
from tedsl.passes.device.split_kernels import BROKEN

ALIGNMENT = 16  # bytes of every array that a kernel gets, and of the memory that it allocates: one load of four floats
DYNAMIC, DYNAMIC_NAME = "shared.dyn", "tedsl_dynamic_shared"
_SHARED = ("shared", "global")  # memory of a block: what a kernel allocates, its blocks do not have in common


@dataclass
class SharedMemory:
    """The shared memory of the kernel that is being written. bytes: of its code; dynamic: those that the launch gives, if any.
    """

    bytes: int = 0
    dynamic: Index | None = None
    common: str = ""  # the memory that buffers have together, if any

    @staticmethod
    def of(out: Emitter) -> SharedMemory:
        """Returns the shared memory of the kernel that `out` writes."""
        known: SharedMemory = out.__dict__.setdefault("shared_memory", SharedMemory())
        return known


def is_pointer(var: Var) -> bool:
    """Tells whether a parameter of a kernel is the pointer to an array."""
    return isinstance(var.type_annotation, PointerType)


def written_memory(kernel: PrimFunc) -> set[Var]:
    """Returns the pointers that `kernel` stores to, or hands to a call as an address."""
    found = set[Var]()
    for node in post_order(kernel.body):
        if isinstance(node, Store):
            found.add(node.buffer_var)
        elif isinstance(node, Call):
            pointers = [(at, arg) for at, arg in enumerate(node.args) if isinstance(arg, Var) and is_pointer(arg)]
            found |= {arg for at, arg in pointers if not _reads(node, at)}
            if node.op is ADDRESS_OF:
                found |= {inner.buffer_var for inner in post_order(node) if isinstance(inner, Load)}
    return found


def _reads(call: Call, at: int) -> bool:
    """Tells whether a call does not write the memory that its argument number `at` points to."""
    return call.op is ELEMENTS_PAST_LINE or (call.op is CP_ASYNC and at == 2) \
        or (call.op is ACCESS_PTR and as_int(call.args[4]) == 1)


def parameter_dtype(var: Var) -> DType:
    """Returns the dtype in which a scalar parameter travels: 16-bit floats as float32, bool as a byte."""
    d = var.dtype
    if d.is_float and d.bits == 16:
        return dtype("float32")
    return dtype("uint8") if d.is_bool else d


def bind_parameters(kernel: PrimFunc, out: Emitter) -> list[str]:
    """Declares the parameters of a kernel to `out` and returns their text for its header."""
    written, parameters = written_memory(kernel), []
    broken = dict(kernel.attrs.get(BROKEN, ()))
    for number, var in enumerate(kernel.params):
        text = "%" + out.fresh(var.name)
        if is_pointer(var):
            out.scope.buffers[var] = BufferInfo(text, 0, broken.get(number, ALIGNMENT), broken=number in broken)
            facts = [*(["noalias"] if out.function.noalias else []), *(["readonly"] if var not in written else [])]
            if number not in broken:
                facts.append(f"align {ALIGNMENT}")
            parameters.append(" ".join(["ptr", *facts, text]))
            continue
        parameters.append(f"{memory_type(parameter_dtype(var))} {text}")
        _bind_scalar(out, var, text)
    return parameters


def _bind_scalar(out: Emitter, var: Var, text: str) -> None:
    d = var.dtype
    if d.is_bool:
        out.scope.data[var] = out.here(f"icmp ne i8 {text}, 0")
        return
    if not d.is_integer or (d.is_uint and d.bits == 64):
        out.scope.data[var] = text
        return
    assert d.min_value is not None and d.max_value is not None
    low, bits = 0 if isinstance(var, SizeVar) else max(d.min_value, INT64_MIN), 32 if d.bits < 32 or d == "int32" else 64
    if d.bits < bits:
        text = out.here(f"{'sext' if d.is_int else 'zext'} i{d.bits} {text} to i{bits}")
    out.scope.index[var] = atom_index(out.atom(text, 0, low, min(d.max_value, INT64_MAX), bits))


def emit_allocate(out: Emitter, s: Allocate) -> None:
    """Emits an allocation: shared memory is a global of the module, memory of one thread lives on its stack."""
    annotation = s.buffer_var.type_annotation
    scope = (annotation.storage_scope if isinstance(annotation, PointerType) else "") or "global"
    offset = offset_of(s)
    if offset is not None:
        out.scope.buffers[s.buffer_var] = BufferInfo(_inside(out, s, common_name(out, scope), offset), 0, ALIGNMENT, own=True)
        out.statement(s.body)
        return
    if scope == DYNAMIC:
        out.scope.buffers[s.buffer_var] = BufferInfo(_dynamic(out, s), 0, ALIGNMENT, own=True)
        out.statement(s.body)
        return
    count = s.dtype.lanes
    for extent in s.extents:
        size = as_int(extent)
        if size is None:
            raise LoweringError(f"the size of {s.buffer_var.name}, {shown(extent)}, is not a constant: memory in scope {scope} "
                                "of a kernel has a fixed size",
                                hint="split the loop by a constant, so that a block needs a fixed part of it")
        count *= max(0, size)
    if scope.startswith("wmma."):
        emit_fragments(out, s, count)
        return
    count = -(-max(1, count) * s.dtype.bytes // ALIGNMENT) * ALIGNMENT // s.dtype.bytes  # loads may be joined up to its end
    t = f"[{count} x {memory_type(s.dtype.element)}]"
    pointer = _shared(out, s, t, count * s.dtype.bytes) if scope in _SHARED else out.alloca(t, ALIGNMENT, s.buffer_var.name)
    out.scope.buffers[s.buffer_var] = BufferInfo(pointer, 0, ALIGNMENT, own=True)
    out.statement(s.body)


def declare_common(out: Emitter, body: Stmt) -> None:
    """Declares the memory that buffers of `body` have together, if some do (`passes/device/share_memory.py`)."""
    placed = [node for node in post_order(body) if isinstance(node, Allocate) and offset_of(node) is not None]
    shared = SharedMemory.of(out)
    if any(scope_text(node) == DYNAMIC for node in placed):
        _declare_dynamic(out)
        shared.dynamic = ix.ZERO
    size = common_bytes(node for node in placed if scope_text(node) != DYNAMIC)
    if size:
        shared.common, shared.bytes = f"{out.function.name}_shared", size
        while shared.common in out.module.definitions:
            shared.common += "_"
        _define_shared(out, shared.common, f"[{size} x i8]", SHARED_ALIGNMENT)


def _declare_dynamic(out: Emitter) -> str:
    """Declares the shared memory of a launch, and returns its name."""
    out.module.definitions[DYNAMIC_NAME] = \
        f"@{DYNAMIC_NAME} = external addrspace(3) global [0 x i8], align {SHARED_ALIGNMENT}"
    return DYNAMIC_NAME


def common_name(out: Emitter, scope: str) -> str:
    """Returns the name of the memory that buffers of a scope have together."""
    return DYNAMIC_NAME if scope == DYNAMIC else SharedMemory.of(out).common


def _inside(out: Emitter, s: Allocate, name: str, offset: int) -> str:
    pointer = "%" + out.fresh(s.buffer_var.name)
    out.entry.append(f"  {pointer}.there = getelementptr i8, ptr addrspace(3) @{name}, i64 {offset}")
    out.entry.append(f"  {pointer} = addrspacecast ptr addrspace(3) {pointer}.there to ptr")
    return pointer


def _shared(out: Emitter, s: Allocate, t: str, size: int) -> str:
    shared = SharedMemory.of(out)
    alignment = MATRIX_ALIGNMENT if s.buffer_var in Fragments.of(out).moved else ALIGNMENT
    shared.bytes += size
    name = f"{out.function.name}_{out.fresh(s.buffer_var.name)}".replace(".", "_")
    while name in out.module.definitions:
        name += "_"
    _define_shared(out, name, t, alignment)
    pointer = "%" + out.fresh(s.buffer_var.name)
    out.entry.append(f"  {pointer} = addrspacecast ptr addrspace(3) @{name} to ptr")
    return pointer


def _define_shared(out: Emitter, name: str, t: str, alignment: int) -> None:
    """Defines a variable of shared memory that keeps its size: LLVM cuts one whose uses are vectors to their size, but joins
    their loads beyond it, where other variables may lie.
    """
    out.module.definitions[name] = f"@{name} = internal addrspace(3) global {t} poison, align {alignment}"
    out.module.kept.append(f"ptr addrspacecast (ptr addrspace(3) @{name} to ptr)")


def kept_variables(module: ModuleText) -> list[str]:
    """Returns the definition that says which variables LLVM leaves as they are, if there are some."""
    if not module.kept:
        return []
    return [f"@llvm.used = appending global [{len(module.kept)} x ptr] [{', '.join(module.kept)}], section \"llvm.metadata\""]


def _dynamic(out: Emitter, s: Allocate) -> str:
    """Emits the address of an allocation in the shared memory of a launch: they lie there one after the other."""
    shared, unit = SharedMemory.of(out), s.dtype.bytes * s.dtype.lanes
    at = shared.dynamic or ix.ZERO
    size = out.scalar_index(functools.reduce(build.mul, s.extents))
    whole = ix.add(ix.scale(size, unit), ix.constant(ALIGNMENT - 1))
    if size.terms:
        rounded, level = out.register(whole)
        rounded = out.pure(f"and i64 {rounded}, {-ALIGNMENT}", level)
        whole = ix.atom_index(out.atom(rounded, level, 0, INT64_MAX >> 8))
    else:
        whole = ix.constant(whole.const // ALIGNMENT * ALIGNMENT)
    shared.dynamic = ix.add(at, whole)
    name = _declare_dynamic(out)
    offset, level = out.register(at)
    inside = out.pure(f"getelementptr i8, ptr addrspace(3) @{name}, i64 {offset}", level)
    return out.pure(f"addrspacecast ptr addrspace(3) {inside} to ptr", level)
