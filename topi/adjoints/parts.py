"""What rules are made of: pairs of an operand and the function that makes its adjoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from topi.elementwise import cast

Part = tuple[te.Tensor, Callable[[], te.Tensor]]
Parts = Sequence[Part] | None  # None: the case has no adjoint in operators
Rule = Callable[[Any, te.Operation, te.Tensor], Parts]


def in_dtype(tensor: te.Tensor, dtype: Any) -> te.Tensor:
    """`tensor` converted to `dtype`; itself if it has this dtype."""
    converted: te.Tensor = tensor if tensor.dtype == dtype else cast(tensor, dtype)
    return converted
