"""The table of schedules: by the type of an operator's record and the keys of the target's kind."""

from __future__ import annotations

from collections.abc import Callable

from tedsl import te
from tedsl.target import Target
from topi.kinds import (
    ConvOp,
    DepthwiseConvOp,
    ExchangeOp,
    InjectiveOp,
    MatmulOp,
    NormalizeOp,
    PackedConvOp,
    PackedDepthwiseConvOp,
    PoolOp,
    ReduceOp,
    RowScaleOp,
    RowsOp,
    SoftmaxOp,
    TransformOp,
    TransposedConvOp,
)
from topi.schedules import cpu, gpu
from topi.schedules.default import schedule_default
from topi.schedules.kernel import Kernel

Rule = Callable[[Kernel], None]

CPU: dict[type, Rule] = {
    te.ElementwiseOp: cpu.elements.schedule_injective,
    InjectiveOp: cpu.elements.schedule_injective,
    ReduceOp: cpu.reduce.schedule_reduce,
    SoftmaxOp: cpu.rows.schedule_softmax,
    NormalizeOp: cpu.rows.schedule_normalize,
    RowScaleOp: cpu.rows.schedule_normalize,
    RowsOp: cpu.rows.schedule_group,
    MatmulOp: cpu.matmul.schedule_matmul,
    ConvOp: cpu.conv.schedule_conv,
    DepthwiseConvOp: cpu.conv.schedule_conv,
    PackedConvOp: cpu.conv.schedule_conv,
    PackedDepthwiseConvOp: cpu.conv.schedule_conv,
    TransposedConvOp: cpu.conv.schedule_conv,
    PoolOp: cpu.pool.schedule_pool,
    TransformOp: cpu.transforms.schedule_transform,
    ExchangeOp: cpu.transforms.schedule_exchange,
}
GPU: dict[type, Rule] = {
    te.ElementwiseOp: gpu.injective.schedule_injective,
    InjectiveOp: gpu.injective.schedule_injective,
    ReduceOp: gpu.reduce.schedule_reduce,
    SoftmaxOp: gpu.rows.schedule_rows,
    NormalizeOp: gpu.rows.schedule_rows,
    RowScaleOp: gpu.rows.schedule_rows,
    MatmulOp: gpu.matmul.schedule_matmul,
    ConvOp: gpu.conv.schedule_conv,
    DepthwiseConvOp: gpu.conv.schedule_conv,
    PoolOp: gpu.pool.schedule_pool,
    TransformOp: gpu.transforms.schedule_transform,
    te.ExternOp: gpu.statements.schedule_statements,
}
# Rules under which what pads operands is computed where it is read: in copies, or by each thread.
COPYING = frozenset((gpu.conv.schedule_conv, gpu.pool.schedule_pool, gpu.tensor_cores.schedule_tensor_core_conv))
BY_KEY: dict[str, dict[type, Rule]] = {"cpu": CPU, "gpu": GPU}


def rules_for(target: Target) -> dict[type, Rule]:
    """The table of schedules for the first key of the target that has one."""
    return next((BY_KEY[key] for key in target.kind.keys if key in BY_KEY), {})


def rule_of(kernel: Kernel, rules: dict[type, Rule]) -> Rule:
    """The schedule of a kernel; formulas without a record count as element-wise or as a reduction."""
    op = kernel.anchor
    if type(op) is not te.ComputeOp:
        return rules.get(type(op), schedule_default)
    if kernel.inside and not hasattr(op.info, "stages"):
        return rules[RowsOp]
    rule = rules.get(type(op.info))
    if rule is None:
        rule = rules.get(ReduceOp if op.reduce_axis else te.ElementwiseOp)
    return rule or schedule_default
