"""Adjoints of products of matrices and of einsums, which are products again."""

from __future__ import annotations

import string

from tedsl import te
from topi.adjoints.parts import Part, Parts, in_dtype
from topi.einsum import einsum, parsed
from topi.extents import as_int, differ
from topi.injective import injective
from topi.kinds import EinsumOp, MatmulOp
from topi.nn.dense import batch_matmul, matmul
from topi.reduction import sum as sum_of


def of_matmul(record: MatmulOp, op: te.Operation, head: te.Tensor) -> Parts:
    """c = a b:  the adjoint of a is head b^T, that of b is a^T head; stored transposed if the operand is."""
    a, b = (in_dtype(operand, head.dtype) for operand in (record.a, record.b))

    def product(x: te.Tensor, y: te.Tensor, transpose_x: bool, transpose_y: bool) -> te.Tensor:
        if record.batched:
            return batch_matmul(x, y, transpose_a=transpose_x, transpose_b=transpose_y)
        return matmul(x, y, transpose_a=transpose_x, transpose_b=transpose_y)

    def of_a() -> te.Tensor:
        if record.transpose_a:
            return _of_one_batch(product(b, head, record.transpose_b, True), a)
        return _of_one_batch(product(head, b, False, not record.transpose_b), a)

    def of_b() -> te.Tensor:
        if record.transpose_b:
            return _of_one_batch(product(head, a, True, record.transpose_a), b)
        return _of_one_batch(product(a, head, not record.transpose_a, False), b)

    return [(record.a, of_a), (record.b, of_b)]


def _of_one_batch(products: te.Tensor, operand: te.Tensor) -> te.Tensor:
    """The sum over the batch, where `operand` has a batch of 1 that all of the other use."""
    if operand.ndim < 3 or as_int(operand.shape[0]) != 1 or as_int(products.shape[0]) == 1:
        return products
    return sum_of(products, 0, keepdims=True)


def of_einsum(record: EinsumOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The einsum of the head and the other operands; what an operand alone is summed over repeats it.

    None for diagonals, for dimensions of 1 that are repeated, and for more labels than there are letters.
    """
    inputs, result = parsed(record.subscripts, record.tensors)
    labels = list(dict.fromkeys([*result, *[label for one in inputs for label in one]]))
    extents = {label: extent for one, tensor in zip([*inputs, result], [*record.tensors, op.output(0)])
               for label, extent in zip(one, tensor.shape)}
    repeated = any(differ(extent, extents[label]) for one, tensor in zip(inputs, record.tensors)
                   for label, extent in zip(one, tensor.shape))
    if repeated or any(len(set(one)) < len(one) for one in inputs) or len(labels) > len(string.ascii_letters):
        return None
    letter = dict(zip(labels, string.ascii_letters))

    def written(of: list[str]) -> str:
        return "".join(letter[label] for label in of)

    def part_of(place: int) -> Part:
        operand, own = record.tensors[place], inputs[place]
        others = [(tensor, one) for at, (tensor, one) in enumerate(zip(record.tensors, inputs)) if at != place]
        there = {*result, *[label for _, one in others for label in one]}
        shared = [label for label in own if label in there]

        def made() -> te.Tensor:
            subscripts = ",".join([written(result), *[written(one) for _, one in others]]) + f"->{written(shared)}"
            found: te.Tensor = einsum(subscripts, head, *[in_dtype(tensor, head.dtype) for tensor, _ in others])
            if len(shared) == len(own):
                return found
            kept = [own.index(label) for label in shared]
            return injective("broadcast_to", operand.shape, lambda *i: found(*[i[d] for d in kept]))

        return operand, made

    return [part_of(place) for place in range(len(inputs))]
