"""What processors of NVIDIA can do, by the names of TVM's contrib.nvcc. nvcc is not called: kernels become PTX by LLVM.

Compute capabilities are texts, "8.6". The instructions of each: CUDA C++ Programming Guide, "Compute Capabilities".
"""

from __future__ import annotations

from tedsl.errors import ArgumentError, entries
from tedsl.runtime.devices.device import cuda
from tedsl.target.current import as_target
from tedsl.target.stack import current_target
from tedsl.target.target import Target

_NO_NVCC = 'tedsl.build(s, args, "cuda") makes PTX without nvcc; get_source("ptx") of its imported module shows it'
_LIBDEVICE = "formulas are tedsl's own (docs/math.md): no libdevice is linked"


def get_target_compute_version(target: Target | str | None = None) -> str:
    """Returns the compute capability of a target, of the current one, or of the device of this machine."""
    chosen = current_target() if target is None else as_target(target)
    architecture = chosen.cpu if chosen is not None else ""
    if architecture.startswith("sm_"):
        number = architecture.removeprefix("sm_").rstrip("af")
        return f"{number[:-1]}.{number[-1]}"
    device = cuda(0)
    if not device.exist:
        raise ArgumentError("get_target_compute_version: there is neither a target of CUDA nor a device",
                            hint='with tedsl.target.Target("cuda -arch=sm_80"): ...')
    return str(device.compute_version)


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """Returns the two numbers of a compute capability, (8, 6) of "8.6"."""
    major, dot, minor = str(compute_version).partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise ArgumentError(f'parse_compute_version: a compute capability is written "8.6", not {compute_version!r}')
    return int(major), int(minor)


def have_fp16(compute_version: str) -> bool:
    """Whether arithmetic of float16 is there: 5.3, and 6.0 and later."""
    return parse_compute_version(compute_version) == (5, 3) or parse_compute_version(compute_version) >= (6, 0)


def have_int8(compute_version: str) -> bool:
    """Whether dot products of bytes are there: 6.1 and later."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str | None = None, target: Target | str | None = None) -> bool:
    """Whether tensor cores are there: 7.0 and later. compute_version: by default that of `target`."""
    version = get_target_compute_version(target) if compute_version is None else compute_version
    return parse_compute_version(version) >= (7, 0)


def have_bf16(compute_version: str) -> bool:
    """Whether arithmetic of bfloat16 is there: 8.0 and later."""
    return parse_compute_version(compute_version) >= (8, 0)


entries(globals(), absent={
    **dict.fromkeys(("compile_cuda", "find_cuda_path", "get_cuda_version", "tvm_callback_cuda_compile"), _NO_NVCC),
    **dict.fromkeys(("find_libdevice_path", "callback_libdevice_path"), _LIBDEVICE),
    "have_cudagraph": "launches are single calls: no graphs of CUDA are captured"})
