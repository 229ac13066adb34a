"""Which tiles a convolution is computed by."""

from __future__ import annotations

from topi.kinds import ConvOp
from topi.schedules.cpu.conv.channels import (
    is_turned,
    panel_width,
    schedule_blocks,
    schedule_channels_last,
    schedule_turned,
    shares_panels,
    tile_of_channels_last,
    turned_cycles,
)
from topi.schedules.cpu.conv.depthwise import schedule_depthwise
from topi.schedules.cpu.conv.flat import flat_tile, schedule_flat
from topi.schedules.cpu.conv.groups import group_to_fill, in_whole_groups, place_padded, terms_of_step
from topi.schedules.cpu.conv.pixels import cycles_by_pixels, is_product, schedule_product
from topi.schedules.cpu.conv.planes import is_by_groups, schedule_by_groups
from topi.schedules.cpu.conv.rows import schedule_rows
from topi.schedules.cpu.conv.tiled import is_tiled, schedule_tiled
from topi.schedules.cpu.reduce import schedule_reduce
from topi.schedules.cpu.tile_registers import PANEL
from topi.schedules.cpu.windows import is_over_channels, reads_alone, schedule_windows
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.kernel import Kernel

_SURE = 1.02  # of 15 shapes, those with less gained nothing


def schedule_conv(kernel: Kernel) -> None:
    """Schedule a convolution by its innermost dimension, its window and its number of channels."""
    if not _fills_groups(kernel):
        return _schedule(kernel)
    whole = in_whole_groups(kernel)
    _schedule(whole)
    place_padded(whole, kernel.record.padded)


def _fills_groups(kernel: Kernel) -> bool:
    """Whether channels that are missing of a group are added, as zeros."""
    if group_to_fill(kernel) == 1:
        return False
    return kernel.record.layout.endswith("C") or (not reads_alone(kernel) and is_by_groups(kernel, filled=True))


def _schedule(kernel: Kernel) -> None:
    layout = kernel.record.layout
    if is_over_channels(kernel.anchor):
        schedule_depthwise(kernel)
    elif layout == "NCHWc":
        tile = flat_tile(kernel)
        schedule_blocks(kernel) if tile is None else schedule_flat(kernel, tile)
    elif layout.endswith("C"):
        schedule_tiled(kernel) if is_tiled(kernel) else schedule_channels_last(kernel)
    elif not layout.endswith("W"):
        schedule_reduce(kernel)
    elif reads_alone(kernel):
        schedule_windows(kernel)
    elif is_by_groups(kernel):
        schedule_by_groups(kernel)
    elif _is_by_pixels(kernel):
        schedule_product(kernel)
    elif is_turned(kernel):
        schedule_turned(kernel)
    else:
        schedule_rows(kernel)


def _is_by_pixels(kernel: Kernel) -> bool:
    """Whether vectors hold pixels across the rows of the image: always for windows of one pixel, unless they leave so much of
    the last vector that vectors of channels take less time, their turning included.
    """
    if not is_product(kernel):
        return False
    known = product([extent_of(axis) for axis in (*kernel.tail.axis, *kernel.anchor.reduce_axis)])
    if not known or len(kernel.tail.axis) != 4 or not is_turned(kernel):
        return True
    if extent_of(kernel.tail.axis[0]) == 1 and not shares_panels(kernel):
        return True
    return cycles_by_pixels(kernel) < _SURE * turned_cycles(kernel)


def panels_of(kernel: Kernel) -> tuple[int, int] | None:
    """The output channels of the panels into which the schedule of a convolution copies its weights at every call, and the
    channels of a group, so that they may be packed before; None if it copies none, or others than those of conv2d_nchw and
    conv2d_nhwc.
    """
    record = kernel.record
    if type(record) is not ConvOp or record.groups != 1:
        return None
    if (record.layout, record.kernel_layout) == ("NHWC", "HWIO"):
        group, channels = terms_of_step(kernel), constant(record.kernel.shape[2])
        if group == 1 or channels is None or channels % group:
            return None
        return (PANEL if is_tiled(kernel) else tile_of_channels_last(kernel, group)[0].wide), group
    if (record.layout, record.kernel_layout) != ("NCHW", "OIHW") or is_by_groups(kernel) or _fills_groups(kernel):
        return None
    width = panel_width(kernel) if not _is_by_pixels(kernel) and is_turned(kernel) else None
    return None if width is None else (width, 1)
