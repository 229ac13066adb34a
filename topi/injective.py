"""Construction of injective operators, with their record, tag and TVM's names of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl import te
from topi.kinds import InjectiveOp
from topi.tag import INJECTIVE


def injective(operator: str, shape: Sequence[Any], formula: Callable[..., Any], *, name: str = "", tag: str = INJECTIVE,
              attrs: Mapping[str, Any] | None = None) -> te.Tensor:
    """A compute over axes ax0, ax1, ..., recorded as InjectiveOp(operator) and named T_<operator>."""
    output: te.Tensor = te.compute(shape, formula, name=name or f"T_{operator}", tag=tag, attrs=attrs,
                                   info=InjectiveOp(operator), axes="ax")
    return output
