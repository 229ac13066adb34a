"""Measures what a machine does in a cycle: kernels that do one thing, and the figures that follow from their times.

A cycle is half of the time of a step that neither processor nor compiler can shorten: x = (x ^ y) + y, with y from memory.
(Constants that are added take some processors no time: Intel's since 2021 add them up where registers are renamed.)
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tedsl.driver import build
from tedsl.ir import build as expr
from tedsl.ir.builder import IRBuilder, create
from tedsl.lang.declare import placeholder
from tedsl.lang.extern import extern
from tedsl.runtime.parallel import get_num_threads, set_num_threads
from tedsl.schedule.handles import create_schedule
from tedsl.target import Cache, Machine, Target

ROUNDS = 7  # the best of them counts: a limit is what an undisturbed machine does
STEPS = 100_000
READ = 8 << 20  # bytes of a measurement
_STREAMS = 12  # more additions than wait for each other
_ALIGNED = 256  # bytes: the longest line of memory
_OUTSIDE = 4  # times the second cache, most of which lies in the last one
_RISE = 1.35  # times the latency of the size before: the caches in between are left


def seconds(call: Callable[[], object]) -> float:
    """Returns the shortest of some times of `call`."""
    call()
    best = math.inf
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def _kernel(write: Callable[[IRBuilder, Any, Any], None], inputs: list[tuple[int, str]], output: tuple[int, str]) -> Any:
    """Builds a kernel of hand-written loops; inputs, output: number of elements and dtype."""
    tensors = [placeholder((size,), dtype, name=f"in{at}") for at, (size, dtype) in enumerate(inputs)]

    def body(ins: Any, outs: Any) -> Any:
        ib = create()
        write(ib, [ib.buffer_ptr(one) for one in ins], ib.buffer_ptr(outs[0]))
        return ib.get()

    out = extern((output[0],), tensors, body, dtype=output[1], name="out")
    return build(create_schedule(out.op), [*tensors, out])


def cycle_seconds() -> float:
    """Returns the seconds of a cycle."""
    kernel, value, result = chain_of_cycles(), np.full(1, 0x5DEECE66D), np.zeros(1, "int64")
    return seconds(lambda: kernel(value, result)) / (2 * STEPS)


def chain_of_cycles() -> Any:
    """Builds the kernel of STEPS steps of two cycles."""
    def write(ib: IRBuilder, ins: Any, out: Any) -> None:
        x, y = ib.allocate("int64", 1, "x", "local"), ib.allocate("int64", 1, "y", "local")
        x[0], y[0] = expr.const(1, "int64"), ins[0][0]
        with ib.for_range(0, STEPS, "k"):
            x[0] = expr.bitwise_xor(x[0], y[0]) + y[0]
        out[0] = x[0]

    return _kernel(write, [(1, "int64")], (1, "int64"))


def fma_seconds(chains: int, lanes: int, threads: int = 1) -> float:
    """Returns the seconds of one step of `chains` independent multiply-adds of vectors, on each of `threads` threads."""
    steps = STEPS * (20 if threads > 1 else 1)  # beside which starting the threads is nothing

    def write(ib: IRBuilder, ins: Any, out: Any) -> None:
        with ib.for_range(0, threads, "thread", kind="parallel" if threads > 1 else "serial") as thread:
            sums = ib.allocate("float32", chains * lanes, "sums", "local")
            for chain in range(chains):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    sums[lane + chain * lanes] = expr.const(0.5, "float32")
            with ib.for_range(0, steps, "k"):
                for chain in range(chains):
                    with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                        sums[lane + chain * lanes] = sums[lane + chain * lanes] * expr.const(0.75, "float32") + \
                            expr.const(0.125, "float32")
            for chain in range(chains):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    out[(thread * chains + chain) * lanes + lane] = sums[lane + chain * lanes]

    kernel, result = _kernel(write, [], (threads * chains * lanes, "float32")), np.zeros(threads * chains * lanes, "float32")
    return seconds(lambda: kernel(result)) / steps


def read_seconds(size: int, lanes: int) -> float:
    """Returns the seconds for each byte that is read, in order, of an array of `size` bytes, again and again."""
    row = _STREAMS * lanes
    rows = max(1, size // (4 * row))
    times = max(1, READ // size)

    def write(ib: IRBuilder, ins: Any, out: Any) -> None:
        sums = ib.allocate("float32", row, "sums", "local")
        for at in range(_STREAMS):
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                sums[lane + at * lanes] = expr.const(0.0, "float32")
        with ib.for_range(0, times, "time"), ib.for_range(0, rows, "k") as k:
            for at in range(_STREAMS):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    sums[lane + at * lanes] = sums[lane + at * lanes] + ins[0][k * row + (at * lanes) + lane]
        for at in range(_STREAMS):
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                out[lane + at * lanes] = sums[lane + at * lanes]

    kernel = _kernel(write, [(rows * row, "float32")], (row, "float32"))
    data, result = _lines(rows * row), np.zeros(row, "float32")
    return seconds(lambda: kernel(data, result)) / (4 * rows * row * times)


def _lines(count: int) -> np.ndarray:
    """Returns an array of `count` float32 that begins at a line of memory, for a vector that lies in two takes two loads."""
    memory = np.ones(count + _ALIGNED // 4, "float32")
    first = -memory.ctypes.data % _ALIGNED // 4
    return memory[first:first + count]


def latency_seconds(sizes: list[int], line: int) -> list[float]:
    """Returns the seconds of a load whose address the one before has given, for arrays of `sizes` bytes."""
    count = max(sizes) // 8

    def write(ib: IRBuilder, ins: Any, out: Any) -> None:
        at = ib.allocate("int64", 1, "at", "local")
        at[0] = expr.const(0, "int64")
        with ib.for_range(0, STEPS, "k"):
            at[0] = ins[0][at[0]]
        out[0] = at[0]

    kernel, result = _kernel(write, [(count, "int64")], (1, "int64")), np.zeros(1, "int64")

    def one(size: int) -> float:
        following, step = np.zeros(count, "int64"), line // 8
        order = np.random.default_rng(0).permutation(size // line) * step
        following[order] = np.roll(order, -1)
        return seconds(lambda: kernel(following, result)) / STEPS

    return [one(size) for size in sizes]


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was measured. latencies: cycles of a load, by the bytes that the loads are spread over. scaling: how many times the
    multiply-adds of one thread those of all threads are.
    """

    machine: Machine
    hertz: float
    latencies: dict[int, float]
    scaling: float


