"""Kernels for CUDA as CUDA C, to be read and compiled elsewhere: what `get_source("cu")` gives. Devices run the PTX."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.c.device.language import CUDA, cuda_dialect
from tedsl.codegen.c.device.module import emit_device_module
from tedsl.errors import LoweringError
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ATOMIC_ADD, CP_ASYNC, FRAGMENT_OPS
from tedsl.ir.walk.contents import contains
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, kernel_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.target.target import Target

_PTX_ALONE = (*FRAGMENT_OPS, ATOMIC_ADD, CP_ASYNC)


def cuda_text(funcs: Sequence[PrimFunc], target: Target, config: PassConfig) -> str:
    """Returns the kernels of lowered functions as CUDA C. Threads of a warp meet in shared memory there, without shuffles.

    Raises LoweringError for what is written as PTX alone: matrices of tensor cores, atomics, asynchronous copies.
    """
    plain = Target({"kind": target.kind.name, **target.attrs, "thread_warp_size": 1})
    pipeline, fitted = device_pipeline(plain, config), kernel_pipeline(plain, config)
    kernels = [fitted(kernel) for func in funcs for kernel in split_kernels(pipeline(func), plain).kernels]
    for kernel in kernels:
        if contains(kernel.body, *_PTX_ALONE):
            raise LoweringError(f"CUDA C of {kernel.attrs['global_symbol']}: matrices of tensor cores, atomics and asynchronous"
                                " copies are written as PTX alone", hint='get_source("ptx") is what runs')
    return emit_device_module(kernels, cuda_dialect(plain), CUDA)[0]
