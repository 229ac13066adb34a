"""Checks of the body of a compute, made once, where it is declared."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ExpressionError
from tedsl.ir.container import Array
from tedsl.ir.expr import Call, Expr, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import is_axis_variable
from tedsl.lang.reducer import nested_reduction
from tedsl.lang.value import check_call


def check_formula(body: tuple[Expr, ...], axis: tuple[IterVar, ...], where: str) -> tuple[IterVar, ...]:
    """The reduce axes of `body`. Raises an error if a reduction is not the whole body or an axis belongs to another formula."""
    reduction = check_outputs(body, where)
    reduce_axis = reduction.axis if reduction is not None else ()
    own = {a.var: None for a in axis}  # a dict: the message lists them in order
    for a in reduce_axis:
        _check_nodes([a.dom], own, where)
    own |= {a.var: None for a in reduce_axis}
    if reduction is None:
        _check_nodes(list(body), own, where)
    else:
        _check_nodes([*reduction.source, reduction.condition], own, where)
        combiner = reduction.combiner
        _check_nodes([*combiner.result, *combiner.identity_element], own, where)
        _check_nodes(list(reduction.init), {a.var: None for a in axis}, where)
    return Array(reduce_axis)


def check_outputs(body: tuple[Expr, ...], where: str) -> Reduce | None:
    """The Reduce node of which all outputs are values; None if the body is not a reduction. Refuses a mixture."""
    first = next((e for e in body if isinstance(e, Reduce)), None)
    if first is None:
        return None
    for position, expr in enumerate(body):
        if not isinstance(expr, Reduce):
            raise ExpressionError(f"{where}: output {position} is not a reduction, another output is",
                                  hint="write two computes: one for the reduction, one for the other value")
        same = expr.combiner is first.combiner and expr.axis == first.axis and expr.condition is first.condition \
            and len(expr.source) == len(first.source) and all(a is b for a, b in zip(expr.source, first.source))
        if not same:
            raise ExpressionError(f"{where}: the outputs are different reductions",
                                  hint="write one compute for each, or reduce a tuple with te.comm_reducer")
    if [expr.value_index for expr in body if isinstance(expr, Reduce)] != list(range(len(first.source))):
        raise ExpressionError(f"{where}: the reduction has {len(first.source)} values and the body takes only some of them",
                              hint="return the whole tuple and use the tensor that is needed: T = te.compute(...)[0]")
    return first


def _check_nodes(roots: list[Any], own: dict[Var, None], where: str) -> None:
    foreign: Var | None = None
    for root in roots:
        for node in post_order(root):
            if isinstance(node, Reduce):
                raise nested_reduction(where)  # first: the axes of a misplaced reduction look foreign too
            if isinstance(node, Call):
                check_call(node, where)
            if isinstance(node, Var) and foreign is None and node not in own and is_axis_variable(node):
                foreign = node
    if foreign is not None:
        raise _foreign(foreign, own, where)


def _foreign(var: Var, own: dict[Var, None], where: str) -> ExpressionError:
    names = ", ".join(v.name for v in own) or "none"
    return ExpressionError(
        f"{where}: the formula uses {var.name}, an axis that does not belong to it (its axes: {names})",
        hint=f"use the parameters of this function; if {var.name} is a reduce axis, reduce over it: te.sum(..., "
             f"axis={var.name}); a whole tensor inside a formula is read by element: T[i]")
