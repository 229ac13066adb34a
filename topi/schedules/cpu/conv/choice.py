"""Which tiles a convolution is computed by."""

from __future__ import annotations

from topi.schedules.cpu.conv.channels import fills_vectors, schedule_blocks, schedule_channels_last, schedule_turned
from topi.schedules.cpu.conv.pixels import is_product, schedule_product
from topi.schedules.cpu.conv.rows import schedule_rows
from topi.schedules.cpu.reduce import schedule_reduce
from topi.schedules.kernel import Kernel


def schedule_conv(kernel: Kernel) -> None:
    """Schedule a convolution by its innermost dimension, its window and its number of channels."""
    layout = kernel.record.layout
    if layout == "NCHWc":
        schedule_blocks(kernel)
    elif layout.endswith("C"):
        schedule_channels_last(kernel)
    elif not layout.endswith("W"):
        schedule_reduce(kernel)
    elif is_product(kernel):
        schedule_product(kernel)
    elif fills_vectors(kernel):
        schedule_turned(kernel)
    else:
        schedule_rows(kernel)
