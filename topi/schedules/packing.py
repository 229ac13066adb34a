"""Weights that schedules copy into panels at every call, which programs may pack once instead."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules import cpu
from topi.schedules.schedule import as_target, kernels_with
from topi.schedules.table import rule_of, rules_for


def panels_in(outs: Any, target: Any = None) -> dict[te.Tensor, int]:
    """The weights of convolutions and products in the kernels of `outs` that are best packed once, and the results of a panel.

    What `topi.nn.conv2d_pack_weights(weights, 1, results)` or `topi.nn.dense_pack_weights(weights, results)` makes of them is
    read without a copy, by `topi.nn.conv2d_unpack_weights` or `dense_unpack_weights`.
    """
    chosen = as_target(target)
    rules = rules_for(chosen)
    found: dict[te.Tensor, int] = {}
    for kernel in kernels_with(outs, rules, chosen)[1]:
        rule = rule_of(kernel, rules)
        if rule is cpu.conv.schedule_conv:
            width = cpu.conv.panels_of(kernel)
            found |= {} if width is None else {kernel.record.kernel: width}
        elif rule is cpu.matmul.schedule_matmul:
            width = cpu.matmul.panels_of(kernel)
            found |= {} if width is None else {kernel.record.b: width}
    return found
