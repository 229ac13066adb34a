"""The limits of this machine, measured: multiply-adds per second from registers, bytes per second from each level of memory.

The kernels are LLVM IR of `benchmarks.limit_kernels`, compiled by llvmlite alone: tedsl is not measured with its own code. Of
several loops the fastest counts, for each size and each number of arrays. A kernel is compared with a probe on as many threads
that ran beside it, the best of each with the best: clocks change from second to second.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.limit_kernels import DECLARATIONS, Streams, Vectors, fma_text, narrower, streams_text, variants, vectors
from benchmarks.measure import Probe, seconds_of

STEPS = 400_000  # about 2 ms
LONG = 10  # times more steps on several threads: starting them takes 0.1 ms
RATIO = 16  # reads or writes that are fewer by this factor do not count
MOST_STREAMS = 6
MIB = 2**20


def vector_lanes() -> int:
    """float32 elements in the widest vectors that the host's features promise."""
    return vectors().lanes


class _Engine:
    """Functions of one module of LLVM IR, compiled for the host."""

    _alive: ClassVar[list[Any]] = []  # whose functions were handed out

    def __init__(self, text: str) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        self._engine.finalize_object()

    def function(self, name: str, *types: Any) -> Callable[..., None]:
        """The function of that name, whose code lives as long as the process."""
        made: Callable[..., None] = ctypes.CFUNCTYPE(None, *types)(self._engine.get_function_address(name))
        self._alive.append(self._engine)
        return made


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


def fastest(probes: Sequence[Probe], rounds: int = 3) -> Probe:
    """The probe with the highest rate of all, each measured in several rounds."""
    best = [0.0] * len(probes)
    for probe in probes:
        probe.call()
    for _ in range(rounds):
        for at, probe in enumerate(probes):
            best[at] = max(best[at], probe.work / seconds_of(probe.call))
    return probes[max(range(len(probes)), key=best.__getitem__)]


# --- multiply-adds --------------------------------------------------------------------------------------------------------

@functools.cache
def _fma_kernels() -> list[tuple[Vectors, int, Callable[..., None]]]:
    made = [(machine, chains) for machine in narrower(vectors()) for chains in (12, 16, 20, 24) if chains <= machine.chains]
    engine = _Engine("".join(fma_text(f"fma{at}", *kernel) for at, kernel in enumerate(made)))
    return [(*kernel, engine.function(f"fma{at}", ctypes.c_void_p, ctypes.c_int64)) for at, kernel in enumerate(made)]


def _fma_probe_of(machine: Vectors, chains: int, kernel: Callable[..., None], threads: int) -> Probe:
    steps = STEPS * (LONG if threads > 1 else 1)

    def work() -> None:
        out = np.ones(2 * machine.lanes, "float32")
        kernel(out.ctypes.data, steps)

    return Probe(_together([work] * threads), threads * steps * chains * machine.lanes * 2)


@functools.cache
def fma_probe(threads: int = 1) -> Probe:
    """Multiply-adds of float32 (two operations each) on registers."""
    return fastest([_fma_probe_of(*kernel, threads) for kernel in _fma_kernels()])


# --- memory ---------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Traffic:
    """Arrays that are read and written once: how many of each, and the bytes of each of them."""

    reads: int
    writes: int
    size: int

    @staticmethod
    def of(read: float, written: float) -> Traffic:
        """The traffic of equal arrays that is nearest to reading and writing so many bytes."""
        if written * RATIO < read:
            return Traffic(1, 0, int(read))
        if read * RATIO < written:
            return Traffic(0, 1, int(written))
        reads = min(max(round(read / written), 1), MOST_STREAMS)
        writes = min(max(round(written / read), 1), MOST_STREAMS)
        return Traffic(reads, writes, int((read + written) / (reads + writes)))


@functools.cache
def _stream_kernels(reads: int, writes: int) -> list[tuple[Streams, Callable[..., None]]]:
    made = list(variants(reads, writes, vectors()))
    engine = _Engine(DECLARATIONS + "".join(streams_text(f"streams{at}", s) for at, s in enumerate(made)))
    types = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    return [(s, engine.function(f"streams{at}", *types)) for at, s in enumerate(made)]


