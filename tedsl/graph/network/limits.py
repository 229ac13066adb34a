"""What this machine can do, measured once a process: multiply-adds on registers, and streams of data of several sizes."""

from __future__ import annotations

import functools

import numpy

import tedsl.nd as nd
import topi
from tedsl import te, tir
from tedsl.driver import build
from tedsl.record import record
from tedsl.runtime.parallel import get_num_threads
from tedsl.target.target import Target
from topi.schedules import schedule

_STEPS = 20_000  # of the loop of multiply-adds: some tenths of a millisecond
_LARGE = 1 << 26  # bytes that are in no cache


@record
class Limits:
    """operations: of float32 in a second, a multiply-add counts two. streams: pairs of a number of bytes and of the bytes that
    are read in a second where so many are read again and again, smallest first.
    """

    operations: float
    streams: tuple[tuple[int, float], ...]

    def seconds(self, operations: float, moved: float) -> float:
        """The time that no kernel falls below which does so many operations and moves so many bytes."""
        return max(operations / self.operations, moved / self.rate(moved))

    def rate(self, moved: float) -> float:
        """Bytes in a second, where a kernel moves so many."""
        return next((rate for size, rate in self.streams if moved <= size), self.streams[-1][1])


@functools.lru_cache(maxsize=8)
def limits_of(target: Target, threads: int) -> Limits:
    """The limits of a machine for kernels that run on so many threads."""
    sizes = (target.machine.l2.size // 2 * threads, max(target.machine.l2.size, target.machine.l3.size // 2), _LARGE)
    streams = [(size, _read_rate(target, size)) for size in sorted(sizes)]
    fastest = [max(rate for _, rate in streams[at:]) for at in range(len(streams))]
    return Limits(_operations(target, threads), tuple([(size, rate) for (size, _), rate in zip(streams, fastest)]))


def current_limits(target: Target) -> Limits:
    """The limits for the threads that kernels use now."""
    return limits_of(target, get_num_threads())


def _operations(target: Target, threads: int) -> float:
    lanes = target.vector_lanes("float32")
    chains = 24 if lanes == 16 or target.architecture == "aarch64" else 12
    kernel = build(_chained(lanes, chains, threads), target=target)
    out = nd.array(numpy.full((threads, chains * lanes), 0.5, "float32"))
    factor = nd.array(numpy.array([0.999, 0.001], "float32"))
    best = kernel.time_evaluator(kernel.entry_name, nd.cpu(), 1, 9)(out, factor).min
    return 2.0 * lanes * chains * threads * _STEPS / best


def _chained(lanes: int, chains: int, threads: int) -> tir.PrimFunc:
    """Multiply-adds on `chains` vectors that stay in registers."""
    result = tir.decl_buffer((threads, chains * lanes), "float32", name="out")
    factor = tir.decl_buffer((2,), "float32", name="factor")
    ib = tir.ir_builder.create()
    out, numbers = ib.buffer_ptr(result), ib.buffer_ptr(factor)
    with ib.for_range(0, threads, name="t", kind="parallel") as t:
        sums = ib.allocate("float32", (chains * lanes,), name="sums", scope="local")
        with ib.for_range(0, chains, name="c", kind="unroll") as c, ib.for_range(0, lanes, name="l", kind="vectorize") as lane:
            sums[c * lanes + lane] = out[t, c * lanes + lane]
        with (ib.for_range(0, _STEPS, name="step"), ib.for_range(0, chains, name="c", kind="unroll") as c,
              ib.for_range(0, lanes, name="l", kind="vectorize") as lane):
            sums[c * lanes + lane] = sums[c * lanes + lane] * numbers[0] + numbers[1]
        with ib.for_range(0, chains, name="c", kind="unroll") as c, ib.for_range(0, lanes, name="l", kind="vectorize") as lane:
            out[t, c * lanes + lane] = sums[c * lanes + lane]
    handles = [te.var("out", "handle"), te.var("factor", "handle")]
    func = tir.PrimFunc(tuple(handles), ib.get(), buffer_map=dict(zip(handles, (result, factor))))
    return func.with_attr("global_symbol", "multiply_adds").with_attr("tir.noalias", True)


def _read_rate(target: Target, size: int) -> float:
    """Bytes in a second of sums of rows."""
    x = te.placeholder((max(size // 16384, 1), 4096), "float32", name="x")
    y = topi.sum(x, axis=1)
    kernel = build(schedule([y], target), [x, y], target, name="read")
    shape = [int(extent) for extent in x.shape]
    given, result = nd.array(numpy.ones(shape, "float32")), nd.array(numpy.empty(shape[:1], "float32"))
    repeats = max(2, min(40, _LARGE // size))  # short ones are often interrupted where the machine does other work
    best = kernel.time_evaluator("read", nd.cpu(), 5, repeats)(given, result).min
    return 16384.0 * shape[0] / best
