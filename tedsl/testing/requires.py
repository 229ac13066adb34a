"""Marks of tests by what they require: `requires_cuda`, `requires_x86_avx512`, ... by TVM's names.

Each marks a test for pytest, with parentheses or without; the test is skipped, with the reason, where the requirement is not
met. Devices are looked for by their drivers; marks of devices without a driver and of libraries that tedsl does not call always
skip.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from tedsl.runtime.devices.device import device
from tedsl.target.current import as_target

_GPUS = ("gpu", "multi_gpu", "cuda", "cudnn", "cublas", "cudagraph", "nccl", "tensorcore", "nvcc_version", "nvptx", "rocm",
         "matrixcore", "vulkan", "metal", "mps")
_DEVICES = {**dict.fromkeys(_GPUS, "a GPU"), "opencl": "a device of OpenCL", "adreno_opencl": "a phone",
            "hexagon": "a Hexagon DSP",
            "micro": "a microcontroller", "ethosn": "an Arm NPU", "ethosu": "an Arm NPU",
            "cmsisnn": "a microcontroller", "corstone300": "a microcontroller",
            "rpc": "a remote device", "wasm": "a WebAssembly machine", "vitis_ai": "an FPGA", "libtorch": "libtorch",
            "openclml": "a phone"}
_DRIVEN = {"cuda": "cuda", "nvptx": "cuda", "opencl": "opencl"}  # the kind of device whose driver says what is here
# What the processor must be: its architecture, and a feature of it ("": any).
_PROCESSORS = {
    "x86": ("x86-64", ""), "x86_avx512": ("x86-64", "avx512f"), "x86_vnni": ("x86-64", "avx512vnni"),
    "x86_amx": ("x86-64", "amx-int8"), "skylake_avx512": ("x86-64", "avx512bw"), "cascadelake": ("x86-64", "avx512vnni"),
    "aarch64": ("aarch64", ""), "arm_dot": ("aarch64", "dotprod"), "arm_fp16": ("aarch64", "fullfp16"),
    "aarch64_sve": ("aarch64", "sve"), "aarch64_sme": ("aarch64", "sme"),
}


def requires_llvm(*test: Any) -> Any:
    """Marks a test that builds for `llvm`. It always runs: tedsl cannot be imported without LLVM."""
    return test[0] if test else lambda one: one


def requires_package(*packages: str) -> Any:
    """Marks a test that imports `packages`: it is skipped where one of them is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name.partition(".")[0]) is None]
    return _skip(f"not installed: {', '.join(missing)}" if missing else "")


def _mark(what: str) -> Callable[..., Any]:
    """Returns the mark `requires_...` of an entry of one of the tables."""
    def mark(*test: Any) -> Any:
        is_test = len(test) == 1 and callable(test[0])
        skip = _skip(_missing(what))  # other arguments, such as a version of nvcc, say more about what is not here
        return skip(test[0]) if is_test else skip

    mark.__name__ = mark.__qualname__ = f"requires_{what}"
    mark.__doc__ = f"Marks a test that needs {_DEVICES.get(what) or ' '.join(_PROCESSORS[what]).strip()}: skipped without."
    return mark


def _missing(what: str) -> str:
    """Returns the reason why tests that need `what` cannot run here; "" if they can."""
    if what in _DRIVEN:
        place = device(_DRIVEN[what])
        return "" if place.exist else f"{what} needs {_DEVICES[what]}: {place.missing}"
    if what in _DEVICES:
        return f"{what.replace('_', ' ')} needs {_DEVICES[what]}: no target here is one"
    arch, feature = _PROCESSORS[what]
    here = as_target(None)
    if here.architecture != arch:
        return f"needs a processor of {arch}, this one is {here.architecture}"
    return "" if not feature or feature in here.features else f"needs {feature}, which this processor does not have"


def _skip(reason: str) -> Any:
    import pytest

    return pytest.mark.skipif(bool(reason), reason=reason or "it is here")


requires_gpu = _mark("gpu")
requires_multi_gpu = _mark("multi_gpu")
requires_cuda = _mark("cuda")
requires_cudnn = _mark("cudnn")
requires_cublas = _mark("cublas")
requires_cudagraph = _mark("cudagraph")
requires_nccl = _mark("nccl")
requires_tensorcore = _mark("tensorcore")
requires_nvcc_version = _mark("nvcc_version")
requires_nvptx = _mark("nvptx")
requires_rocm = _mark("rocm")
requires_matrixcore = _mark("matrixcore")
requires_opencl = _mark("opencl")
requires_vulkan = _mark("vulkan")
requires_metal = _mark("metal")
requires_mps = _mark("mps")
requires_adreno_opencl = _mark("adreno_opencl")
requires_hexagon = _mark("hexagon")
requires_micro = _mark("micro")
requires_ethosn = _mark("ethosn")
requires_ethosu = _mark("ethosu")
requires_cmsisnn = _mark("cmsisnn")
requires_corstone300 = _mark("corstone300")
requires_rpc = _mark("rpc")
requires_wasm = _mark("wasm")
requires_vitis_ai = _mark("vitis_ai")
requires_libtorch = _mark("libtorch")
requires_openclml = _mark("openclml")
requires_x86 = _mark("x86")
requires_x86_avx512 = _mark("x86_avx512")
requires_x86_vnni = _mark("x86_vnni")
requires_x86_amx = _mark("x86_amx")
requires_skylake_avx512 = _mark("skylake_avx512")
requires_cascadelake = _mark("cascadelake")
requires_aarch64 = _mark("aarch64")
requires_arm_dot = _mark("arm_dot")
requires_arm_fp16 = _mark("arm_fp16")
requires_aarch64_sve = _mark("aarch64_sve")
requires_aarch64_sme = _mark("aarch64_sme")
