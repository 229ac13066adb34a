"""Weights that schedules copy into panels at every call, which programs may pack once instead."""

from __future__ import annotations

from typing import Any, NamedTuple

from tedsl import te
from topi.schedules import cpu
from topi.schedules.schedule import as_target, kernels_with
from topi.schedules.table import rule_of, rules_for


class Panels(NamedTuple):
    """How weights are best packed: the results of a panel, and the terms of a group, which one instruction adds up."""

    results: int
    group: int = 1


def panels_in(outs: Any, target: Any = None) -> dict[te.Tensor, Panels]:
    """The weights of convolutions and products in the kernels of `outs` that are best packed once, and their panels.

    What `topi.nn.conv2d_pack_weights(weights, 1, results, layout, group)` or `dense_pack_weights(weights, results, layout,
    group)` makes of them is read without a copy, by `conv2d_unpack_weights` or `dense_unpack_weights`.
    """
    chosen = as_target(target)
    rules = rules_for(chosen)
    found: dict[te.Tensor, Panels] = {}
    for kernel in kernels_with(outs, rules, chosen)[1]:
        rule = rule_of(kernel, rules)
        if rule is cpu.conv.schedule_conv:
            panels = cpu.conv.panels_of(kernel)
            found |= {} if panels is None else {kernel.record.kernel: Panels(*panels)}
        elif rule is cpu.matmul.schedule_matmul:
            panels = cpu.matmul.panels_of(kernel)
            found |= {} if panels is None else {kernel.record.b: Panels(*panels)}
    return found
