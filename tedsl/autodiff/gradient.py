"""`te.gradient`: reverse-mode differentiation of a graph of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.autodiff.heads import identity, results_of, zeros
from tedsl.autodiff.rules import ends_with
from tedsl.autodiff.walk import walk
from tedsl.errors import ArgumentTypeError, DTypeError, ShapeError, entry
from tedsl.ir.script import shown
from tedsl.lang.tensor import Tensor


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
    prefix = head.shape[:head.ndim - output.ndim]
    found = walk({output: head}, wanted, prefix)
    names = [f"{tensor.op.name}.grad" for tensor in wanted]
    return results_of([zeros((*prefix, *tensor.shape), tensor, name) if total is None else total
                       for tensor, total, name in zip(wanted, found, names)], *names)


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
    if not ends_with(head.shape, output.shape):
        raise ShapeError(f"gradient: the head {head.name} has shape {shown(head.shape)} and the output {output.name} "
                         f"{shown(output.shape)}",
                         hint="the head has the shape of the output, after leading dimensions if there are several heads")
