"""The key of a task: equal for the same formulas in any program, process and machine."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import ArgumentTypeError
from tedsl.ir.source_line import SourceLine
from tedsl.ir.walk.identity import identity
from tedsl.lang.tensor import Tensor


def task_key(outs: Tensor | Sequence[Tensor]) -> str:
    """The key of computing `outs`: a digest of their formulas, shapes, dtypes and names, as `history` looks them up.

    Returns "" for formulas that hold something which another process could not compare, such as an object in `attrs`.
    """
    listed = [outs] if isinstance(outs, Tensor) else outs
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(out, Tensor) for out in listed):
        raise ArgumentTypeError(f"task_key takes a tensor or a list of tensors, not {outs!r}")
    return identity(tuple(listed), without=(SourceLine,)) or ""
