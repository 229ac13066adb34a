"""The rule of each record: what the adjoint of its operator is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl import te
from topi.adjoints import convolutions, interleave, kin, pooling, positions, products, reductions, rows
from topi.adjoints.parts import Rule, in_dtype
from topi.broadcast import add
from topi.kinds import (
    ChannelNormOp,
    ConvOp,
    CumulativeOp,
    DepthwiseConvOp,
    Differentiable,
    EinsumOp,
    InterleaveOp,
    MatmulOp,
    NormalizeOp,
    PackedConvOp,
    PackedDepthwiseConvOp,
    PlacedSumOp,
    PoolOp,
    ReduceOp,
    ScatterOp,
    SoftmaxOp,
    SortOp,
    TiledConvOp,
    TransposedConvOp,
)

RULES: dict[type[Differentiable], Rule] = {
    MatmulOp: products.of_matmul,
    ConvOp: convolutions.of_convolution,
    DepthwiseConvOp: convolutions.of_convolution,
    PackedConvOp: kin.of_packed,
    PackedDepthwiseConvOp: kin.of_packed,
    TransposedConvOp: kin.of_transposed,
    TiledConvOp: kin.of_tiled,
    EinsumOp: products.of_einsum,
    SoftmaxOp: rows.of_softmax,
    NormalizeOp: rows.of_normalization,
    ChannelNormOp: rows.of_channels,
    ReduceOp: reductions.of_reduction,
    InterleaveOp: interleave.of_interleaving,
    PoolOp: pooling.of_pooling,
    PlacedSumOp: pooling.of_placed_sums,
    CumulativeOp: reductions.of_running,
    SortOp: reductions.of_sorting,
    ScatterOp: positions.of_scatter,
}


def adjoint_of(record: Differentiable, op: te.Operation, head: te.Tensor,
               inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
    """The adjoint of each of `inputs`, of their dtypes; None if the record has none in operators. An operand that was given
    twice gets the sum of both.
    """
    rule = RULES.get(type(record))
    if rule is None or not head.dtype.is_float:
        return None
    parts = rule(record, op, head)
    if parts is None:
        return None
    sums: dict[te.Tensor, te.Tensor] = {}
    for operand, made in parts:
        if operand in inputs and operand.dtype.is_float:
            part = in_dtype(made(), operand.dtype)
            sums[operand] = add(sums[operand], part) if operand in sums else part
    return sums
