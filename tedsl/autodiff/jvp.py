"""`te.jvp`: forward-mode differentiation, the change of an output where its inputs change along given directions.

Goes through the operations from the inputs up. The tangent of a formula is a formula over the same axes: what each element that
it reads changes, times the partial derivatives of which reverse mode makes use too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl.autodiff.heads import results_of, zeros
from tedsl.autodiff.partials import partials
from tedsl.autodiff.records import formulas_of, record_of
from tedsl.autodiff.reductions import passed_to_elements
from tedsl.autodiff.registry import rule_of
from tedsl.autodiff.rules import ends_with, passed_by_rule
from tedsl.autodiff.scans import Steps
from tedsl.autodiff.scatter import ScatterAddOp, scatter_add
from tedsl.autodiff.sweep import guarded, without_lets
from tedsl.autodiff.terms import reduced
from tedsl.autodiff.vjp import plain, stored_in
from tedsl.autodiff.walk import depending, sum_of, walk, without_derivative
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, entry
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, ProducerLoad, Reduce, Select, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.declare import define, placeholder
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.reductions import sum as sum_over
from tedsl.lang.scan.operation import ScanOp, scan
from tedsl.lang.tensor import Tensor, load

Tangents = Mapping[Tensor, Tensor]


@entry
def jvp(output: Tensor, inputs: Tensor | Sequence[Tensor], tangents: Tensor | Sequence[Tensor]) -> Tensor:
    """The derivative of `output` along a direction: sum over `inputs` of its Jacobian times the tangent of that input.

    tangents: for each input a tensor of its shape and dtype. The result has the shape of the output, and zeros where the output
    depends on none of the inputs.
    """
    given = _checked(output, inputs, tangents)
    found = _tangents(producers_first([output.op]), given).get(output)
    name = f"{output.op.name}.tangent"
    return zeros(output.shape, output, name) if found is None else results_of([found], name)[0]


def _tangents(order: Sequence[Operation], given: Tangents) -> dict[Tensor, Tensor]:
    """The tangents of all outputs of the operations `order` that depend on the tensors with a given tangent."""
    depend = depending(order, list(given))
    found = dict(given)
    for op in order:
        wanted = [output for output in _outputs(op) if output in depend and output not in given]
        if wanted and any(tensor in found for tensor in op.input_tensors):
            made = _of_operation(op, {tensor: found[tensor] for tensor in op.input_tensors if tensor in found}, found)
            found.update({output: tangent for output, tangent in zip(_outputs(op), made)
                          if tangent is not None and output in wanted})
    return found


def _outputs(op: Operation) -> list[Tensor]:
    return [op.output(number) for number in range(op.num_outputs)]


def _of_operation(op: Operation, read: Tangents, found: Tangents) -> Sequence[Tensor | None]:
    if rule_of(op) is not None:
        return _by_rule(op, read)
    if isinstance(op, ComputeOp):
        return _of_formula(op, read)
    if isinstance(op, ScanOp):
        return _of_scan(op, found)
    formulas = formulas_of(op)
    if formulas is not None:
        tangents = _tangents(producers_first(dict.fromkeys([tensor.op for tensor in formulas])), read)
        return [tangents.get(tensor) for tensor in formulas]
    info = getattr(op, "info", None)
    if isinstance(info, ScatterAddOp):
        return [scatter_add(replace(info, values=read[info.values]), op.output(0).shape[info.prefix:], f"{op.name}.tangent")]
    return [_by_record(op, found)]


def _by_rule(op: Operation, read: Tangents) -> list[Tensor | None]:
    """By the rule for the other direction, which is linear in its head: transposed once more."""
    rule = rule_of(op)
    assert rule is not None
    made: list[Tensor | None] = []
    for number, output in enumerate(_outputs(op)):
        head = placeholder(output.shape, output.dtype, f"{op.name}.head")
        adjoints = passed_by_rule(op, rule, {number: head}, (), list(read))
        made.append(_transposed(op, head, [(tensor, part) for tensor, parts in adjoints.items() for part in parts], read))
    return made


def _by_record(op: Operation, found: Tangents) -> Tensor | None:
    """By the record of an operator whose statements have no formula: its adjoint, transposed once more."""
    known = record_of(op)
    if known is None:
        raise without_derivative(op)
    head = placeholder(op.shape_of(0), op.dtype_of(0), f"{op.name}.head")
    adjoints = known.adjoint(op, head, [tensor for tensor in dict.fromkeys(known.operands(op)) if tensor in found])
    if adjoints is None:
        raise without_derivative(op)
    return _transposed(op, head, adjoints.items(), found)


def _transposed(op: Operation, head: Tensor, adjoints: Iterable[tuple[Tensor, Tensor]], tangents: Tangents) -> Tensor | None:
    """The tangent of `op` from the adjoints of what it reads, which are linear in `head`."""
    parts = [part for tensor, adjoint in adjoints if (part := walk({adjoint: tangents[tensor]}, [head], ())[0]) is not None]
    return sum_of(parts, f"{op.name}.tangent") if parts else None


# --- formulas ---------------------------------------------------------------------------------------------------------

def _of_formula(op: ComputeOp, read: Tangents) -> list[Tensor | None]:
    return [_of_output(op, number, read) if op.dtype_of(number).is_float else None for number in range(op.num_outputs)]


def _of_output(op: ComputeOp, number: int, read: Tangents) -> Tensor | None:
    own = [axis.var for axis in op.axis]
    if op.reduction is None:
        body = without_lets(op.body[number])
        value = _tangent(body, read, {body: load(stored_in(op, number), tuple(own))})
        return None if value is None else _defined(op, lambda at: substitute(value, at))
    return _of_reduction(op, plain(op.reduction), number, read)


def _of_reduction(op: ComputeOp, reduction: Reduce, number: int, read: Tangents) -> Tensor | None:
    """The sum of what each element changes, begun with what the start changes."""
    one = build.const(1.0, op.dtype_of(number))
    elements, starts = passed_to_elements(op, reduction, {number: ((), one)})
    terms, begins = ([guarded(path, change) for root, path, _ in passed if (change := _tangent(root, read, {})) is not None]
                     for passed in (elements, starts))
    if not terms and not begins:
        return None

    def element(at: dict[Var, Expr]) -> Expr:
        if not terms:
            return substitute(_total(begins), at)
        axes = [reduced(axis, at) for axis in op.reduce_axis]
        inner = {**at, **{axis.var: new.var for axis, new in zip(op.reduce_axis, axes)}}
        total: Expr = sum_over(substitute(_total(terms), inner), axis=axes,
                               init=substitute(_total(begins), at) if begins else None)
        return total

    return _defined(op, element)


def _total(values: Sequence[Expr]) -> Expr:
    total = values[0]
    for value in values[1:]:
        total = build.add(total, value)
    return total


def _defined(op: ComputeOp, element: Any) -> Tensor:
    own = [axis.var for axis in op.axis]
    made = define(op.shape, lambda *axes: element(dict(zip(own, axes))), [var.name for var in own], f"{op.name}.tangent")
    return Tensor(made)


def _tangent(root: Expr, read: Tangents, stored: Mapping[Node, Expr]) -> Expr | None:
    """The change of `root` where the tensors that it reads change by their tangents; None where it does not depend on them."""
    found: dict[Node, Expr] = {}
    for node in post_order(root):
        if isinstance(node, Expr) and node.dtype.is_float:
            value = load(read[node.producer], node.indices) if isinstance(node, ProducerLoad) and node.producer in read else \
                _of_node(node, found, stored) if any(child in found for child in node.child_nodes()) else None
            if value is not None:
                found[node] = value
    return found.get(root)


def _of_node(node: Any, found: Mapping[Node, Expr], stored: Mapping[Node, Expr]) -> Expr | None:
    if isinstance(node, Select):
        return build.select(node.condition, *[found.get(side, build.const(0.0, node.dtype))
                                              for side in (node.true_value, node.false_value)])
    if isinstance(node, Call) and node.op is IF_THEN_ELSE:
        return build.if_then_else(node.args[0], *[found.get(side, build.const(0.0, node.dtype)) for side in node.args[1:]])
    changes = [times(build.cast(node.dtype, found[child])) for child, times in partials(node, stored.get(node, node))
               if child in found]
    return _total(changes) if changes else None


# --- recurrences ------------------------------------------------------------------------------------------------------

def _of_scan(op: ScanOp, found: Tangents) -> Sequence[Tensor | None]:
    """A scan whose step is the tangent of the step, over the finished rows."""
    steps = Steps(op, ())
    name = f"{op.name}.tangent"
    states = {number: placeholder(steps.states[number].shape, steps.states[number].dtype, f"{name}.state")
              for number in steps.floats}
    given = {steps.states[number]: state for number, state in states.items()}
    given.update({tensor: found[tensor] for tensor in steps.read if tensor in found})
    order = [one for one in producers_first([tensor.op for tensor in steps.updates]) if one in steps.ops]
    made = _tangents(order, given)
    firsts = [found[op.init[n]] if op.init[n] in found else zeros(op.init[n].shape, op.init[n], f"{name}.init")
              for n in steps.floats]
    updates = [_as_formula(made.get(steps.updates[n]), steps.updates[n], f"{name}.update") for n in steps.floats]
    rows: Any = scan(firsts, updates, list(states.values()), [], name)
    by_number = dict(zip(steps.floats, rows if isinstance(rows, list) else [rows]))
    return [by_number.get(number) for number in range(op.num_outputs)]


def _as_formula(tangent: Tensor | None, update: Tensor, name: str) -> Tensor:
    """A tangent as a formula of its own, so that no two states have the same update."""
    if tangent is None:
        return zeros(update.shape, update, name)
    names = [f"i{d}" for d in range(update.ndim)]
    return Tensor(define(update.shape, lambda *i: load(tangent, i), names, name))


# --- checks -----------------------------------------------------------------------------------------------------------

def _checked(output: Any, inputs: Any, tangents: Any) -> dict[Tensor, Tensor]:
    """The tangent of each input; refuses what does not fit."""
    wanted, given = ([one] if isinstance(one, Tensor) else one for one in (inputs, tangents))
    if not isinstance(output, Tensor) or not _tensors(wanted) or not _tensors(given) or len(wanted) != len(given):
        raise ArgumentTypeError(f"jvp takes an output tensor, a list of inputs and a tangent for each, got {shown(output)}, "
                                f"{shown(inputs)} and {shown(tangents)}", hint="te.jvp(C, [A, B], [dA, dB])")
    for tensor, tangent in zip(wanted, given):
        if not tensor.dtype.is_float or tangent.dtype is not tensor.dtype:
            raise DTypeError(f"jvp: the input {tensor.name} is {tensor.dtype} and its tangent {tangent.name} {tangent.dtype}",
                             hint="both are of one dtype of floats")
        if tangent.ndim != tensor.ndim or not ends_with(tangent.shape, tensor.shape):
            raise ShapeError(f"jvp: the input {tensor.name} has shape {shown(tensor.shape)} and its tangent {tangent.name} "
                             f"{shown(tangent.shape)}", hint="a tangent has the shape of its input")
    if not output.dtype.is_float:
        raise DTypeError(f"jvp: the output {output.name} is of dtype {output.dtype}, and only floats have derivatives",
                         hint="differentiate the float tensor that it is computed from")
    return dict(zip(wanted, given))


def _tensors(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(value, Tensor) for value in values)
