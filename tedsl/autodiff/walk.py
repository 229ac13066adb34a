"""The reverse walk through a graph of operations.

The derivative by a tensor is the sum of what its readers add; an operation passes its derivative to what it reads by the first
of these that it has: a rule that the program registered, the adjoint of its record, the vector-Jacobian product of its formula.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tedsl.autodiff.records import formulas_of, record_of, strictly_inside
from tedsl.autodiff.registry import Rule, rule_of
from tedsl.autodiff.rules import passed_by_rule
from tedsl.autodiff.scans import check_not_inside, passed_by_scan
from tedsl.autodiff.scatter import ScatterAddOp, gathered
from tedsl.autodiff.vjp import Heads, vjp
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.lang.declare import define
from tedsl.lang.elementwise import ElementwiseOp
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor, load

Adjoints = Mapping[Tensor, Sequence[Tensor]]
_BUILT_IN: dict[type, Rule] = {ScatterAddOp: gathered}


def walk(heads: Mapping[Tensor, Tensor], inputs: Sequence[Tensor], prefix: Sequence[Expr],
         within: Collection[Operation] | None = None) -> list[Tensor | None]:
    """The derivatives of the sum of head * tensor over `heads` by each of `inputs`; None where there is no way to it.

    prefix: the leading dimensions of the heads. within: the operations to go through, all others are constants.
    """
    return _Walk(heads, inputs, prefix, within).results()


class _Walk:
    """One reverse walk: what is passed to each tensor, and the sums of that."""

    def __init__(self, heads: Mapping[Tensor, Tensor], inputs: Sequence[Tensor], prefix: Sequence[Expr],
                 within: Collection[Operation] | None) -> None:
        self.inputs, self.prefix = inputs, prefix
        self.order = [op for op in producers_first(dict.fromkeys([tensor.op for tensor in heads]))
                      if within is None or op in within]
        self.depend = depending(self.order, inputs)
        self.parts: dict[Tensor, list[Tensor]] = {tensor: [head] for tensor, head in heads.items()}
        self.sums: dict[Tensor, Tensor] = {}

    def results(self) -> list[Tensor | None]:
        for op in reversed(self.order):
            heads = {number: total for number in range(op.num_outputs)
                     if op.output(number) in self.depend and (total := self.total(op.output(number))) is not None}
            if heads and any(tensor in self.depend for tensor in op.input_tensors):
                for tensor, parts in self.passed_down(op, heads).items():
                    self.parts.setdefault(tensor, []).extend(parts)
        return [self.total(tensor) for tensor in self.inputs]

    def total(self, tensor: Tensor) -> Tensor | None:
        """The derivative by `tensor`, all of whose readers have been passed; None where nothing is added."""
        parts = self.parts.get(tensor)
        if parts is None:
            return None
        if tensor not in self.sums:
            self.sums[tensor] = parts[0] if len(parts) == 1 else sum_of(parts, f"{tensor.op.name}.grad")
        return self.sums[tensor]

    def passed_down(self, op: Operation, heads: Heads) -> Adjoints:
        """What `op` adds to the derivatives by the tensors that it reads, or that its operator was called with."""
        rule = rule_of(op) or _BUILT_IN.get(type(getattr(op, "info", None)))
        inputs = [tensor for tensor in op.input_tensors if tensor in self.depend]
        if rule is not None:
            return passed_by_rule(op, rule, heads, self.prefix, inputs)
        formulas = formulas_of(op)
        if formulas is not None:
            found = walk({formulas[number]: head for number, head in heads.items()}, inputs, self.prefix)
            return {tensor: [part] for tensor, part in zip(inputs, found) if part is not None}
        by_record = self.by_record(op, heads)
        if by_record is not None:
            return by_record
        if isinstance(op, ComputeOp):
            return vjp(op, heads, inputs)
        if isinstance(op, ScanOp):
            check_not_inside(op, self.inputs)
            return passed_by_scan(op, heads, self.prefix, self.depend, walk)
        raise without_derivative(op, self.prefix)

    def by_record(self, op: Operation, heads: Heads) -> Adjoints | None:
        known = record_of(op)
        if known is None or heads.keys() != {0} or (self.prefix and isinstance(op, ComputeOp)):  # a formula has its own
            return None
        operands = known.operands(op)
        if not strictly_inside(op, operands).isdisjoint([tensor.op for tensor in self.inputs]):
            return None
        inputs = [tensor for tensor in dict.fromkeys(operands) if tensor in self.depend]
        adjoint = getattr(known, "adjoint_of_heads", None) if self.prefix else known.adjoint
        adjoints = None if adjoint is None else adjoint(op, heads[0], inputs)
        return None if adjoints is None else {tensor: [adjoint] for tensor, adjoint in adjoints.items()}


def depending(order: Sequence[Operation], inputs: Sequence[Tensor]) -> set[Tensor]:
    """The inputs, and the float tensors that are computed from them by way of floats."""
    found = set(inputs)
    for op in order:
        if any(tensor in found for tensor in op.input_tensors):
            found |= {tensor for number in range(op.num_outputs) if (tensor := op.output(number)).dtype.is_float}
    return found


def sum_of(parts: Sequence[Tensor], name: str) -> Tensor:
    """The elementwise sum of tensors of one shape."""
    def element(*axes: Expr) -> Expr:
        total: Expr = load(parts[0], axes)
        for part in parts[1:]:
            total = build.add(total, load(part, axes))
        return total

    names = [f"j{d}" for d in range(parts[0].ndim)]
    return Tensor(define(parts[0].shape, element, names, name, tag="broadcast", info=ElementwiseOp("add", broadcasts=True)))


def without_derivative(op: Operation, prefix: Sequence[Expr] = ()) -> TedslError:
    kind = type(op).__name__.removesuffix("Op").lower()
    if prefix and record_of(op) is not None:
        return TedslError(f"gradient: {op.name} is a te.{kind}, whose derivative is known for heads of the shape of the "
                          "output alone",
                          hint="give such a head; a Jacobian is made by one head after the other")
    return TedslError(f"gradient: {op.name} is a te.{kind}, whose statements have no derivative",
                      hint="give it one: te.register_gradient(tag, function) for operations made with that tag")
