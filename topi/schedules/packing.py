"""Weights that schedules copy into panels at every call, which programs may pack once instead."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules import cpu
from topi.schedules.schedule import as_target, kernels_with
from topi.schedules.table import rule_of, rules_for


def panels_in(outs: Any, target: Any = None) -> dict[te.Tensor, int]:
    """The weights of convolutions in the kernel of `outs` that its schedule copies into panels, and the channels of a panel.

    What `topi.nn.conv2d_pack_weights(weights, 1, channels)` makes of them is read without a copy, by
    `topi.nn.conv2d_unpack_weights`.
    """
    chosen = as_target(target)
    rules = rules_for(chosen)
    found: dict[te.Tensor, int] = {}
    for kernel in kernels_with(outs, rules, chosen)[1]:
        if rule_of(kernel, rules) is cpu.conv.schedule_conv:
            width = cpu.conv.panels_of(kernel)
            if width is not None:
                found[kernel.record.kernel] = width
    return found
