"""What this machine can do at most, measured: fused multiply-adds per second from registers, bytes per second from memory.

The kernels are LLVM IR written here, compiled by llvmlite alone: nothing of tedsl is measured with itself.
"""

from __future__ import annotations

import ctypes
import functools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

CHAINS = 24  # independent accumulators: more than latency times throughput of any current core
STEPS = 400_000  # about 1 ms


def vector_lanes() -> int:
    """float32 elements in the widest vectors that the host's features promise."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx") else 4


def _fma_text(lanes: int) -> str:
    t = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{i} = phi {t} [ splat (float {i}.0), %0 ], [ %b{i}, %loop ]" for i in range(CHAINS))
    steps = "\n".join(f"  %b{i} = call {t} @llvm.fma.v{lanes}f32({t} %a{i}, {t} %x, {t} %y)" for i in range(CHAINS))
    sums, last = [], "%b0"
    for i in range(1, CHAINS):
        sums.append(f"  %s{i} = fadd {t} {last}, %b{i}")
        last = f"%s{i}"
    return f"""
define void @fma(ptr %out, i64 %n) {{
  %x = load {t}, ptr %out, align 4
  %q = getelementptr float, ptr %out, i64 {lanes}
  %y = load {t}, ptr %q, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{chr(10).join(sums)}
  store {t} {last}, ptr %out, align 4
  ret void
}}
define void @read(ptr %p, i64 %n, ptr %out) {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
{chr(10).join(f"  %a{k} = phi {t} [ zeroinitializer, %0 ], [ %b{k}, %loop ]" for k in range(8))}
{chr(10).join(
    f"  %i{k} = add i64 %i, {k * lanes}" + chr(10) + f"  %p{k} = getelementptr float, ptr %p, i64 %i{k}" + chr(10) +
    f"  %v{k} = load {t}, ptr %p{k}, align 4" + chr(10) + f"  %b{k} = fadd {t} %a{k}, %v{k}" for k in range(8))}
  %j = add i64 %i, {8 * lanes}
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{chr(10).join(f"  %s{k} = fadd {t} {'%b0' if k == 1 else f'%s{k - 1}'}, %b{k}" for k in range(1, 8))}
  store {t} %s7, ptr %out, align 4
  ret void
}}
"""


@functools.cache
def _kernels() -> tuple[object, object, object]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True)
    module = llvm.parse_assembly(_fma_text(vector_lanes()))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    fma = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("fma"))
    read = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("read"))
    return fma, read, engine


def _together(works: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """A call that does all `works` side by side."""
    if len(works) == 1:
        return works[0]

    def run() -> None:
        gang = [threading.Thread(target=work) for work in works]
        for thread in gang:
            thread.start()
        for thread in gang:
            thread.join()

    return run


@dataclass(frozen=True)
class Probe:
    """A call that does nothing but what the machine does fastest, and how much of it: operations or bytes."""

    call: Callable[[], object]
    work: float

    def rate(self, rounds: int = 7) -> float:
        """Operations or bytes per second: the median of some measurements."""
        self.call()
        return self.work / statistics.median(_seconds(self.call) for _ in range(rounds))


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@functools.cache
def fma_probe(threads: int = 1) -> Probe:
    """Multiply-adds of float32 (two operations each) on registers."""
    fma, _, _ = _kernels()
    lanes = vector_lanes()

    def work() -> None:
        out = np.ones(2 * lanes, "float32")
        fma(out.ctypes.data, STEPS)  # type: ignore[operator]

    return Probe(_together([work] * threads), threads * STEPS * CHAINS * lanes * 2)


@functools.cache
def read_probe(threads: int = 1, mebibytes: int = 64) -> Probe:
    """Reading arrays of that size, one per thread."""
    _, read, _ = _kernels()
    out = np.empty(64, "float32")

    def reader(a: np.ndarray) -> Callable[[], object]:
        return lambda: read(a.ctypes.data, a.size, out.ctypes.data)  # type: ignore[operator]

    works = [reader(np.ones(mebibytes * 2**18, "float32")) for _ in range(threads)]
    return Probe(_together(works), threads * mebibytes * 2**20)


def fma_limit(threads: int = 1) -> float:
    """float32 operations per second."""
    return fma_probe(threads).rate()


def read_limit(threads: int = 1) -> float:
    """Bytes per second from arrays that no cache near a core holds."""
    return read_probe(threads).rate()
