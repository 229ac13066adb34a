"""The rule of each record: what the adjoint of its operator is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl import te
from topi.adjoints import convolutions, interleave, kin, pooling, positions, products, reductions, rows
from topi.adjoints.parts import Parts, Rule, in_dtype
from topi.broadcast import add
from topi.injective import injective
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
# Rules that know which adjoints are wanted, and compute several of them at once; None where that does not fit.
TOGETHER: dict[type[Differentiable], Callable[[Any, te.Operation, te.Tensor, Sequence[te.Tensor]], Parts]] = {
    NormalizeOp: rows.of_normalization_together,
}
_ALONG_AN_AXIS = ("cumsum", "cumprod", "sort", "topk", "scatter", "scatter_add")


def adjoint_of(record: Differentiable, op: te.Operation, head: te.Tensor,
               inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
    """The adjoint of each of `inputs`, of their dtypes; None if the record has none in operators. An operand that was given
    twice gets the sum of both.
    """
    rule = RULES.get(type(record))
    if rule is None or not head.dtype.is_float:
        return None
    together = TOGETHER.get(type(record))
    parts = (None if together is None else together(record, op, head, inputs)) or rule(record, op, head)
    if parts is None:
        return None
    sums: dict[te.Tensor, te.Tensor] = {}
    for operand, made in parts:
        if operand in inputs and operand.dtype.is_float:
            part = in_dtype(made(), operand.dtype)
            sums[operand] = add(sums[operand], part) if operand in sums else part
    return sums


def adjoint_of_heads(record: Differentiable, op: te.Operation, head: te.Tensor,
                     inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
    """The same for several heads at once, leading dimensions of `head`, which the adjoints have too: each operand is repeated
    for each head, and the operator runs over one dimension more. For operators that are statements, which have no formula to
    differentiate, and that work along one dimension, all others being independent of each other.

        head: (H, 4)    cumsum of source: (4,) along axis 0
        source.grad[h] = adjoint(head[h])     as the adjoint of cumsum(repeated source: (H, 4), axis=1)
    """
    if not isinstance(record, (CumulativeOp, SortOp, ScatterOp)) or record.operator not in (*_ALONG_AN_AXIS, "scatter_nd"):
        return None
    heads = head.shape[:head.ndim - op.output(0).ndim]
    copies = {tensor: _repeated(tensor, heads) for tensor in dict.fromkeys(record.operands(op))}
    changed: dict[str, Any] = {}
    if record.operator in _ALONG_AN_AXIS:
        changed["axis"] = (record.axis or 0) + len(heads)
    elif isinstance(record, ScatterOp):
        copies[record.tensors[1]] = _with_heads(record.tensors[1], heads)
    for name in record.operand_fields:
        given = getattr(record, name)
        changed[name] = tuple([copies[one] for one in given]) if isinstance(given, tuple) else copies[given]
    made = adjoint_of(replace(record, **changed), _repeated(op.output(0), heads).op, head, [copies[one] for one in inputs])
    return None if made is None else {one: made[copies[one]] for one in inputs if copies[one] in made}


def _repeated(tensor: te.Tensor, heads: Sequence[Any]) -> te.Tensor:
    return injective("repeated", (*heads, *tensor.shape), lambda *i: tensor(*i[len(heads):]))


def _with_heads(indices: te.Tensor, heads: Sequence[Any]) -> te.Tensor:
    """Indices of scatter_nd, (M, Y_0, ...), for tensors repeated for each head: (the number of heads' dimensions + M, heads,
    Y_0, ...). The first rows are the indices of the head.
    """
    count = len(heads)

    def formula(m: Any, *i: Any) -> Any:
        index: Any = indices(te.max(m - count, 0), *i[count:])
        for d in reversed(range(count)):
            index = te.select(m.equal(d), i[d].astype(indices.dtype), index)
        return index

    return injective("indices_with_heads", (indices.shape[0] + count, *heads, *indices.shape[1:]), formula)
