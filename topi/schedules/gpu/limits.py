"""What a device gives the threads of a block: what its target says, else what every device of its kind has."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tedsl.errors import ArgumentError
from tedsl.record import record
from tedsl.target import Target

_SHARED, _SHARED_OF_SMALL = 48 * 1024, 32 * 1024  # CUDA's programming guide; OpenCL 1.2, full profile
_REGISTERS = 64 * 1024  # CUDA's programming guide, compute capability 5.0 and later
_PROCESSORS = 64  # of the devices of data centers and workstations the order of magnitude; -num-cores says it
_SMALL = ("opencl", "vulkan", "metal")


@record
class Limits:
    """Of one block: `threads`, `shared` bytes, `registers` of 32 bits. warp: the threads that run in step. processors: how many
    run blocks side by side.
    """

    threads: int
    warp: int
    shared: int
    registers: int
    processors: int


def limits_of(target: Target) -> Limits:
    """Returns the limits of the device of `target`."""
    said = target.attrs
    shared = said.get("max_shared_memory_per_block", said.get("shared_memory_per_block"))
    if shared is None:
        shared = _SHARED_OF_SMALL if target.kind.name in _SMALL else _SHARED
    threads = min(target.max_num_threads, int(said.get("max_threads_per_block", target.max_num_threads)))
    return Limits(threads, target.thread_warp_size, int(shared), int(said.get("registers_per_block", _REGISTERS)),
                  int(said.get("num-cores", _PROCESSORS)))


def check_threads(what: str, threads: Mapping[str, int], limits: Limits) -> None:
    """Raises ArgumentError for tiles whose blocks have more threads than the device. threads: along each of its axes."""
    count = math.prod(threads.values())
    if count > limits.threads:
        each = " x ".join(map(str, threads.values()))
        raise ArgumentError(f"{what}: {each} = {count} threads, and a block of the device has at most {limits.threads}",
                            hint=f"make the third number of {', '.join(threads)} smaller")
