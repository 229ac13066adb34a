"""The variables of a program that are not axes: its sizes and scalar arguments, to which journals refer by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.extern import ExternOp
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.operation import ComputeOp, Operation, root_axes, thread_axis_of


def symbols_of(ops: Iterable[Operation]) -> list[Var]:
    """The variables of the shapes, formulas and statements of `ops` that nothing in them binds, each once."""
    known = list(ops)
    said = [dim for op in known for k in range(op.num_outputs) for dim in op.shape_of(k)]
    said += [body for op in known if isinstance(op, ComputeOp) for body in op.body]
    bound = {axis.var for op in known for axis in root_axes(op)}
    bound |= {var for one in said if isinstance(one, Reduce) for var in (*one.combiner.lhs, *one.combiner.rhs)}
    used = [var for one in said for var in variables(one)]
    used += [var for op in known if isinstance(op, (ExternOp, HybridOp)) for var in _of_statements(op)]
    return [var for var in dict.fromkeys(used) if var not in bound]


def _of_statements(op: ExternOp | HybridOp) -> list[Var]:
    """The free variables of the statements of `op`, without those of its placeholder buffers, which lowering binds."""
    bound = {var for node in post_order(op.body) for name in node.binders for var in _bound_by(getattr(node, name))}
    for buffer in (*op.input_placeholders, *op.output_placeholders):
        bound.update((buffer.data, *variables(buffer)))
    return [var for var in variables(op.body) if var not in bound and thread_axis_of(var) is None]


def _bound_by(binder: Any) -> Iterator[Var]:
    for one in binder if isinstance(binder, (list, tuple)) else (binder,):
        if isinstance(one, (Buffer, IterVar)):
            yield one.data if isinstance(one, Buffer) else one.var
        elif isinstance(one, Var):
            yield one
