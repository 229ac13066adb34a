"""The rule of each record: what the adjoint of its operator is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl import te
from topi.adjoints import convolutions, kin, products
from topi.adjoints.parts import Rule, in_dtype
from topi.broadcast import add
from topi.kinds import (
    ConvOp,
    DepthwiseConvOp,
    Differentiable,
    EinsumOp,
    MatmulOp,
    PackedConvOp,
    PackedDepthwiseConvOp,
    TransposedConvOp,
)

RULES: dict[type[Differentiable], Rule] = {
    MatmulOp: products.of_matmul,
    ConvOp: convolutions.of_convolution,
    DepthwiseConvOp: convolutions.of_convolution,
    PackedConvOp: kin.of_packed,
    PackedDepthwiseConvOp: kin.of_packed,
    TransposedConvOp: kin.of_transposed,
    EinsumOp: products.of_einsum,
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
