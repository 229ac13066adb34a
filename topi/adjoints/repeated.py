"""Adjoints for several heads at once: each operand is repeated for each head, and the operator runs over one dimension more.

    head: (H, 4)    cumsum of source: (4,) along axis 0
    before: source.grad[h] = adjoint(head[h])        after: source.grad = adjoint of cumsum(repeated source: (H, 4), axis=1)

For operators that are statements, which have no formula to differentiate, and that work along one dimension, all others being
independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl import te
from topi.adjoints.table import adjoint_of
from topi.injective import injective
from topi.kinds import CumulativeOp, Differentiable, ScatterOp, SortOp

_ALONG_AN_AXIS = ("cumsum", "cumprod", "sort", "topk", "scatter", "scatter_add")


def adjoint_of_heads(record: Differentiable, op: te.Operation, head: te.Tensor,
                     inputs: Sequence[te.Tensor]) -> Mapping[te.Tensor, te.Tensor] | None:
    """The adjoint of each of `inputs` for a head with leading dimensions, which the adjoints have too; None if there is none."""
    if not isinstance(record, (CumulativeOp, SortOp, ScatterOp)) or record.operator not in _ALONG_AN_AXIS:
        return None
    heads = head.shape[:head.ndim - op.output(0).ndim]
    copies = {tensor: _repeated(tensor, heads) for tensor in dict.fromkeys(record.operands(op))}
    changed: dict[str, Any] = {"axis": (record.axis or 0) + len(heads)}
    for name in record.operand_fields:
        given = getattr(record, name)
        changed[name] = tuple([copies[one] for one in given]) if isinstance(given, tuple) else copies[given]
    made = adjoint_of(replace(record, **changed), _repeated(op.output(0), heads).op, head, [copies[one] for one in inputs])
    return None if made is None else {one: made[copies[one]] for one in inputs if copies[one] in made}


def _repeated(tensor: te.Tensor, heads: Sequence[Any]) -> te.Tensor:
    return injective("repeated", (*heads, *tensor.shape), lambda *i: tensor(*i[len(heads):]))
