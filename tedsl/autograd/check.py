"""Gradients compared with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.autograd.differentiate import grad
from tedsl.autograd.kinds import Array
from tedsl.autograd.modes import no_grad
from tedsl.autograd.tensor import Tensor
from tedsl.autograd.value import Value
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, TedslError, type_in_words


def gradcheck(function: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True) -> bool:
    """Whether the gradients of `function` by the float64 inputs that require one agree with central differences.

    Each result is multiplied by random weights and summed. Raises TedslError, or returns False, where they do not.
    """
    tensors = _checked(inputs)
    problem = _disagreement(function, tensors, eps, atol, rtol)
    if problem and raise_exception:
        raise TedslError(f"gradcheck: {problem}", hint="ties, kinks and steps have no derivative; else the derivative is wrong")
    return not problem


def gradgradcheck(function: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True) -> bool:
    """The same for the gradients of the gradients."""
    tensors = _checked(inputs)
    outputs = _outputs(function, tensors)
    heads = [_weights(out, 7 + at) for at, out in enumerate(outputs)]
    wanted = [at for at, tensor in enumerate(tensors) if tensor._requires_grad]

    def first(*given: Any) -> Any:
        values, weights = given[:len(tensors)], given[len(tensors):]
        made = _outputs(function, values)
        found = grad(made, [values[at] for at in wanted], list(weights), create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if gradient is not None and gradient._requires_grad)

    for head in heads:
        head.requires_grad = True
    return gradcheck(first, [*tensors, *heads], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _checked(inputs: Any) -> list[Any]:
    tensors = [inputs] if isinstance(inputs, Value) else list(inputs)
    if not all(isinstance(tensor, Value) for tensor in tensors):
        raise ArgumentTypeError("gradcheck takes a function and a list of tensors")
    wanted = [tensor for tensor in tensors if tensor._requires_grad]
    if not wanted:
        raise ArgumentError("gradcheck: no input requires a gradient", hint="tensor(values, \"float64\", requires_grad=True)")
    for tensor in wanted:
        if tensor._kind.dtype != "float64":
            raise DTypeError(f"gradcheck: an input is {tensor._kind.dtype}, too coarse for differences", hint="use float64")
    return tensors


def _outputs(function: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    made = function(*tensors)
    listed = [made] if isinstance(made, Value) else list(made) if isinstance(made, (tuple, list)) else [made]
    if not all(isinstance(out, Value) for out in listed):
        raise ArgumentTypeError(f"gradcheck: the function returned {type_in_words(made)}, not a tensor or several")
    return [out for out in listed if out._requires_grad]


def _weights(tensor: Any, seed: int) -> Tensor:
    return Tensor(numpy.random.default_rng(seed).uniform(0.5, 1.5, tensor._kind.shape), tensor._kind.dtype)


def _disagreement(function: Callable[..., Any], tensors: Sequence[Any], eps: float, atol: float, rtol: float) -> str:
    """What is wrong, or ""."""
    outputs = _outputs(function, tensors)
    if not outputs:
        return "no result depends on an input that requires a gradient"
    heads = [_weights(out, at) for at, out in enumerate(outputs)]
    wanted = [at for at, tensor in enumerate(tensors) if tensor._requires_grad]
    found = grad(outputs, [tensors[at] for at in wanted], heads, allow_unused=True)
    for at, gradient in zip(wanted, found):
        expected = _differences(function, tensors, at, heads, eps)
        actual = numpy.zeros_like(expected) if gradient is None else gradient._array
        wrong = ~numpy.isclose(actual, expected, rtol, atol)
        if wrong.any():
            place = tuple(map(int, numpy.argwhere(wrong)[0]))
            return (f"the gradient by input {at} is {actual[place]} at {place}, and the difference is {expected[place]} "
                    f"({int(wrong.sum())} of {wrong.size} elements differ)")
    return ""


def _differences(function: Callable[..., Any], tensors: Sequence[Any], at: int, heads: Sequence[Tensor], eps: float) -> Array:
    array: Array = tensors[at]._array
    found = numpy.zeros_like(array)
    for place in numpy.ndindex(*array.shape):
        kept = array[place]
        array[place] = kept + eps
        above = _total(function, tensors, heads)
        array[place] = kept - eps
        found[place] = (above - _total(function, tensors, heads)) / (2 * eps)
        array[place] = kept
    return found


def _total(function: Callable[..., Any], tensors: Sequence[Any], heads: Sequence[Tensor]) -> float:
    """The sum of the results times their weights. (Gradients are results too: then operations are recorded.)"""
    outputs = _outputs(function, tensors)
    with no_grad():
        return float(sum((out._array * head._array).sum() for out, head in zip(outputs, heads)))
