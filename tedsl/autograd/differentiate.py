"""backward and grad: gradients of tensors that were computed, by the tensors that they were computed from."""

from __future__ import annotations

from typing import Any

import numpy

from tedsl.autograd import engine
from tedsl.autograd.kinds import kind_of
from tedsl.autograd.node import Edge
from tedsl.autograd.value import Value, result
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, TedslError, type_in_words


def backward(tensors: Any, gradients: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
    """Adds to `grad` of each leaf the gradient of the sum of `tensors`, each times its gradient in `gradients`.

    gradients: one for each tensor; None is 1, for tensors of one element. retain_graph: the graph can be passed again; by
    default if create_graph. create_graph: the pass is recorded itself, so that its results can be differentiated.
    """
    roots = _roots("backward", tensors, gradients)
    engine.run(roots, None, create_graph if retain_graph is None else retain_graph, create_graph)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         allow_unused: bool = False) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` by each of `inputs`, a tuple; nothing is added to `grad` of leaves.

    allow_unused: None for an input on which no output depends, which is refused otherwise. The rest is as for `backward`.
    """
    roots = _roots("grad", outputs, grad_outputs)
    wanted = _listed("grad", inputs)
    for at, tensor in enumerate(wanted):
        if not tensor._requires_grad:
            raise TedslError(f"grad: input {at} requires no gradient", hint="set requires_grad of it before computing")
    edges = [tensor.edge() for tensor in wanted]
    found = engine.run(roots, edges, create_graph if retain_graph is None else retain_graph, create_graph)
    unused = [at for at, gradient in enumerate(found) if gradient is None]
    if unused and not allow_unused:
        raise TedslError(f"grad: the outputs do not depend on input {unused[0]}",
                         hint="leave it out, or pass allow_unused=True, which gives None for it")
    return tuple(found)


def _listed(where: str, tensors: Any) -> list[Any]:
    listed = [tensors] if isinstance(tensors, Value) else list(tensors) if isinstance(tensors, (list, tuple)) else None
    if listed is None or not all(isinstance(tensor, Value) for tensor in listed):
        raise ArgumentTypeError(f"{where} takes a tensor or a list of tensors, not {type(tensors).__name__}")
    return listed


def _roots(where: str, tensors: Any, gradients: Any) -> list[tuple[Edge, Any]]:
    listed = _listed(where, tensors)
    given = [gradients] if gradients is None or not isinstance(gradients, (list, tuple)) else list(gradients)
    if gradients is None:
        given = [None] * len(listed)
    if len(given) != len(listed):
        raise ArgumentError(f"{where}: {len(listed)} tensors and {len(given)} gradients", hint="one for each; None is 1")
    return [(_edge(where, tensor), _head(where, tensor, gradient)) for tensor, gradient in zip(listed, given)]


def _edge(where: str, tensor: Any) -> Edge:
    if not tensor._requires_grad:
        if not tensor._kind.is_float:
            raise DTypeError(f"{where}: the tensor is of dtype {tensor.dtype}, and only floats have gradients",
                             hint="begin with the float tensor that it is computed from")
        raise engine.refuse_constant(tensor)
    edge: Edge = tensor.edge()
    return edge


def _head(where: str, tensor: Any, gradient: Any) -> Any:
    kind = tensor._kind
    if gradient is None:
        if tensor._array.size != 1:
            raise ShapeError(f"{where}: the tensor has shape {kind.shape}, and without a gradient only tensors of one element "
                             "can be differentiated",
                             hint="sum it first, y.sum().backward(), or pass a gradient of its shape: y.backward(weights)")
        return result(tensor.plain, numpy.ones(kind.shape, kind.numpy_dtype), kind, None, 0)
    if not isinstance(gradient, Value):
        try:
            array = numpy.asarray(gradient, kind.numpy_dtype)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"{where}: the gradient is {type_in_words(gradient)}, not a tensor of {kind}",
                                    hint="a tensor, or what autograd.tensor takes") from None
        gradient = result(tensor.plain, array, kind_of(array), None, 0)
    if gradient._kind is not kind:
        raise ShapeError(f"{where}: the gradient is {gradient._kind} and the tensor {kind}",
                         hint="a gradient has the shape and dtype of its tensor")
    return gradient
