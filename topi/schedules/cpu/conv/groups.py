"""Convolutions of narrow integers with channels innermost: each step of a sum takes a group of neighbouring channels.

The weights are copied with the groups innermost: [panel, window, channels / 4, results of the panel, channels % 4].
"""

from __future__ import annotations

from typing import Any

from topi.kinds import ConvOp, PackedConvOp
from topi.schedules.cpu.conv.operands import weights_of
from topi.schedules.cpu.dots import group_of
from topi.schedules.cpu.panels import as_panels
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import constant, extent_of, product, variables_in
from topi.schedules.kernel import Kernel


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
