"""Functions from tensors without a schedule: each stage is one plain loop nest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import shown
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import Schedule, create_schedule

HOW = "write te.create_prim_func([A, B, C])"


def create_prim_func(ops: Sequence[Tensor | Var]) -> PrimFunc:
    """The function of the tensors `ops` (inputs and outputs, in the order of the arguments) as plain loops over buffers.

    Variables among them are arguments too. Raises ArgumentTypeError for anything else, or where no tensor is computed;
    ArgumentError where an input is missing.
    """
    tensors: list[Any] = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    wrong = [t for t in tensors if not isinstance(t, Tensor | Var)]
    if wrong:
        raise ArgumentTypeError(f"create_prim_func takes tensors, not {shown(wrong[0])}", hint=_instead(wrong[0]))
    computed = [t.op for t in tensors if isinstance(t, Tensor) and not isinstance(t.op, PlaceholderOp)]
    outputs = list(dict.fromkeys(computed))
    if not outputs:
        raise ArgumentTypeError("create_prim_func: none of the tensors is computed",
                                hint="name the results too: te.create_prim_func([A, B, C])")
    missing = [op.name for op in producers_first(outputs) if isinstance(op, PlaceholderOp) and op.output(0) not in tensors]
    if missing:
        names = ", ".join([*missing, *(t.name for t in tensors)])
        raise ArgumentError(f"create_prim_func: {missing[0]} is read, and is not among the tensors",
                            hint=f"name inputs and results: te.create_prim_func([{names}])")
    return lower_schedule(create_schedule(outputs), tensors)


def _instead(given: object) -> str:
    """What to do with a value that is no tensor."""
    if isinstance(given, Schedule):
        return f'{HOW}, without a schedule; tedsl.lower(s, [A, B, C])["main"] is the function of a schedule'
    if isinstance(given, Operation):
        return f"{given.name} is an operation, and {given.name}.output(0) its tensor: {HOW}"
    return HOW
