"""Rules that programs define, applied: what they are given, and checks of what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.autodiff.heads import zeros
from tedsl.autodiff.registry import Rule
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.script import shown
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor


def passed_by_rule(op: Operation, rule: Rule, heads: Mapping[int, Tensor], prefix: Sequence[Expr],
                   inputs: Sequence[Tensor]) -> dict[Tensor, list[Tensor]]:
    """What `op` adds to the derivatives by `inputs`, by the rule of the program."""
    given = [heads[number] if number in heads else zeros((*prefix, *op.shape_of(number)), op.output(number), op.name)
             for number in range(op.num_outputs)]
    made = _called(op, rule, given[0] if op.num_outputs == 1 else given, inputs)
    if isinstance(made, Mapping):
        found = dict(made)
    elif isinstance(made, (list, tuple)) and len(made) == len(inputs):
        found = dict(zip(inputs, made))
    else:
        raise ArgumentTypeError(f"gradient: the rule of {op.name} returned {shown(made)}, not a derivative for each of "
                                f"{', '.join(tensor.name for tensor in inputs)}",
                                hint="return a list of tensors in the order of the inputs; None for zero")
    for tensor, adjoint in found.items():
        if tensor not in op.input_tensors:
            raise ArgumentTypeError(f"gradient: the rule of {op.name} returned a derivative by {shown(tensor)}, which "
                                    f"{op.name} does not read",
                                    hint=f"it reads {', '.join(one.name for one in op.input_tensors)}")
        if adjoint is not None:
            _check_derivative(op, tensor, adjoint, (*prefix, *tensor.shape))
    return {tensor: [adjoint] for tensor, adjoint in found.items() if adjoint is not None}


def _called(op: Operation, rule: Rule, head: Any, inputs: Sequence[Tensor]) -> Any:
    try:
        return rule(op, head, inputs)
    except TypeError as cause:
        try:
            signature(rule).bind(op, head, inputs)
        except TypeError as misfit:
            raise ArgumentTypeError(f"gradient: the rule of {op.name} cannot be called with (op, head, inputs): {misfit}",
                                    hint="write it as def rule(op, head, inputs)") from None
        except ValueError:  # a function of C, whose arguments nobody knows
            pass
        raise cause


def _check_derivative(op: Operation, tensor: Tensor, adjoint: Any, shape: Sequence[Expr]) -> None:
    if not isinstance(adjoint, Tensor) or adjoint.ndim != len(shape) or not ends_with(adjoint.shape, shape):
        raise ShapeError(f"gradient: the rule of {op.name} gave {shown(adjoint)} as the derivative by {tensor.name}, which has "
                         f"shape {shown(tuple(shape))}",
                         hint="a derivative has the leading dimensions of the head, then the shape of the tensor")
    if adjoint.dtype is not tensor.dtype:
        raise DTypeError(f"gradient: the rule of {op.name} gave a derivative of {adjoint.dtype} by {tensor.name}, which is "
                         f"{tensor.dtype}", hint=f"cast it: .astype({str(tensor.dtype)!r})")


def ends_with(shape: Sequence[Expr], end: Sequence[Expr]) -> bool:
    analyzer = Analyzer()
    return len(shape) >= len(end) and all(analyzer.can_prove(build.equal(a, b))
                                          for a, b in zip(shape[len(shape) - len(end):], end))
