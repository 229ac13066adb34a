"""Emits the calls that only kernels have: barriers, and values of other threads of a warp."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.types import memory_type, register_type
from tedsl.codegen.llvm.values import call
from tedsl.codegen.nvptx import fragments, remainder
from tedsl.codegen.nvptx.fast_math import emit_fast
from tedsl.codegen.nvptx.memory import common_name
from tedsl.errors import LoweringError
from tedsl.ir.build import as_int
from tedsl.ir.expr import Call, StringImm, Var
from tedsl.ir.ops import FRAGMENT_OPS
from tedsl.ir.script import shown
from tedsl.passes.device.share_memory import undefined_bytes

WARP = 32


def emit_call(out: Emitter, e: Call) -> str:
    fast = emit_fast(out, e)
    if fast is not None:
        return fast
    write = CALLS.get(e.op.short)
    return write(out, e) if write is not None else call.emit_call(out, e)


def emit_sync(out: Emitter, e: Call) -> str:
    """Emits a barrier: of the threads of a block, or of a warp. What other threads stored is loaded again."""
    kind = e.args[0].value if e.args and isinstance(e.args[0], StringImm) else ""
    if kind == "warp":
        symbol = out.module.declare("llvm.nvvm.bar.warp.sync", "declare void @llvm.nvvm.bar.warp.sync(i32)")
        out.line(f"call void {symbol}(i32 -1)")
    elif kind in ("shared", "shared.dyn"):
        _mark_undefined(out, e)
        out.line(f"call void {out.module.declare('llvm.nvvm.barrier0', 'declare void @llvm.nvvm.barrier0()')}()")
    else:
        raise LoweringError(f"{shown(e)}: the threads of all blocks cannot wait for each other inside of a kernel",
                            hint="end the kernel there: bind the stages after it to threads of their own")
    out.called()
    return "0"


def _mark_undefined(out: Emitter, e: Call) -> None:
    """Emits comments that tell the simulator which bytes lose their content at the barrier `e`; devices do not need them."""
    if out.module.target.kind.name in ("cuda", "nvptx"):
        for scope, offset, size in undefined_bytes(e):
            text = f"//tedsl.undefined {common_name(out, scope)}, {offset}, {size};"
            out.line(f'call void asm sideeffect "{text}", "~{{memory}}"()')


def emit_shuffle(out: Emitter, e: Call) -> str:
    """Emits a value of another thread of the warp, which runs the same shuffle; wide values go in halves."""
    kind, upwards = _KINDS[e.op.short]
    width = as_int(e.args[3])
    if width is None or width < 1 or width > WARP or width & (width - 1):
        raise LoweringError(f"{shown(e)}: the width of a shuffle is a constant power of two up to {WARP}")
    clamp = (WARP - width) << 8 | (0 if upwards else WARP - 1)
    mask, value, lane = out.value(e.args[0]), out.value(e.args[1]), _as_i32(out, e)
    name, d = f"llvm.nvvm.shfl.sync.{kind}.i32", e.dtype
    symbol = out.module.declare(name, f"declare i32 @{name}(i32, i32, i32, i32)")

    def moved(part: str) -> str:
        return out.assign(f"call i32 {symbol}(i32 {mask}, i32 {part}, i32 {lane}, i32 {clamp})")

    t = register_type(d)
    if t in ("float", "i32"):
        bits = out.assign(f"bitcast {t} {value} to i32") if t == "float" else value
        got = moved(bits)
        return out.assign(f"bitcast i32 {got} to float") if t == "float" else got
    if t in ("double", "i64"):
        bits = out.assign(f"bitcast {t} {value} to i64")  # one instruction, where LLVM's own ways take three
        both = out.assign(f'call {{ i32, i32 }} asm "mov.b64 {{$0, $1}}, $2;", "=r,=r,l"(i64 {bits})')
        low, high = (moved(out.assign(f"extractvalue {{ i32, i32 }} {both}, {k}")) for k in (0, 1))
        joined = out.assign(f'call i64 asm "mov.b64 $0, {{$1, $2}};", "=l,r,r"(i32 {low}, i32 {high})')
        return out.assign(f"bitcast i64 {joined} to {t}")
    if d.is_handle or d.lanes > 1:
        raise LoweringError(f"{shown(e)}: threads exchange single numbers, not {d}")
    return out.assign(f"trunc i32 {moved(out.assign(f'zext {t} {value} to i32'))} to {t}")


def _as_i32(out: Emitter, e: Call) -> str:
    lane, d = out.value(e.args[2]), e.args[2].dtype
    if d.bits == 32:
        return lane
    return out.assign(f"{'trunc' if d.bits > 32 else 'zext'} i{d.bits} {lane} to i32")


def emit_activemask(out: Emitter, e: Call) -> str:
    name = "llvm.nvvm.activemask"
    return out.assign(f"call i32 {out.module.declare(name, f'declare i32 @{name}()')}()")


def emit_prefetch(out: Emitter, e: Call) -> str:
    """Emits nothing: a prefetch is a hint, and PTX does not say what its instruction does with an address behind an array."""
    return "0"


def emit_place_in_line(out: Emitter, e: Call) -> str:
    """Emits 0: the arrays of devices begin at lines, and parts of them are seldom given."""
    return "0"


def emit_copy(out: Emitter, e: Call) -> str:
    """Emits a copy of an array's elements to shared memory that goes on by itself; one that does not where addresses may not be
    multiples of its bytes.
    """
    to, of, size = e.args[0], e.args[2], as_int(e.args[4])
    assert isinstance(to, Var) and isinstance(of, Var) and size is not None
    t = memory_type(e.dtype)
    places = [(buffer_info(out, memory), out.scalar_index(index), space)
              for memory, index, space in ((to, e.args[1], 3), (of, e.args[3], 1))]
    array = places[1][0]
    if array.alignment % size and size > e.dtype.bytes:
        wide = f"<{size // e.dtype.bytes} x {t}>"
        target, source = (address(out, info, index, t) for info, index, _ in places)
        out.line(f"store {wide} {out.assign(f'load {wide}, ptr {source}, align {e.dtype.bytes}')}, ptr {target}, align {size}")
    else:
        name = f"llvm.nvvm.cp.async.{'cg' if size == 16 else 'ca'}.shared.global.{size}"
        symbol = out.module.declare(name, f"declare void @{name}(ptr addrspace(3), ptr addrspace(1))")
        target, source = (address(out, info, index, t, space=space) for info, index, space in places)
        out.line(f"call void {symbol}(ptr addrspace(3) {target}, ptr addrspace(1) {source})")
    out.called()
    return "0"


def emit_wait(out: Emitter, e: Call) -> str:
    """Emits a wait of this thread for all its copies."""
    name = "llvm.nvvm.cp.async.wait.all"
    out.line(f"call void {out.module.declare(name, f'declare void @{name}()')}()")
    out.called()
    return "0"


_KINDS = {"tvm_warp_shuffle": ("idx", False), "tvm_warp_shuffle_up": ("up", True), "tvm_warp_shuffle_down": ("down", False)}
CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    "tvm_storage_sync": emit_sync, **dict.fromkeys(_KINDS, emit_shuffle), "tvm_warp_activemask": emit_activemask,
    "ptx_cp_async": emit_copy, "ptx_wait_group": emit_wait, "prefetch": emit_prefetch,
    "elements_past_line": emit_place_in_line, "fmod": remainder.emit_fmod,
    **dict.fromkeys((op.short for op in FRAGMENT_OPS), fragments.emit_call)}
