"""The backend of the target `opencl`: kernels as OpenCL C 1.2."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.codegen.c.device.language import OPENCL, opencl_dialect
from tedsl.codegen.c.device.module import emit_device_module
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.text import text as loops_text
from tedsl.passes.config import PassConfig
from tedsl.runtime.devices.code import DeviceCode
from tedsl.target.target import Target


class OpenCLBackend:
    """The backend for devices of kind `opencl`."""

    def compile_kernels(self, kernels: Sequence[PrimFunc], target: Target, config: PassConfig) -> DeviceCode:
        """Returns `kernels`, which are lowered for `target`, as OpenCL C."""
        text, functions = emit_device_module(kernels, opencl_dialect(target), OPENCL)
        return DeviceCode("cl", text, functions, str(target), loops_text(IRModule({func.name: func for func in kernels})))
