"""`te.gradient`: reverse-mode differentiation of a graph of operations.

Goes through the operations from the output down. The derivative by a tensor is the sum of what its readers add; an operation
passes its derivative to what it reads by the first of these that it has: a rule that the program registered, the adjoint of
its record, the vector-Jacobian product of its formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.autodiff.heads import identity, zeros
from tedsl.autodiff.records import record_of, strictly_inside
from tedsl.autodiff.registry import Rule, rule_of
from tedsl.autodiff.vjp import Heads, vjp
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, TedslError, entry
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.script import shown
from tedsl.lang.declare import define
from tedsl.lang.elementwise import ElementwiseOp
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.tensor import Tensor, load

Adjoints = Mapping[Tensor, Sequence[Tensor]]


@entry
def gradient(output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None) -> list[Tensor]:
    """The derivatives of sum(head * output) by each of `inputs`: tensors to schedule like any other, always a list.

    head: of the shape of the output, perhaps after leading dimensions, which the results have too. Without it the results are
    the Jacobians, of the shape of the output followed by that of the input. An input on which the output does not depend has
    zeros. inputs: placeholders, or tensors between them and the output.
    """
    wanted = _checked(output, inputs)
    if head is None:
        head = identity(output)
    _check_head(output, head)
    return _Walk(output, wanted, head).results()


class _Walk:
    """One reverse walk over the graph below `output`."""

    def __init__(self, output: Tensor, inputs: Sequence[Tensor], head: Tensor) -> None:
        self.inputs = inputs
        self.prefix = head.shape[:head.ndim - output.ndim]
        self.order = producers_first([output.op])
        self.depend = _depending(self.order, inputs)
        self.parts: dict[Tensor, list[Tensor]] = {output: [head]}
        self.sums: dict[Tensor, Tensor] = {}

    def results(self) -> list[Tensor]:
        for op in reversed(self.order):
            heads = {number: total for number in range(op.num_outputs)
                     if op.output(number) in self.depend and (total := self.total(op.output(number))) is not None}
            if heads and any(tensor in self.depend for tensor in op.input_tensors):
                for tensor, parts in self.passed_down(op, heads).items():
                    self.parts.setdefault(tensor, []).extend(parts)
        found = [self.total(tensor) for tensor in self.inputs]
        return [zeros((*self.prefix, *tensor.shape), tensor, f"{tensor.op.name}.grad") if total is None else total
                for tensor, total in zip(self.inputs, found)]

    def total(self, tensor: Tensor) -> Tensor | None:
        """The derivative by `tensor`, all of whose readers have been passed; None where nothing is added."""
        parts = self.parts.get(tensor)
        if parts is None:
            return None
        if tensor not in self.sums:
            self.sums[tensor] = parts[0] if len(parts) == 1 else _sum(parts, f"{tensor.op.name}.grad")
        return self.sums[tensor]

    def passed_down(self, op: Operation, heads: Heads) -> Adjoints:
        """What `op` adds to the derivatives by the tensors that it reads, or that its operator was called with."""
        rule = rule_of(op)
        if rule is not None:
            return self.by_rule(op, rule, heads)
        by_record = self.by_record(op, heads)
        if by_record is not None:
            return by_record
        if isinstance(op, ComputeOp):
            return vjp(op, heads, [tensor for tensor in op.input_tensors if tensor in self.depend])
        raise _without_derivative(op)

    def by_record(self, op: Operation, heads: Heads) -> Adjoints | None:
        known = record_of(op)
        if known is None or self.prefix or op.num_outputs > 1:
            return None
        operands = known.operands(op)
        if not strictly_inside(op, operands).isdisjoint([tensor.op for tensor in self.inputs]):
            return None
        adjoints = known.adjoint(op, heads[0], [tensor for tensor in dict.fromkeys(operands) if tensor in self.depend])
        return None if adjoints is None else {tensor: [adjoint] for tensor, adjoint in adjoints.items()}

    def by_rule(self, op: Operation, rule: Rule, heads: Heads) -> Adjoints:
        inputs = [tensor for tensor in op.input_tensors if tensor in self.depend]
        given = [heads[number] if number in heads else zeros((*self.prefix, *op.shape_of(number)), op.output(number), op.name)
                 for number in range(op.num_outputs)]
        made = rule(op, given[0] if op.num_outputs == 1 else given, inputs)
        found = dict(made) if isinstance(made, Mapping) else dict(zip(inputs, made)) \
            if isinstance(made, (list, tuple)) and len(made) == len(inputs) else None
        if found is None:
            raise ArgumentTypeError(f"gradient: the rule of {op.name} returned {shown(made)}, not a derivative for each of "
                                    f"{', '.join(tensor.name for tensor in inputs)}",
                                    hint="return a list of tensors in the order of the inputs; None for zero")
        for tensor, adjoint in found.items():
            if adjoint is not None:
                _check_derivative(op, tensor, adjoint, (*self.prefix, *tensor.shape))
        return {tensor: [adjoint] for tensor, adjoint in found.items() if adjoint is not None}


def _depending(order: Sequence[Operation], inputs: Sequence[Tensor]) -> set[Tensor]:
    """The inputs, and the float tensors that are computed from them by way of floats."""
    found = set(inputs)
    for op in order:
        if any(tensor in found for tensor in op.input_tensors):
            found |= {tensor for number in range(op.num_outputs) if (tensor := op.output(number)).dtype.is_float}
    return found


def _sum(parts: Sequence[Tensor], name: str) -> Tensor:
    """The elementwise sum of tensors of one shape."""
    def element(*axes: Expr) -> Expr:
        total: Expr = load(parts[0], axes)
        for part in parts[1:]:
            total = build.add(total, load(part, axes))
        return total

    names = [f"j{d}" for d in range(parts[0].ndim)]
    return Tensor(define(parts[0].shape, element, names, name, tag="broadcast", info=ElementwiseOp("add", broadcasts=True)))


# --- checks -----------------------------------------------------------------------------------------------------------

def _checked(output: Any, inputs: Any) -> list[Tensor]:
    """The list of inputs; refuses what is not a tensor of floats."""
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs) if isinstance(inputs, (list, tuple)) else None
    if not isinstance(output, Tensor) or wanted is None or not all(isinstance(tensor, Tensor) for tensor in wanted):
        raise ArgumentTypeError(f"gradient takes an output tensor and a list of input tensors, got {shown(output)} and "
                                f"{shown(inputs)}", hint="te.gradient(C, [A, B])")
    if not output.dtype.is_float:
        raise DTypeError(f"gradient: the output {output.name} is of dtype {output.dtype}, and only floats have derivatives",
                         hint="differentiate the float tensor that it is computed from")
    for tensor in wanted:
        if not tensor.dtype.is_float:
            raise DTypeError(f"gradient: the input {tensor.name} is of dtype {tensor.dtype}, and only floats have derivatives",
                             hint="leave it out; indices and conditions count as constants")
    return wanted


def _check_head(output: Tensor, head: Any) -> None:
    if not isinstance(head, Tensor):
        raise ArgumentTypeError(f"gradient: the head is {shown(head)}, not a tensor",
                                hint=f"declare te.placeholder({output.name}.shape, dtype); without it the Jacobian is made")
    if head.dtype is not output.dtype:
        raise DTypeError(f"gradient: the head {head.name} is {head.dtype} and the output {output.name} {output.dtype}",
                         hint=f"cast it: .astype({str(output.dtype)!r})")
    if not _ends_with(head.shape, output.shape):
        raise ShapeError(f"gradient: the head {head.name} has shape {shown(head.shape)} and the output {output.name} "
                         f"{shown(output.shape)}",
                         hint="the head has the shape of the output, after leading dimensions if there are several heads")


def _ends_with(shape: Sequence[Expr], end: Sequence[Expr]) -> bool:
    analyzer = Analyzer()
    return len(shape) >= len(end) and all(analyzer.can_prove(build.equal(a, b))
                                          for a, b in zip(shape[len(shape) - len(end):], end))


def _check_derivative(op: Operation, tensor: Tensor, adjoint: Any, shape: Sequence[Expr]) -> None:
    if not isinstance(adjoint, Tensor) or adjoint.ndim != len(shape) or not _ends_with(adjoint.shape, shape):
        raise ShapeError(f"gradient: the rule of {op.name} gave {shown(adjoint)} as the derivative by {tensor.name}, which has "
                         f"shape {shown(tuple(shape))}",
                         hint="a derivative has the leading dimensions of the head, then the shape of the tensor")
    if adjoint.dtype is not tensor.dtype:
        raise DTypeError(f"gradient: the rule of {op.name} gave a derivative of {adjoint.dtype} by {tensor.name}, which is "
                         f"{tensor.dtype}", hint=f"cast it: .astype({str(tensor.dtype)!r})")


def _without_derivative(op: Operation) -> TedslError:
    kind = type(op).__name__.removesuffix("Op").lower()
    return TedslError(f"gradient: {op.name} is a te.{kind}, whose statements have no derivative",
                      hint="give it one: te.register_gradient(tag, function) for operations made with that tag")
