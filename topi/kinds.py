"""Typed records of operator families: what an operator leaves in `op.info`, so that a schedule finds its stages by field.

Element-wise and broadcasting operators leave `te.ElementwiseOp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tedsl import te


@dataclass(frozen=True)
class InjectiveOp:
    """Each element of the result depends on one element of each input: padding, transposing, ..."""

    operator: str


@dataclass(frozen=True)
class ReduceOp:
    """A reduction of `source` over its dimensions `axes` (sorted, from 0)."""

    operator: str
    source: te.Tensor
    axes: tuple[int, ...]
    keepdims: bool
