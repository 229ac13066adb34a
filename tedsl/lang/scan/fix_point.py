"""Which dimensions of the states of a scan are computed apart: TVM's ScanFixPointAnalysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp
from tedsl.lang.scan.operation import ScanOp, body_of

if TYPE_CHECKING:
    from tedsl.lang.operation import Operation


def fix_points(scan: Any) -> dict[IterVar, Expr]:
    """For each of `spatial_axis_` of a scan the constant 1 if element i of a step depends on elements i of the steps before it
    alone, as far as the states are concerned, else 0.
    """
    if not isinstance(scan, ScanOp):
        raise ArgumentTypeError(f"ScanFixPointAnalysis takes the operation of a te.scan, got {shown(scan)}", hint="s_scan.op")
    rank = [len(state.shape) - 1 for state in scan.state_placeholder]
    mixed: set[int] = set()
    labels: dict[tuple[Operation, int], int | None] = {}
    for update in scan.update:
        for dim in range(1, len(update.shape)):
            labels[update.op, dim] = dim
    states = {state.op for state in scan.state_placeholder}
    inside = set(body_of(scan))
    for op in reversed([op for op in body_of(scan) if isinstance(op, ComputeOp)]):  # readers first
        of_axis = {axis.var: labels.get((op, dim)) for dim, axis in enumerate(op.axis)}
        for load in [load for value in op.body for load in of_kinds(value, ProducerLoad) if isinstance(load, ProducerLoad)]:
            if load.producer.op in states:
                _compare(load, of_axis, mixed)
            elif load.producer.op in inside:
                _pass_on(load, of_axis, labels, mixed)
    numbers = iter(scan.spatial_axis_)
    return {next(numbers): build.const(int(dim not in mixed)) for dims in rank for dim in range(1, dims + 1)}


def _label(index: Expr, of_axis: dict[Var, int | None], mixed: set[int]) -> int | None:
    """The dimension that an index is, None for another index; dimensions in sums are mixed."""
    if isinstance(index, Var):
        return of_axis.get(index)
    mixed.update([label for var in variables(index) if (label := of_axis.get(var)) is not None])
    return None


def _compare(load: ProducerLoad, of_axis: dict[Var, int | None], mixed: set[int]) -> None:
    """Notes the dimensions of a state that are not read at the element that is computed."""
    for dim, index in enumerate(load.indices[1:], 1):
        label = _label(index, of_axis, mixed)
        if label != dim:
            mixed.update([one for one in (dim, label) if one is not None])


def _pass_on(load: ProducerLoad, of_axis: dict[Var, int | None], labels: dict[tuple[Operation, int], int | None],
             mixed: set[int]) -> None:
    """Gives the dimensions of what is read the labels of the indices; one with two of them mixes these."""
    for dim, index in enumerate(load.indices):
        label = _label(index, of_axis, mixed)
        known = labels.setdefault((load.producer.op, dim), label)
        if known != label:
            mixed.update([one for one in (known, label) if one is not None])
