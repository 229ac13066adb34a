"""Sums of products by Einstein's convention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, differ, opening, shown
from topi.kinds import EinsumOp

ELLIPSIS = "..."


@checked
def einsum(subscripts: str, *operand: te.Tensor) -> te.Tensor:
    """The sum over all letters that are not in the result of the product of the operands. Same as numpy.einsum.

    subscripts: "ij,jk->ik", one letter for each dimension, in each operand; without "->" the result has the letters that occur
    once, in alphabetical order. "..." stands for further leading or inner dimensions, which broadcast. A letter twice in one
    operand is its diagonal. The dtype is that of the product; float16 and bfloat16 are summed in float32.

    Raises ArgumentError for subscripts that are malformed, ShapeError for operands that do not fit them.
    """
    tensors = list(operand[0]) if len(operand) == 1 and isinstance(operand[0], (list, tuple)) else list(operand)
    inputs, result = parsed(subscripts, tensors)
    extents = extents_of(subscripts, inputs, tensors)
    unknown = [label for label in result if label not in extents]
    if unknown or len(set(result)) != len(result):
        raise ArgumentError(f"einsum {subscripts!r}: the result names {', '.join(unknown or result)}",
                            hint="each letter of the result stands in an operand, and once in the result")
    summed = [label for label in extents if label not in result]
    loops = {label: te.reduce_axis((0, extents[label]), name=f"k{at}") for at, label in enumerate(summed)}

    def product(i: Sequence[Any]) -> Any:
        at = {**dict(zip(result, i)), **loops}
        terms = [tensor(*[0 if as_int(extent) == 1 and as_int(extents[label]) != 1 else at[label]
                          for extent, label in zip(tensor.shape, labels)]) for tensor, labels in zip(tensors, inputs)]
        value: Expr = terms[0]
        for term in terms[1:]:
            value = value * term
        return value

    return _summed(product, [extents[label] for label in result], list(loops.values()), EinsumOp(subscripts, tuple(tensors)))


def _summed(product: Any, shape: Sequence[Any], loops: Sequence[Any], info: EinsumOp) -> te.Tensor:
    """The compute of the product summed over `loops`; of narrow floats in float32, rounded once."""
    dtype = product([0] * len(shape)).dtype
    narrow = bool(loops) and dtype.is_float and dtype.bits == 16

    def formula(*i: Any) -> Any:
        term = product(i)
        return te.sum(term.astype("float32") if narrow else term, axis=loops) if loops else term

    name = "T_einsum_wide" if narrow else "T_einsum"
    output: te.Tensor = te.compute(shape, formula, name=name, tag="einsum", info=info, axes="ax")
    return te.map_elements("cast", lambda e: e.astype(dtype), output, name="T_einsum") if narrow else output


def parsed(subscripts: str, tensors: Sequence[te.Tensor]) -> tuple[list[list[str]], list[str]]:
    """The labels of the dimensions of each operand and of the result; those of an ellipsis: "...1", "...0"."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if not tensors or len(parts) != len(tensors):
        raise ArgumentError(f"einsum {subscripts!r}: {len(parts)} operands are written and {len(tensors)} given")
    inputs = [_labels(part, tensor, subscripts) for part, tensor in zip(parts, tensors)]
    extra = max((sum(label.startswith(ELLIPSIS) for label in labels) for labels in inputs), default=0)
    dots = [f"{ELLIPSIS}{place}" for place in reversed(range(extra))]
    if arrow:
        before, found, after = right.partition(ELLIPSIS)
        return inputs, [*before, *(dots if found else []), *after]
    letters = [label for labels in inputs for label in labels if not label.startswith(ELLIPSIS)]
    return inputs, [*dots, *sorted(letter for letter in set(letters) if letters.count(letter) == 1)]


def _labels(part: str, tensor: te.Tensor, subscripts: str) -> list[str]:
    opening(f"einsum {subscripts!r}", tensor)
    before, dots, after = part.partition(ELLIPSIS)
    extra = tensor.ndim - len(before) - len(after)
    if not (before + after).isalpha() and before + after:
        raise ArgumentError(f"einsum {subscripts!r}: {part!r} has characters that are not letters",
                            hint="one letter for each dimension")
    if extra < 0 or (extra and not dots):
        raise ShapeError(f"einsum {subscripts!r}: {part!r} has {len(before + after)} letters and {tensor.name} the shape "
                         f"{shown(tensor.shape)}", hint="one letter for each dimension, or ... for the others")
    return [*before, *[f"{ELLIPSIS}{place}" for place in reversed(range(extra))], *after]


def extents_of(subscripts: str, inputs: Sequence[Sequence[str]], tensors: Sequence[te.Tensor]) -> dict[str, Any]:
    """The extent of each label, in the order of their first occurrence; one of 1 is repeated."""
    extents: dict[str, Any] = {}
    for labels, tensor in zip(inputs, tensors):
        for label, extent in zip(labels, tensor.shape):
            known = extents.get(label)
            if known is not None and as_int(known) != 1 and as_int(extent) != 1 and differ(known, extent):
                raise ShapeError(f"einsum {subscripts!r}: {label!r} is {known!r} and in {tensor.name} of the shape "
                                 f"{shown(tensor.shape)} it is {extent!r}")
            if known is None or as_int(known) == 1:
                extents[label] = extent
    return extents
