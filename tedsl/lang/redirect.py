"""Formulas in which loads of tensors become loads of other tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir.expr import Expr, ProducerLoad
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.lang.tensor import Tensor


def redirected(body: tuple[Expr, ...], mapping: Mapping[Tensor, Tensor]) -> tuple[Expr, ...]:
    """`body` with loads of `mapping[t]` in place of those of t."""
    return tuple(map(_TensorReader(mapping), body))


class _TensorReader(Rewriter):
    """Rewriter that redirects loads of tensors to other tensors."""

    def __init__(self, mapping: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.mapping = mapping

    def rewrite(self, node: Any) -> Any:
        if type(node) is ProducerLoad and node.producer in self.mapping:
            return ProducerLoad(self.mapping[node.producer], node.indices)
        return node
