"""Functions from tensors without a schedule: each stage is one plain loop nest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import shown
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule


def create_prim_func(ops: Sequence[Tensor]) -> PrimFunc:
    """The function of the tensors `ops` (inputs and outputs, in the order of the arguments) as plain loops over buffers.

    Raises ArgumentTypeError for anything but tensors, or where none of them is computed.
    """
    tensors: list[Any] = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    wrong = [t for t in tensors if not isinstance(t, Tensor)]
    if wrong:
        raise ArgumentTypeError(f"create_prim_func takes tensors, not {shown(wrong[0])}",
                                hint="write te.create_prim_func([A, B, C])")
    outputs = list(dict.fromkeys(t.op for t in tensors if not isinstance(t.op, PlaceholderOp)))
    if not outputs:
        raise ArgumentTypeError("create_prim_func: none of the tensors is computed",
                                hint="name the results too: te.create_prim_func([A, B, C])")
    return lower_schedule(create_schedule(outputs), tensors)
