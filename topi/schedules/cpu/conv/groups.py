"""Convolutions of narrow integers with channels innermost: each step of a sum takes a group of neighbouring channels.

The weights are copied with the groups innermost: [panel, window, channels / 4, results of the panel, channels % 4]. Channels
that fill no group, as the three of a first layer, would be added up one by one: where this takes longer, both operands are read
from copies with zeros in the channels that are missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tedsl import te
from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.operands import weights_of
from topi.schedules.cpu.dots import group_of
from topi.schedules.cpu.elements import schedule_injective
from topi.schedules.cpu.panels import as_panels
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import constant, extent_of, product, variables_in
from topi.schedules.kernel import Kernel, whole_of

_WIDENED = 1.7  # times the cycles of float32, which products take that are widened one by one
_COPIED = 0.5  # cycles to copy a byte of the image


def terms_of_step(kernel: Kernel) -> int:
    """The channels of the data that one instruction multiplies and adds up; 1 if there is none that does."""
    record, weights = kernel.record, _as_read(kernel)
    packed = type(record) is PackedConvOp
    if not packed and (type(record) is not ConvOp or not record.layout.endswith("C")):
        return 1
    data = next((load for load in kernel.formula(kernel.anchor).loads if load.producer.op is not weights.op), None)
    if data is None:
        return 1
    channel = kernel.anchor.reduce_axis[0 if packed else channel_loop(kernel)].var
    inside = [channel in variables_in(index) for index in data.indices]
    block = constant(record.data.shape[-1])
    if not inside[-1] or (sum(inside) > 1 and not packed) or (packed and block is None):
        return 1
    terms = record.data.shape[-1] if packed else record.kernel.shape[record.kernel_layout.index("I")]
    group = group_of(kernel, data.producer, weights, terms)
    return group if not packed or (block or 1) % group == 0 else 1


def _as_read(kernel: Kernel) -> Any:
    """The weights as the formula of the sums reads them."""
    packed = as_panels(kernel, weights_of(kernel))
    return kernel.read(weights_of(kernel)) if packed is None else packed.panels


def channel_loop(kernel: Kernel) -> int:
    """The number of the loop of the sums over the channels of the data."""
    return int(kernel.record.kernel_layout.replace("O", "").index("I"))


def are_packed(kernel: Kernel, group: int, wide: int) -> bool:
    """Whether the weights lie in panels of `wide` results, by groups of channels."""
    packed = as_panels(kernel, weights_of(kernel))
    return packed is not None and (packed.group, packed.wide) == (group, wide)


def copy_of_groups(kernel: Kernel, group: int, wide: int = 0) -> Any:
    """A copy of the weights by groups of channels; None where they lie so. wide: the results of a panel, of weights without
    blocks.
    """
    s, weights = kernel.schedule, weights_of(kernel)
    if are_packed(kernel, group, wide):
        return None
    copy = s.cache_read(weights, "global", [kernel.anchor])
    if type(kernel.record) is PackedConvOp:
        s[copy].transform_layout(lambda o, i, h, w, ib, ob: [o, i, h, w, ib // group, ob, ib % group])
        return copy
    letters = kernel.record.kernel_layout
    channel, result = letters.index("I"), letters.index("O")
    window = [at for at in range(len(letters)) if at not in (channel, result)]
    s[copy].transform_layout(lambda *at: [at[result] // wide, *(at[k] for k in window), at[channel] // group, at[result] % wide,
                                          at[channel] % group])
    return copy


def place_groups(kernel: Kernel, copy: Any, tail: Any, place: Any) -> None:
    """Copy a panel in each iteration of the loop `place` of `tail`; where it is None, all of them before."""
    if copy is None:
        return
    stage = kernel.schedule[copy]
    panel, *_, terms = stage.op.axis
    stage.vectorize(terms)
    if place is not None:
        stage.compute_at(tail, place)
    else:
        share_out(stage, [panel], product([extent_of(axis) for axis in stage.op.axis]))


# --- channels that fill no group --------------------------------------------------------------------------------------

def in_whole_groups(kernel: Kernel) -> Kernel:
    """The convolution with zeros in the channels that are missing of a group."""
    s, anchor, record = kernel.schedule, kernel.anchor, kernel.record
    group = group_to_fill(kernel)
    image, weights = s.pad_sum(anchor.output(0), anchor.reduce_axis[channel_loop(kernel)], group)
    op = s[anchor].op
    return replace(kernel, anchor=op, tail=kernel.tail if kernel.fused else op, whole=whole_of(s), formulas={}, known_lanes={},
                   changed=replace(record, padded=image, kernel=weights))


def place_padded(kernel: Kernel, before: Any) -> None:
    """Place the copies that have whole groups of channels: that of the image makes its border, too, where nothing else reads
    the image with its border, `before`; that of the weights is inlined into the one by groups.
    """
    s, record = kernel.schedule, kernel.record
    s[record.kernel].compute_inline()
    readers = [stage for stage in s.stages if s[before].op.output(before.value_index) in stage.op.input_tensors]
    if len(readers) == 1 and type(before.op) is te.ComputeOp and before.op not in s.outputs:
        s[before].compute_inline()
    op = s[record.padded].op
    _copy_pixels(kernel, op) if record.layout.endswith("C") and kernel.target.can_mask(record.padded.dtype) else \
        schedule_injective(Kernel(s, op, op, kernel.target))


def _copy_pixels(kernel: Kernel, op: Any) -> None:
    """Copy vectors of whole pixels: the bytes of some, which follow each other, change places in a register."""
    stage = kernel.schedule[op]
    *rows, x, c = op.axis
    outer, inside = stage.split(x, factor=max(1, kernel.target.vector_lanes(op.output(0).dtype) // (extent_of(c) or 1)))
    stage.vectorize(stage.fuse(inside, c))
    share_out(stage, rows, product([extent_of(axis) for axis in op.axis]))


def group_to_fill(kernel: Kernel) -> int:
    """The channels of a group, if the copies take less time than what is left over of the last group does; else 1."""
    record, target = kernel.record, kernel.target
    if type(record) is not ConvOp or record.groups != 1 or as_panels(kernel, record.kernel) is not None:
        return 1
    sums, dtypes = kernel.anchor.output(0).dtype, (record.padded.dtype, record.kernel.dtype)
    group, channels = target.dot_terms(*dtypes), extent_of(kernel.anchor.reduce_axis[channel_loop(kernel)])
    is_faster = target.has_byte_products if group == 4 else sums.is_float or target.has_vnni
    if group == 1 or not is_faster or sums.bits != 32 or not channels or channels % group == 0:
        return 1
    results = product([extent_of(axis) for axis in kernel.anchor.axis])
    terms = product([extent_of(axis) for axis in kernel.anchor.reduce_axis])
    size = product([constant(extent) for extent in record.padded.shape])
    if not results or not terms or not size:
        return 1
    products = results * (terms // channels) / kernel.lanes(kernel.anchor) / target.machine.fmas(target.vector_bits)
    saved = products * (_WIDENED * (channels % group) - 1)
    return group if saved > _COPIED * dtypes[0].bytes * size // channels * -(-channels // group) * group else 1


def terms_in_line(kernel: Kernel) -> int:
    """The terms of a sum that lie side by side where the channels of a pixel do: those of the columns of a window."""
    letters = kernel.record.kernel_layout.replace("O", "")
    across = extent_of(kernel.anchor.reduce_axis[letters.index("W")]) if kernel.record.dilation[-1] == 1 else 1
    return (across or 1) * (extent_of(kernel.anchor.reduce_axis[channel_loop(kernel)]) or 1)
