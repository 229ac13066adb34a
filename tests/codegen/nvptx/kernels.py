"""The device code of schedules."""

from tedsl.codegen.nvptx.backend import PTXBackend
from tedsl.lower.lower import lower_schedule
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, kernel_pipeline, lowering_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.target import Target


def kernels_of(s, args, target):
    """The kernels of a schedule after all passes."""
    flat = device_pipeline(target, PassConfig())(lowering_pipeline()(lower_schedule(s, args)))
    return [kernel_pipeline(target, PassConfig())(kernel) for kernel in split_kernels(flat, target).kernels]


def device_code(s, args, arch="sm_80"):
    """The PTX of a schedule, with its kernels."""
    target = Target(f"cuda -arch={arch}")
    return PTXBackend().compile_kernels(kernels_of(s, args, target), target, PassConfig())
