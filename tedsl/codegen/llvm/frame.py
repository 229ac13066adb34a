"""The frame of a function: its arguments, its arrays on the stack, its workspaces, and how it is left with a status.

Small arrays live on the stack, in registers if their indices are constants; the rest in workspaces of the thread's pool.
"""

from __future__ import annotations

from tedsl.codegen.kernels import abi
from tedsl.codegen.llvm.emitter import BufferInfo, Emitter
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, Index, atom_index
from tedsl.codegen.llvm.types import argument_type, memory_type, register_type
from tedsl.codegen.llvm.values.convert import convert
from tedsl.ir.dtype import FLOAT32, HANDLE, DType
from tedsl.ir.expr import Add, Cast, Expr, IntImm, Mul, SizeVar, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate

RESULT = Var("result", HANDLE)  # where the function stores the number that it returns; absent if it returns nothing
ERROR = Var("error", HANDLE)  # the word for the exception of a Python function that was called; absent if none is called


def emit_allocate(out: Emitter, s: Allocate) -> None:
    size = s.dtype.bytes * s.dtype.lanes
    if s not in out.function.on_stack:
        _in_workspace(out, s, [out.scalar_index(e) for e in s.extents], size)
        return
    count = s.dtype.lanes
    for e in s.extents:
        count *= max(0, e.value)  # type: ignore[attr-defined]
    array = f"[{max(1, count)} x {memory_type(s.dtype.element)}]"
    out.scope.buffers[s.buffer_var] = BufferInfo(out.alloca(array, abi.WORKSPACE_ALIGNMENT, s.buffer_var.name), 0,
                                           abi.WORKSPACE_ALIGNMENT, own=True, count=max(1, count))
    out.statement(s.body)


def _in_workspace(out: Emitter, s: Allocate, extents: list[Index], size: int) -> None:
    """Emits an allocation from the thread's pool around a body; it is freed after the body or when the function is left."""
    _refuse_overflow(out, s.extents, size)
    text = _bytes_of(out, extents, size)
    symbol = out.module.declare("tedsl_workspace_alloc", "declare noalias ptr @tedsl_workspace_alloc(i64)")
    pointer = "%" + out.fresh(s.buffer_var.name)
    out.line(f"{pointer} = call ptr {symbol}(i64 {text})")
    fail_unless(out, out.assign(f"icmp ne ptr {pointer}, null"), str(abi.NO_MEMORY))
    out.scope.buffers[s.buffer_var] = BufferInfo(pointer, out.level, abi.WORKSPACE_ALIGNMENT, own=True)
    out.workspaces.append(pointer)
    out.statement(s.body)
    out.workspaces.pop()
    out.line(f"call void {free_function(out)}(ptr {pointer})")


def _bytes_of(out: Emitter, extents: list[Index], size: int) -> str:
    """Emits the number of bytes, as i64, of an array with those extents; 0 where an extent is negative, as it may be in a loop
    without iterations.
    """
    known, product, at = size, "", 0
    for extent in extents:
        text, level = out.register(extent)
        if text[0] != "%":
            known *= max(0, int(text))
            continue
        if extent.bounds()[0] < 0:
            symbol = out.module.declare("llvm.smax.i64", "declare i64 @llvm.smax.i64(i64, i64)")
            text = out.pure(f"call i64 {symbol}(i64 {text}, i64 0)", level)
        at = max(at, level)
        product = text if not product else out.pure(f"mul i64 {product}, {text}", at)
    known = min(known, INT64_MAX)
    return str(known) if not product else product if known == 1 else out.pure(f"mul i64 {product}, {known}", at)


def _refuse_overflow(out: Emitter, extents: tuple[Expr, ...], size: int) -> None:
    """Leaves the function with an error if the number of bytes does not fit 64 bits. The test computes it in doubles, which do
    not wrap.
    """
    if all(isinstance(e, (IntImm, Var)) and e.dtype.bits <= 32 for e in extents) and len(extents) < 2:
        return
    total = f"{float(size)!r}"
    for e in extents:
        total = out.assign(f"fmul double {total}, {_in_doubles(out, e)}")
    fail_unless(out, out.assign(f"fcmp olt double {total}, {float(1 << 62)!r}"), str(abi.NO_MEMORY))


