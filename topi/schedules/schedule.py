"""`schedule(outs)`: from operators to a schedule."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ArgumentTypeError
from tedsl.target import Target
from topi.extents import opening
from topi.kinds import InjectiveOp, RowsOp
from topi.schedules import cpu
from topi.schedules.chains import join_products
from topi.schedules.channel_groups import join_groups
from topi.schedules.fusion import kernels
from topi.schedules.kernel import Kernel
from topi.schedules.row_groups import join_rows
from topi.schedules.shared_rows import join, share_rows
from topi.schedules.table import COPYING, Rule, rule_of, rules_for

_INJECTIVE = (te.ElementwiseOp, InjectiveOp)


def schedule(outs: Any, target: Any = None) -> te.Schedule:
    """A schedule of `outs` (a tensor or a list of them) for `target`; None: that of the `with` block, else the host.

    Any graph of operators is taken: each reduction, softmax, convolution, ... becomes a loop nest by the table, with the
    element-wise operators around it inlined or computed in its loops. Inside `with tedsl.tune.history(path):` the best schedule
    that was measured is taken instead, where there is one.
    """
    chosen = as_target(target)
    return advised_or_scheduled(outs, rules_for(chosen), chosen)


def advised_or_scheduled(outs: Any, rules: dict[type, Rule], target: Target) -> te.Schedule:
    """The schedule of `outs` that an adviser knows, as `tedsl.tune.history` does; else that by a table of rules."""
    advised = te.advised_schedule(outputs_in(outs), target)
    return schedule_with(outs, rules, target) if advised is None else advised


def as_target(target: Any) -> Target:
    """A target from any notation; None is the current one, else the host."""
    if target is None:
        return Target.current() or Target("llvm")
    return target if isinstance(target, Target) else Target(target)


def schedule_with(outs: Any, rules: dict[type, Rule], target: Target) -> te.Schedule:
    """The schedule of `outs` by a table of rules."""
    s, groups = kernels_with(outs, rules, target)
    shared = share_rows(groups) if RowsOp in rules else []
    for kernel in cpu.conv.schedule_by_bands(groups) if RowsOp in rules else groups:
        rule_of(kernel, rules)(kernel)
    join(shared)
    return s


def outputs_in(outs: Any) -> list[te.Tensor]:
    """The tensors in `outs`, one or a list of them; ArgumentTypeError for anything else, and for placeholders."""
    listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    for out in listed:
        opening("schedule", out)
    for out in listed:
        if isinstance(out.op, te.PlaceholderOp):
            raise ArgumentTypeError(f"schedule: {out.name} is a placeholder, which has no loops",
                                    hint=f"schedule what is computed from it, for example topi.identity({out.name})")
    return listed


def kernels_with(outs: Any, rules: dict[type, Rule], target: Target) -> tuple[te.Schedule, list[Kernel]]:
    """A schedule whose stages are parted into kernels, which have no loops of their own yet."""
    listed = outputs_in(outs)
    s = te.create_schedule([out.op for out in listed])

    def is_anchor(op: Any) -> bool:
        return type(op) is te.ComputeOp and (bool(op.reduce_axis) or
                                             (type(op.info) in rules and not isinstance(op.info, _INJECTIVE)))

    def in_copies(op: Any) -> tuple[Any, ...]:
        rule = rules.get(type(op.info)) if type(op) is te.ComputeOp else None
        if rule in (cpu.pool.schedule_pool, cpu.conv.schedule_conv):
            return cpu.windows.border_of(op) or cpu.conv.border_of_image(op)
        return (op.info.padded.op,) if getattr(rule, "func", rule) in COPYING else ()

    groups = kernels(s, is_anchor, target, in_copies)
    if RowsOp in rules:
        groups = join_groups(join_products(join_rows(groups, set(s.outputs)), set(s.outputs)), set(s.outputs))
    return s, groups
