"""What the record of an operator (`op.info`) has if it knows the derivative of the operator, written in operators.

An adjoint that is written as a convolution runs at the speed of a convolution; the same adjoint as a plain sum does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor


class DifferentiableRecord(Protocol):
    """The methods that `gradient` calls. Structural: a record that has them imports nothing from here."""

    def operands(self, op: Operation) -> tuple[Tensor, ...]:
        """The tensors that the operator was called with: the border of its region of the graph (of a convolution data and
        kernel, not the padded data).
        """

    def adjoint(self, op: Operation, head: Tensor, inputs: Sequence[Tensor]) -> Mapping[Tensor, Tensor] | None:
        """For each of `inputs`, which are some of the operands, the derivative of sum(head * op.output(0)).

        None where this case has none in operators: then that of the formula is taken.
        """


def record_of(op: Operation) -> DifferentiableRecord | None:
    """The record of `op` if it has an adjoint; None for other operations."""
    info = getattr(op, "info", None)
    return cast(DifferentiableRecord, info) if hasattr(info, "adjoint") and hasattr(info, "operands") else None


def formulas_of(op: Operation) -> Sequence[Tensor] | None:
    """For each output of an operation that is statements, a tensor of the same values that has a derivative, and reads what the
    operation reads; None where its record has none.
    """
    return cast("Sequence[Tensor] | None", getattr(getattr(op, "info", None), "formulas", None))


def strictly_inside(op: Operation, operands: Sequence[Tensor]) -> set[Operation]:
    """The operations between `op` and its operands, both excluded."""
    border = {tensor.op for tensor in operands}
    found: set[Operation] = set()
    stack = [op]
    while stack:
        for tensor in stack.pop().input_tensors:
            if tensor.op not in border and tensor.op not in found:
                found.add(tensor.op)
                stack.append(tensor.op)
    return found
