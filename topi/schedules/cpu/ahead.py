"""What reductions ask memory for before they read it."""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from tedsl.target.machine import Machine
from topi.schedules.formulas import constant, product
from topi.schedules.kernel import Kernel

_PART = 4  # of the nearest cache, for what is asked for and not read yet


def bytes_ahead(kernel: Kernel) -> int:
    """How many bytes before its use data is asked for, counted over all rows that are read side by side."""
    size: int = kernel.target.machine.l1.size
    return size // _PART


def far_arguments(kernel: Kernel) -> list[te.Tensor]:
    """The arguments that the anchor of `kernel` reads from memory, since half of the last cache does not hold them, or from a
    last cache as far as memory, and for which it has to ask: none where other loops read the same, or for single results of
    vectors that are no whole lines.

    A processor looks ahead by so many instructions that wait. A line that is compared with what is known, place and all, is
    more of them than one that is added up.
    """
    machine, op = kernel.target.machine, kernel.anchor
    if kernel.blocks is not None or kernel.within or (op.num_outputs == 1 and kernel.target.vector_bits < 8 * machine.line):
        return []
    tensors = dict.fromkeys(load.producer for load in kernel.formula(op).loads)
    near = bytes_near(machine)
    return [tensor for tensor in tensors if isinstance(tensor.op, te.PlaceholderOp) and _bytes_of(tensor) > near]


def bytes_near(machine: Machine) -> int:
    """The bytes that need not be asked for: those that the second cache holds, or half of a last one that is not as far as
    memory.
    """
    return machine.l2.size if machine.has_far_l3 else max(machine.l2.size, machine.l3.size // 2)


def adds_up(kernel: Kernel) -> bool:
    """Whether the anchor adds up elements, an instruction for each. Along columns processors look ahead far enough for that;
    the end of each row takes more.
    """
    return kernel.anchor.num_outputs == 1 and isinstance(kernel.anchor.body[0].combiner.result[0], tir.Add)


def _bytes_of(tensor: te.Tensor) -> int:
    """The size of a tensor; 0 if it is not known."""
    elements: int = product([constant(extent) for extent in tensor.shape]) or 0
    return elements * tensor.dtype.bytes


def rows_are_whole(tensor: te.Tensor, extent: int) -> bool:
    """Whether rows of `extent` elements of `tensor` lie behind each other."""
    shape: list[Any] = [constant(dim) for dim in tensor.shape]
    return any(product(shape[at:]) == extent for at in range(len(shape)))
