"""Graphs run node by node: what every other way to run a graph is compared with."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from tedsl.autograd.formula import Formula
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.formula import alone, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import with_inputs
from tedsl.graph.text.parser import parse
from tedsl.graph.text.printer import text
from tedsl.graph.value import Node, Spec, Value
from tedsl.runtime.array import numpy_dtype


def evaluate(graph: Graph, *arrays: Any) -> tuple[Any, ...]:
    """The values of the outputs for arrays of the inputs. Each node is a kernel of its own, compiled once for equal nodes.

    Variables in shapes get their extents from the arrays. Raises ArgumentError for arrays that do not fit.
    """
    given = [_checked(graph, value, array) for value, array in zip(graph.inputs, arrays)]
    if len(arrays) != len(graph.inputs):
        names = ", ".join(value.name for value in graph.inputs)
        raise ArgumentError(f"{graph.name} takes {len(graph.inputs)} arrays ({names}), not {len(arrays)}")
    return _run(with_inputs(graph, [Spec(array.shape, array.dtype) for array in given]), given)


def _checked(graph: Graph, value: Value, array: Any) -> Any:
    if not isinstance(array, numpy.ndarray):
        raise ArgumentTypeError(f"{graph.name}: {value.name} is an array of {value.spec}, not {type_in_words(array)}")
    if array.dtype != numpy_dtype(value.dtype):
        raise ArgumentError(f"{graph.name}: {value.name} is an array of {value.dtype}, not of {array.dtype}")
    fits = array.ndim == len(value.shape) and all(not isinstance(extent, int) or extent == given
                                                  for extent, given in zip(value.shape, array.shape))
    if not fits:
        raise ArgumentError(f"{graph.name}: {value.name} is an array of {value.spec}, not of the shape {array.shape}")
    return numpy.ascontiguousarray(array).reshape(array.shape)


def _run(graph: Graph, arrays: list[Any]) -> tuple[Any, ...]:
    known: dict[Value, Any] = dict(zip(graph.inputs, arrays))
    known |= {value: value.data for value in graph.constants}
    waiting = {value: len(nodes) for value, nodes in graph.readers.items()}
    kept = set(graph.outputs)
    for node in graph.nodes:
        known |= zip(node.outputs, run_node(node, [known[value] for value in node.inputs]))
        for value in dict.fromkeys(node.inputs):
            waiting[value] -= 1
            if not waiting[value] and value not in kept:
                del known[value]
    return tuple([known[value] for value in graph.outputs])


def run_node(node: Node, arrays: list[Any]) -> tuple[Any, ...]:
    """The results of one node for the arrays of its inputs."""
    if node.function is not None:
        return _run(node.function, arrays)
    of = dict(zip(node.inputs, arrays))
    kernel = _kernel(text(alone(node)))  # the same text, the same kernel
    results = tuple([numpy.empty(tuple(map(int, out.shape)), numpy_dtype(out.dtype)) for out in node.outputs])
    operands = [value for value in dict.fromkeys(node.inputs) if value.shape != () or not value.is_constant]
    kernel(*[of[value] for value in operands], *results)
    return results


@functools.lru_cache(maxsize=4096)
def _kernel(source: str) -> Any:
    graph = parse(source)
    written = formula_of(graph)
    return Formula(graph.name, written.inputs, written.outputs).kernel
