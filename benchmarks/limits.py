"""The limits of this machine, measured: fused multiply-adds per second from registers, bytes per second from memory.

The kernels are LLVM IR written here, compiled by llvmlite alone: tedsl is not measured with its own code. A kernel is compared
with a probe on as many threads that ran beside it, the best of each with the best: clocks change from second to second.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import Probe

STEPS = 400_000  # about 2 ms
LONG = 10  # times more steps on several threads: starting them takes 0.1 ms


@dataclass(frozen=True)
class Vectors:
    """The vectors of a machine: lanes of float32, the number of registers, whether one instruction multiplies and adds."""

    lanes: int
    registers: int
    has_fma: bool

    @property
    def chains(self) -> int:
        """The number of independent accumulators: more than latency times throughput of any current core, and all of them in
        registers.

        With more chains than registers the probe would measure memory; two registers hold the factor and the summand, one
        the product before it is added.
        """
        return min(24, self.registers - 4)


def vectors(features: Mapping[str, bool] | None = None) -> Vectors:
    """The widest vectors that these features (by default the host's) promise."""
    import llvmlite.binding as llvm

    has = (llvm.get_host_cpu_features() if features is None else features).get
    if has("neon"):
        return Vectors(4, 32, True)
    if has("avx512f"):
        return Vectors(16, 32, True)
    return Vectors(8 if has("avx") else 4, 16, bool(has("fma")))


def vector_lanes() -> int:
    """float32 elements in the widest vectors that the host's features promise."""
    return vectors().lanes


def _step(i: int, t: str, machine: Vectors) -> str:
    """One multiply-add of chain `i`; a multiplication and an addition where no instruction does both."""
    if machine.has_fma:
        return f"  %b{i} = call {t} @llvm.fma.v{machine.lanes}f32({t} %a{i}, {t} %x, {t} %y)"
    return f"  %m{i} = fmul {t} %a{i}, %x\n  %b{i} = fadd {t} %m{i}, %y"


def probe_text(machine: Vectors) -> str:
    """The functions `fma` and `read` as LLVM IR."""
    lanes, chains = machine.lanes, machine.chains
    t = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{i} = phi {t} [ splat (float {i}.0), %0 ], [ %b{i}, %loop ]" for i in range(chains))
    steps = "\n".join(_step(i, t, machine) for i in range(chains))
    sums, last = [], "%b0"
    for i in range(1, chains):
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
    module = llvm.parse_assembly(probe_text(vectors()))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    fma = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("fma"))
    read = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("read"))
    return fma, read, engine


def _together(works: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """A call that runs all `works` at the same time."""
    if len(works) == 1:
        return works[0]

    def run() -> None:
        gang = [threading.Thread(target=work) for work in works]
        for thread in gang:
            thread.start()
        for thread in gang:
            thread.join()

    return run


@functools.cache
def fma_probe(threads: int = 1) -> Probe:
    """Multiply-adds of float32 (two operations each) on registers."""
    fma, _, _ = _kernels()
    machine, steps = vectors(), STEPS * (LONG if threads > 1 else 1)

    def work() -> None:
        out = np.ones(2 * machine.lanes, "float32")
        fma(out.ctypes.data, steps)  # type: ignore[operator]

    return Probe(_together([work] * threads), threads * steps * machine.chains * machine.lanes * 2)


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