def _in_doubles(out: Emitter, e: Expr) -> str:
    """Emits the approximate value, as a double, of an index expression whose parts may exceed 64 bits."""
    done: dict[Expr, str] = {}
    pending = [e]
    while pending:
        node = pending[-1]
        parts: tuple[Expr, ...] = ()
        match node:
            case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
                parts = (a, b)
            case Cast(value=value) if value.dtype.is_integer:
                parts = (value,)
        missing = [part for part in parts if part not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        if len(parts) == 2:
            done[node] = out.assign(f"{_DOUBLE[type(node)]} double {done[parts[0]]}, {done[parts[1]]}")
        else:
            done[node] = done[parts[0]] if parts else out.assign(
                f"sitofp i64 {out.register(out.scalar_index(node))[0]} to double")
    return done[e]


_DOUBLE: dict[type, str] = {Add: "fadd", Sub: "fsub", Mul: "fmul"}


# --- arguments -------------------------------------------------------------------------------------------------------

def bind_arguments(func: PrimFunc, out: Emitter) -> list[str]:
    """Declares the kernel's arguments to `out` and returns their text for the header of the function."""
    pointers = {b.data for b in func.buffers}
    sizes = {dim for b in func.buffers for dim in b.shape}
    parameters = []
    for var in abi.kernel_arguments(func):
        text = "%" + out.fresh(var.name)
        if var in pointers:
            out.scope.buffers[var] = BufferInfo(text, 0, 0)  # arrays of the user: numpy aligns to 16
            parameters.append(f"ptr {'noalias ' if out.function.noalias else ''}{text}")
            continue
        parameters.append(f"{argument_type(var.dtype)} {text}")
        _bind_scalar(out, var, text, var in sizes)
    if out.function.result is not None:
        out.scope.data[RESULT] = text = "%" + out.fresh("result")
        parameters.append(f"ptr noalias {text}")
    return parameters


def _bind_scalar(out: Emitter, var: Var, text: str, is_size: bool) -> None:
    d = var.dtype
    if d.is_bool:
        out.scope.data[var] = out.here(f"trunc i64 {text} to i1")
    elif d.is_float or d.is_handle or (d.is_uint and d.bits == 64):
        out.scope.data[var] = text
    else:
        assert d.min_value is not None and d.max_value is not None
        low = 0 if is_size or isinstance(var, SizeVar) else max(d.min_value, INT64_MIN)
        out.scope.index[var] = atom_index(out.atom(text, 0, low, min(d.max_value, INT64_MAX)))


# --- leaving -----------------------------------------------------------------------------------------------------------

def expected_to_hold(out: Emitter) -> str:
    """Emits the metadata that tells LLVM that a guard made by lowering is nearly always true."""
    cache = out.module.cache
    if "likely" not in cache:
        cache["likely"] = out.module.add_metadata('!{!"branch_weights", i32 1000, i32 1}')
    return f", !prof {cache['likely']}"


def fail_unless(out: Emitter, condition: str, status: str) -> None:
    """Leaves the function with `status` unless the i1 `condition` holds."""
    failed, fine = out.fresh("failed"), out.fresh("fine")
    out.line(f"br i1 {condition}, label %{fine}, label %{failed}{expected_to_hold(out)}")
    out.start_block(failed)
    leave(out, status)
    out.start_block(fine)


def leave(out: Emitter, status: str) -> None:
    """Frees what this function allocated and returns `status`. The kernel of a device has no status: a failure traps."""
    if out.function.is_kernel:
        if status != str(abi.OK):
            out.line(f"call void {out.module.declare('llvm.trap', 'declare void @llvm.trap()')}()")
        out.line("ret void" if status == str(abi.OK) else "unreachable")
        return
    for pointer in reversed(out.workspaces):
        out.line(f"call void {free_function(out)}(ptr {pointer})")
    if out.stores_nontemporal and out.target.architecture == "x86-64":
        symbol = out.module.declare("llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
        out.line(f"call void {symbol}()")
    if status != str(abi.OK) and ERROR in out.scope.data and not out.function.in_parallel and not out.function.takes_frame:
        symbol = out.module.declare("tedsl_publish_error", "declare void @tedsl_publish_error(ptr)")
        out.line(f"call void {symbol}(ptr {out.scope.data[ERROR]})")
    out.line(f"ret i32 {status}")


def emit_return(out: Emitter, value: Expr | None) -> None:
    """Leaves the function without a failure. value: the number that it returns; None: 0, if it returns a number at all."""
    if RESULT in out.scope.data:
        of = out.function.result
        assert of is not None
        t = argument_type(of)
        stored = in_argument_type(out, out.value(value), of) if value is not None else "0.0" if of.is_float else "0"
        out.line(f"store {t} {stored}, ptr {out.scope.data[RESULT]}, align 8")
    out.stores_nontemporal |= bool(out.streams)  # an earlier iteration may have made such stores
    leave(out, str(abi.OK))


def in_argument_type(out: Emitter, register: str, d: DType) -> str:
    """Emits the scalar of dtype `d` in `register` in the type in which scalars are passed and returned."""
    if d.is_float:
        return convert(out, register, d, FLOAT32) if d.bits < 32 else register
    if d.bits == 64:
        return register
    return out.assign(f"{'sext' if d.is_int else 'zext'} {register_type(d)} {register} to i64")


def free_function(out: Emitter) -> str:
    """Declares and returns the function that frees a workspace."""
    return out.module.declare("tedsl_workspace_free", "declare void @tedsl_workspace_free(ptr)")
