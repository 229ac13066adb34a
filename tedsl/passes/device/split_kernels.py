"""Split a function for a device: each launch becomes a kernel, a function of its own, and a call of it in the host function.

before:  f(A, B, n):  attr [blockIdx.x] "thread_extent" = (n + 31) // 32; attr [threadIdx.x] "thread_extent" = 32 {
                        if (blockIdx.x*32 + threadIdx.x < n) { B[...] = A[...] + 1 } }
after:   f(A, B, n):  tir.call_packed("f_kernel0", A, B, n, (n + 31) // 32, 32)
         f_kernel0(A: Pointer, B: Pointer, n):  attr [blockIdx.x] "thread_extent" = (n + 31) // 32; ...

Arguments of a call: the pointers that the kernel uses, first those of the host's arguments in their order, then workspaces; the
numbers that it uses; the sizes of its axes, in the order of the launch; the bytes of its memory of scope "shared.dyn" if it
has some. Memory that the host function allocates becomes a workspace of the device: the functions ALLOCATE and FREE give it and
take it back. The host cannot see the memory of the device: accesses and calls that would do so are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.raw import raw_arguments
from tedsl.ir.dtype import HANDLE, INT32, INT64, DType
from tedsl.ir.expr import Call, Expr, IntImm, Let, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import CALL_EXTERN, CALL_PACKED, CALL_PURE_EXTERN, ELEMENTS_PAST_LINE
from tedsl.ir.script import script, shown
from tedsl.ir.stmt import LAUNCH, Allocate, AssertStmt, AttrStmt, Evaluate, For, ForKind, LetStmt, Stmt, Store, seq
from tedsl.ir.types import PointerType
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order, uses, variables
from tedsl.passes.device.share_memory import common_bytes
from tedsl.passes.facts.threads import has_launch, launched, scope_of
from tedsl.passes.threads.gather_threads import Kernel, kernel_of
from tedsl.passes.verify_memory import host_access
from tedsl.record import record
from tedsl.runtime.devices.launch import ALLOCATE, FREE
from tedsl.runtime.signature import WRITTEN, signature_of
from tedsl.target.target import Target

_FUNCTIONS = (CALL_PACKED, CALL_EXTERN, CALL_PURE_EXTERN)  # that are not of the program
KERNEL = "_kernel"  # between the name of the host function and the number of the kernel
DYNAMIC = "shared.dyn"  # the scope of shared memory whose size the launch says
DEVICE_SCOPE = "device_scope"  # AttrStmt key: the body runs on the device
_ALIGNMENT = 16  # of each allocation in it
# Attribute of a kernel: the numbers of those pointers whose memory may not end at a multiple of 16 bytes, each with the largest
# power of two whose multiple the size is, or 16 if the size is not a constant.
BROKEN = "tedsl.broken"


def launch_device_scopes(func: PrimFunc) -> PrimFunc:
    """Returns `func` with what stands under an attribute "device_scope" as a launch of one thread; itself if nothing does."""
    return func.with_body(_Scopes()(func.body))


class _Scopes(Rewriter):
    kinds = (DEVICE_SCOPE,)

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, AttrStmt) or node.attr_key != DEVICE_SCOPE:
            return node
        if has_launch(node.body):
            return node.body
        one = IterVar(None, Var("threadIdx.x", INT32), IterType.THREAD_INDEX, "threadIdx.x")
        return AttrStmt(one, LAUNCH, IntImm(INT32, 1), node.body)


@record(eq=False)
class SplitFunction:
    """A function for a device: `host` runs on the processor and calls the `kernels` by their names."""

    host: PrimFunc
    kernels: tuple[PrimFunc, ...]


def split_kernels(func: PrimFunc, target: Target) -> SplitFunction:
    """Returns the host function and the kernels of `func`, whose launches are gathered and have their barriers.

    Raises LoweringError for what neither of them can do.
    """
    splitter = _Splitter(func, target)
    body = splitter(func.body)
    written = tuple(k for k, param in signature_of(func).tensors() if param.written)
    host = func.with_body(body).with_attr(WRITTEN, written)
    _refuse_accesses(host, splitter.memory, target)
    return SplitFunction(host, tuple(splitter.kernels))


class _Splitter(ScopedRewriter):
    """Replaces launches by calls. memory: the pointers into memory of the device, in the order in which kernels take them.
    broken: those of them whose memory may end inside of a unit that devices load at once.
    """

    def __init__(self, func: PrimFunc, target: Target) -> None:
        self.func, self.target = func, target
        self.kernels: list[PrimFunc] = []
        arguments = raw_arguments(func)
        self.memory: dict[Var, None] = dict.fromkeys(buffer.data for buffer in func.buffers)
        self.broken = {buffer.data: rest for buffer in func.buffers if (rest := _unit(buffer.shape, buffer.dtype)) is not None}
        self.order = {var: k for k, var in enumerate(arguments)}

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if launched(stmt) is not None:
            return self.launch(stmt)
        if isinstance(stmt, Allocate):
            return self.workspace(stmt)
        if isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL:
            stmt = stmt.replace(kind=ForKind.SERIAL)  # launches are in the order of the program
        return self.descend(stmt)

    def launch(self, stmt: Stmt) -> Stmt:
        kernel = kernel_of(stmt)
        name = f"{self.func.name}{KERNEL}{len(self.kernels)}"
        _check_kernel(kernel, name)
        used = variables(stmt)
        inside = {*_bound_in(stmt), *(thread.var for thread in kernel.axes)}
        used += [var for thread in kernel.axes for var in variables(thread.count) if var not in used]
        pointers = [var for var in self.memory if var in used]
        numbers = [var for var in used if var not in inside and var not in self.memory]
        numbers.sort(key=lambda var: self.order.get(var, len(self.order)))
        self.kernels.append(PrimFunc((*pointers, *numbers), stmt, attrs=self.attributes(kernel, name, pointers)))
        sizes = [thread.count for thread in kernel.axes] + dynamic_bytes(kernel, name)
        return Evaluate(Call(INT32, CALL_PACKED, (StringImm(name), *pointers, *numbers, *sizes)))

    def attributes(self, kernel: Kernel, name: str, pointers: list[Var]) -> FrozenDict[str, object]:
        broken = tuple((k, self.broken[var]) for k, var in enumerate(pointers) if var in self.broken)
        return FrozenDict({
            "calling_conv": 2, "global_symbol": name, "tir.noalias": bool(self.func.attrs.get("tir.noalias", False)),
            "tir.device_thread_axis": tuple(thread.axis.thread_tag for thread in kernel.axes), "target": self.target,
            **({BROKEN: broken} if broken else {})})

    def workspace(self, stmt: Allocate) -> Stmt:
        scope = scope_of(stmt.buffer_var.type_annotation)
        if scope != "global":
            if not _used_by_kernels(stmt.buffer_var, stmt.body):
                return self.descend(stmt)
            raise LoweringError(f"{self.func.name}: {stmt.buffer_var.name} of scope {scope!r} is allocated outside of the "
                                "kernels that use it, and such memory is gone where a kernel ends",
                                hint="compute the stages that share it in one kernel (compute_at), or in global memory")
        self.memory[stmt.buffer_var] = None
        unit = _unit(stmt.extents, stmt.dtype)
        if unit is not None:
            self.broken[stmt.buffer_var] = unit
        size = functools.reduce(build.mul, [build.cast(INT64, extent) for extent in stmt.extents],
                                build.const(stmt.dtype.bytes * stmt.dtype.lanes, INT64))
        given = Call(HANDLE, CALL_PACKED, (StringImm(ALLOCATE), build.maximum(size, build.const(0, INT64))))
        taken = Evaluate(Call(INT32, CALL_PACKED, (StringImm(FREE), stmt.buffer_var)))
        return LetStmt(stmt.buffer_var, given, seq(self(stmt.body), taken))


def _used_by_kernels(memory: Var, stmt: Stmt) -> bool:
    return any(launched(node) is not None and uses(node, memory) for node in post_order(stmt))


def _unit(extents: Sequence[Expr], of: DType) -> int | None:
    """Returns None for an array of `extents` elements that certainly has a multiple of 16 bytes; else what BROKEN says."""
    size = functools.reduce(build.mul, [build.cast(INT64, extent) for extent in extents],
                            build.const(of.bytes * of.lanes, INT64))
    rest = build.as_int(Analyzer().simplify(build.floormod(size, _ALIGNMENT)))
    return None if rest == 0 else _ALIGNMENT if rest is None else rest & -rest


def dynamic_bytes(kernel: Kernel, name: str) -> list[Expr]:
    """Returns, in a list, the bytes of the memory of scope "shared.dyn" that the kernel allocates; an empty list for none."""
    nodes = [node for node in post_order(kernel.body) if isinstance(node, Allocate) and _is_dynamic(node.buffer_var)]
    if together := common_bytes(nodes):
        return [build.const(together, INT64)]
    sizes = [_dynamic_size(node, kernel, name) for node in nodes]
    return [functools.reduce(build.add, sizes)] if sizes else []


def _is_dynamic(memory: Var) -> bool:
    annotation = memory.type_annotation
    return isinstance(annotation, PointerType) and annotation.storage_scope == DYNAMIC


def _dynamic_size(stmt: Allocate, kernel: Kernel, name: str) -> Expr:
    inside = {*_bound_in(kernel.body), *(thread.var for thread in kernel.axes)}
    for extent in stmt.extents:
        if any(var in inside for var in variables(extent)):
            raise LoweringError(f"{name}: the size of {stmt.buffer_var.name}, {shown(extent)}, is not known at the launch")
    size = functools.reduce(build.mul, [build.cast(INT64, extent) for extent in stmt.extents],
                            build.const(stmt.dtype.bytes * stmt.dtype.lanes, INT64))
    unit = build.const(_ALIGNMENT, INT64)
    return build.mul(build.floordiv(build.add(size, build.const(_ALIGNMENT - 1, INT64)), unit), unit)


def _bound_in(stmt: Stmt) -> list[Var]:
    """Returns the variables that statements and expressions in `stmt` bind."""
    bound = []
    for node in post_order(stmt):
        match node:
            case For(loop_var=var) | LetStmt(var=var) | Let(var=var) | Allocate(buffer_var=var):
                bound.append(var)
            case AttrStmt() if (axis := launched(node)) is not None:
                bound.append(axis.var)
    return bound


def _check_kernel(kernel: Kernel, name: str) -> None:
    """Raises LoweringError for statements that no device executes."""
    for node in post_order(kernel.body):
        match node:
            case AssertStmt(condition=condition, message=message):
                raise LoweringError(f"{name}: the assertion {script(condition)} stands inside of a kernel, which cannot raise "
                                    f"{script(message)}",
                                    hint='assert before the launch; PassContext(config={"tir.disable_assert": True}) drops all '
                                         'assertions, and build(..., target="llvm") checks them with the threads as loops')
            case Call(op=op, args=(StringImm(value=called), *_)) if op is CALL_PACKED:
                raise LoweringError(f"{name}: the Python function {called} is called inside of a kernel; a device cannot call "
                                    "the processor", hint="call it before or after the launch")
            case Allocate(buffer_var=var) if scope_of(var.type_annotation) == "global":
                raise LoweringError(f"{name}: {var.name} is allocated in global memory inside of a kernel: no device can",
                                    hint=f'choose where it lies: s[{var.name}].set_scope("shared") or "local"',
                                    about=var.name)


def _refuse_accesses(host: PrimFunc, memory: dict[Var, None], target: Target) -> None:
    """Raises LoweringError if the host function would load or store memory of the device, or hand it to C functions."""
    accessed: dict[str, None] = {}
    computed: dict[str, None] = {}
    for node in post_order(host.body):
        if isinstance(node, Call) and node.op in _FUNCTIONS:
            _refuse_given(node, host.name, memory, target)
        if isinstance(node, Call) and node.op is CALL_PACKED:
            continue
        for var in _touched(node):
            if var in memory:
                accessed.setdefault(var.name)
                if isinstance(node, Store):
                    computed.setdefault(var.name)
    if accessed:
        raise host_access(host.name, target, list(accessed), list(computed))


def _refuse_given(call: Call, function: str, memory: dict[Var, None], target: Target) -> None:
    """Raises LoweringError if a call of a function of Python or C, other than a launch, is given memory of the device."""
    name = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else ""
    arrays = dict.fromkeys(var.name for arg in call.args[1:] if not isinstance(arg, Var)
                           for node in post_order(arg) for var in _touched(node) if var in memory)
    if call.op is not CALL_PACKED:
        arrays |= dict.fromkeys(var.name for var in _touched(call) if var in memory)
    if arrays:
        language = "Python" if call.op is CALL_PACKED else "C"
        raise LoweringError(f"{function} calls the {language} function {name!r}, which runs on the processor, with "
                            f"{', '.join(arrays)}, which {target.kind} has in its own memory",
                            hint="write the stage as a formula, or build what stands before and after it for "
                                 f"{target.kind.name} and call {name!r} between them, on arrays of the CPU")


def _touched(node: object) -> list[Var]:
    """Returns the memory that `node` itself loads from, stores to, or hands on; not that whose address alone is asked for."""
    match node:
        case Store(buffer_var=var) | Load(buffer_var=var):
            return [var]
        case Call(op=op, args=args) if op is not ELEMENTS_PAST_LINE:
            return [arg for arg in args if isinstance(arg, Var) and arg.dtype.is_handle]
        case _:
            return []
