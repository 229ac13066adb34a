"""The thread axes of a kernel: special registers with their ranges, and the number of threads in a block."""

from __future__ import annotations

import math

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.ir.build import as_int
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, AttrStmt
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import launched, scope_of
from tedsl.passes.threads.gather_threads import Thread, kernel_of
from tedsl.record import record
from tedsl.target.target import Target

# The largest size of each axis that any device takes.
MOST = {"threadIdx.x": 1024, "threadIdx.y": 1024, "threadIdx.z": 64,
        "blockIdx.x": 2**31 - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}
_HIDING = 256  # threads of a processor: two warps for each of its four schedulers, one of which may wait
_REGISTERS = {"threadIdx": "tid", "blockIdx": "ctaid"}


@record
class Launch:
    """The thread axes of a kernel, outermost first. block: their sizes in a block (x, y, z), 0 where it is not a constant.
    has_tiles: each thread has several results in registers, or a part of the matrices of tensor cores, of operands in shared
    memory.
    """

    axes: tuple[str, ...]
    block: tuple[int, int, int]
    has_tiles: bool = False

    def annotations(self, target: Target) -> list[str]:
        """Returns LLVM's annotations of the kernel: the size of its blocks, or the largest if it is not known; and, where its
        threads have tiles, how many blocks a processor must have room for. Without that number NVIDIA's assembler keeps values
        in memory so that more blocks fit.
        """
        if all(self.block):
            sizes, name = self.block, "reqntid"
        else:
            sizes, name = (target.max_num_threads, 1, 1), "maxntid"
        blocks = [f'!"minctasm", i32 {max(1, _HIDING // math.prod(sizes))}'] if self.has_tiles else []
        return [*(f'!"{name}{letter}", i32 {size}' for letter, size in zip("xyz", sizes)), *blocks]


def launch_of(kernel: PrimFunc) -> Launch:
    """Returns the launch of `kernel`, whose thread axes stand outermost."""
    axes = kernel_of(kernel.body).axes
    counts = {thread.axis.thread_tag: thread.count for thread in axes}
    block = [1 if tag not in counts else as_int(counts[tag]) or 0 for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.z")]
    return Launch(tuple(counts), (block[0], block[1], block[2]), _has_tiles(kernel))


def _has_tiles(kernel: PrimFunc) -> bool:
    memory = [node for node in post_order(kernel.body) if isinstance(node, Allocate)]
    shared = any(scope_of(node.buffer_var.type_annotation).startswith("shared") for node in memory)
    return shared and any(_has_several(node) for node in memory)


def _has_several(node: Allocate) -> bool:
    """Tells whether an allocation is several numbers of each thread: its own, or its part of matrices of tensor cores."""
    scope, count = scope_of(node.buffer_var.type_annotation), math.prod(as_int(extent) or 2 for extent in node.extents)
    return scope == "wmma" or (scope == "local" and count != 1)


def emit_launch(out: Emitter, s: AttrStmt) -> None:
    """Binds the variable of a thread axis to its special register, whose range is declared."""
    axis = launched(s)
    assert axis is not None
    thread, tag = Thread(axis, s.value), axis.thread_tag
    if thread.is_single:
        out.scope.index[thread.var] = ix.ZERO
        return
    high = min(out.scalar_index(thread.count).bounds()[1], MOST[tag])
    kind, _, letter = tag.partition(".")
    name = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}.{letter}"
    symbol = out.module.declare(name, f"declare i32 @{name}()")
    register = out.pure(f"call range(i32 0, {max(high, 1)}) i32 {symbol}()", 0)
    out.scope.index[thread.var] = ix.atom_index(out.atom(register, 0, 0, max(high - 1, 0), 32))