def measure(target: Target) -> Measured:
    """Measures the machine that runs this, in some seconds."""
    known, lanes = target.machine, target.vector_lanes("float32")
    cycle = cycle_seconds()
    chains = 24 if target.vector_bits == 512 or target.architecture == "aarch64" else 12
    step = fma_seconds(chains, lanes)
    sizes = [round(2 ** (power / 2)) // known.line * known.line for power in range(26, 53)]  # 8 KiB to 64 MiB
    latencies = {size: one / cycle for size, one in zip(sizes, latency_seconds(sizes, known.line))}
    far = min(_OUTSIDE * known.l2.size, known.l3.size // 2) if known.l3.size > 2 * known.l2.size else None
    machine = dataclasses.replace(
        known, name=f"{known.name}, measured", fma_latency=max(1, round(fma_seconds(1, lanes) / cycle)),
        fma_bits=round(chains * target.vector_bits * cycle / step),
        load_bits=round(8 * cycle / read_seconds(known.l1.size // 2, lanes)),
        l2_bits=round(8 * cycle / read_seconds(known.l2.size // 2, lanes)),
        l3_bits=known.l3_bits if far is None else max(1, round(8 * cycle / read_seconds(far, lanes))),
        l1=Cache(_boundary(latencies, known.l1.size), known.l1.ways),
        l2=Cache(_boundary(latencies, known.l2.size), known.l2.ways))
    return Measured(machine, 1 / cycle, latencies, scaling(known.cores, chains, lanes))


def scaling(threads: int, chains: int, lanes: int) -> float:
    """Returns how many times the multiply-adds of one thread those of `threads` threads are."""
    if threads == 1:
        return 1.0
    before = get_num_threads()
    set_num_threads(threads)
    try:
        return threads * fma_seconds(chains, lanes) / fma_seconds(chains, lanes, threads)
    finally:
        set_num_threads(before)


def _boundary(latencies: dict[int, float], reported: int) -> int:
    """Returns the size of a cache: `reported`, if loads take longer from about there on; else the size from which they do."""
    sizes = sorted(latencies)
    rises = [size for size, after in zip(sizes, sizes[2:]) if latencies[after] > _RISE * latencies[size]]
    if not rises or any(reported / 2.1 <= size <= reported * 1.5 for size in rises):
        return reported
    return min(rises, key=lambda size: abs(math.log(size / reported)))
