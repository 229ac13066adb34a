"""The kinds of targets: which options each takes, in one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TargetKind:
    """A family of targets: the backend that makes code, and the options it takes beside the common ones."""

    name: str
    keys: tuple[str, ...]
    options: tuple[str, ...]
    max_num_threads: int | None = None  # in a block of threads, and side by side in a warp: of devices, if nothing else is said
    thread_warp_size: int | None = None

    def __str__(self) -> str:
        return self.name


COMMON = ("keys", "device", "model", "libs", "tag", "host", "num-cores", "from_device", "runtime", "link-params", "system-lib")
_CPU = ("mcpu", "mattr", "mtriple", "mfloat-abi", "mabi", "opt-level", "fast-math", "executor", "interface-api", "unpacked-api")
_GPU = ("arch", "mcpu", "max_num_threads", "thread_warp_size", "max_threads_per_block", "shared_memory_per_block",
        "registers_per_block", "max_shared_memory_per_block", "libs")
KINDS = {k.name: k for k in (
    TargetKind("llvm", ("cpu",), _CPU),
    TargetKind("c", ("cpu",), ("mcpu", "march", "mattr", "mtriple", *_CPU[3:])),
    TargetKind("cuda", ("cuda", "gpu"), _GPU, 1024, 32),
    TargetKind("nvptx", ("cuda", "gpu"), (*_GPU, "mtriple"), 1024, 32),
    TargetKind("rocm", ("rocm", "gpu"), (*_GPU, "mtriple", "mattr"), 256, 64),
    TargetKind("opencl", ("opencl", "gpu"), _GPU, 256, 1),
    TargetKind("vulkan", ("vulkan", "gpu"), _GPU, 256, 1),
    TargetKind("metal", ("metal", "gpu"), _GPU, 256, 16),
    TargetKind("hexagon", ("hexagon",), ("mcpu", "mattr", "mtriple", "llvm-options")),
)}
