"""Formulas in which loads of tensors become loads of other tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.ir.expr import Cast, Expr, ProducerLoad
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.lang.tensor import Tensor


def redirected(body: tuple[Expr, ...], mapping: Mapping[Tensor, Tensor]) -> tuple[Expr, ...]:
    """`body` with loads of `mapping[t]` in place of those of t. The other tensor may have a wider dtype, which holds the values
    of t: they are cast back, or not cast where they were cast to that dtype.
    """
    return tuple(map(_TensorReader(mapping), body))


class _TensorReader(Rewriter):
    """Rewriter that redirects loads of tensors to other tensors."""

    def __init__(self, mapping: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.mapping = mapping
        self.narrowed: dict[Expr, ProducerLoad] = {}  # casts back, and the loads of wider tensors in them

    def rewrite(self, node: Any) -> Any:
        if type(node) is ProducerLoad and node.producer in self.mapping:
            return self._redirected(node, ProducerLoad(self.mapping[node.producer], node.indices))
        if type(node) is Cast and self.narrowed and node.value in self.narrowed:
            wide = self.narrowed[node.value]
            return wide if wide.dtype == node.dtype else node
        return node

    def _redirected(self, node: ProducerLoad, load: ProducerLoad) -> Expr:
        if load.dtype == node.dtype:
            return load
        narrow = Cast(node.dtype, load)
        self.narrowed[narrow] = load
        return narrow