@functools.cache
def _arrays(count: int, size: int) -> list[Any]:
    """Arrays of `size` bytes that begin at cache lines."""
    arrays = []
    for _ in range(count):
        room = np.ones(size // 4 + 16, "float32")
        first = -room.ctypes.data % 64 // 4
        arrays.append(room[first:first + size // 4])
    return arrays


def _stream_probe(s: Streams, kernel: Callable[..., None], traffic: Traffic, threads: int, at_least: int) -> Probe:
    """A call that moves at least `at_least` bytes: each thread walks its share of each array, as often as that takes."""
    unit = s.step * s.parts
    share = max(traffic.size // threads // unit, 1) * unit
    rounds = max(1, -(-at_least // (share * threads * (s.reads + s.writes))))
    arrays = _arrays(s.reads + s.writes, share * threads)
    works = []
    for thread in range(threads):
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data + thread * share for a in arrays])
        out = np.empty(64, "float32")
        arguments = ctypes.addressof(pointers), share // s.parts, rounds, out.ctypes.data
        works.append(_holding(kernel, arguments, (pointers, out)))
    return Probe(_together(works), rounds * share * threads * (s.reads + s.writes))


def _holding(call: Callable[..., None], arguments: Sequence[Any], held: object) -> Callable[[], None]:
    """`call(*arguments)` as a function that keeps `held` alive."""
    def run(held: object = held) -> None:
        call(*arguments)

    return run


@functools.cache
def memory_probe(threads: int, traffic: Traffic, nontemporal: bool | None = None) -> Probe:
    """The fastest loop for that traffic; nontemporal: only among loops with such stores, or only among others."""
    at_least = (64 if threads == 1 else 1024) * MIB  # starting threads takes 0.1 ms
    chosen = [(s, kernel) for s, kernel in _stream_kernels(traffic.reads, traffic.writes)
              if nontemporal is None or s.nontemporal == nontemporal]
    return fastest([_stream_probe(s, kernel, traffic, threads, at_least) for s, kernel in chosen])


def read_probe(threads: int = 1, mebibytes: int = 64) -> Probe:
    """Reading an array of that size, shared by the threads."""
    return memory_probe(threads, Traffic(1, 0, mebibytes * MIB))


def forget() -> None:
    """Forgets which loops were the fastest, so that the next probes are those of loops that are measured again."""
    fma_probe.cache_clear()
    memory_probe.cache_clear()


def fma_limit(threads: int = 1) -> float:
    """float32 operations per second."""
    return fma_probe(threads).rate()


def read_limit(threads: int = 1) -> float:
    """Bytes per second from arrays that no cache near a core holds."""
    return read_probe(threads).rate()


# --- the whole machine ----------------------------------------------------------------------------------------------------

def cache_sizes() -> dict[str, int]:
    """Bytes of the data caches that processor 0 sees, by level: {"L1": ..., "L2": ..., "L3": ...}."""
    sizes = {}
    for entry in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (entry / "type").read_text().strip() != "Instruction":
            text = (entry / "size").read_text().strip()
            sizes["L" + (entry / "level").read_text().strip()] = int(text[:-1]) * {"K": 1024, "M": MIB}[text[-1]]
    return sizes


def level_sizes(threads: int) -> dict[str, int]:
    """Bytes that fit each level, for all threads together: half of each cache, and four times the last for memory."""
    caches = cache_sizes()
    last = max(caches.values(), default=32 * MIB)
    shared = {name: size // 2 * (1 if size == last and len(caches) > 2 else threads) for name, size in caches.items()}
    return shared | {"memory": max(4 * last, 64 * MIB)}


def bandwidths(threads: int) -> dict[str, float]:
    """Bytes per second of reading from each level, and of copying and a*b+c in memory with both kinds of stores."""
    sizes = level_sizes(threads)
    rates = {f"read {name}": memory_probe(threads, Traffic(1, 0, size)).rate(5) for name, size in sizes.items()}
    size = 64 * MIB
    for name, reads, writes in (("write", 0, 1), ("copy", 1, 1), ("triad", 2, 1)):
        for nontemporal in (False, True):
            probe = memory_probe(threads, Traffic(reads, writes, size), nontemporal)
            rates[name + " past the caches" * nontemporal] = probe.rate(3)
    return rates


def real_cores(threads: int) -> float:
    """How many cores the threads are, by multiply-adds: two threads of one core give 1."""
    return fma_probe(threads).rate() / fma_probe(1).rate()
