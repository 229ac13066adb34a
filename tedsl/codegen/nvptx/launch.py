"""The thread axes of a kernel: special registers with their ranges, and the number of threads in a block."""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.ir.build import as_int
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import AttrStmt
from tedsl.passes.facts.threads import launched
from tedsl.passes.threads.gather_threads import Thread, kernel_of
from tedsl.record import record
from tedsl.target.target import Target

# The largest size of each axis that any device takes.
MOST = {"threadIdx.x": 1024, "threadIdx.y": 1024, "threadIdx.z": 64,
        "blockIdx.x": 2**31 - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}
_REGISTERS = {"threadIdx": "tid", "blockIdx": "ctaid"}


@record
class Launch:
    """The thread axes of a kernel, outermost first. block: their sizes in a block (x, y, z), 0 where it is not a constant."""

    axes: tuple[str, ...]
    block: tuple[int, int, int]

    def annotations(self, target: Target) -> list[str]:
        """Returns LLVM's annotations of the kernel: the size of its blocks, or the largest if it is not known."""
        if all(self.block):
            sizes, name = self.block, "reqntid"
        else:
            sizes, name = (target.max_num_threads, 1, 1), "maxntid"
        return [f'!"{name}{letter}", i32 {size}' for letter, size in zip("xyz", sizes)]


def launch_of(kernel: PrimFunc) -> Launch:
    """Returns the launch of `kernel`, whose thread axes stand outermost."""
    axes = kernel_of(kernel.body).axes
    counts = {thread.axis.thread_tag: thread.count for thread in axes}
    block = [1 if tag not in counts else as_int(counts[tag]) or 0 for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.z")]
    return Launch(tuple(counts), (block[0], block[1], block[2]))


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


