"""What a kernel has to do: the operations on numbers of its formula, and the bytes that it reads and writes at least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.graph.network.kernels import KernelSource, KernelUse

_ARITHMETIC = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Max, tir.Min)
_FREE = frozenset(("tir.if_then_else", "tir.likely", "tir.reinterpret"))


def operations(source: KernelSource) -> int:
    """The operations on elements of all formulas of a kernel; a multiply-add counts two, a function such as exp one."""
    return sum(map(operations_of, computed_by(source)))


def computed_by(source: KernelSource) -> list[Any]:
    """The formulas of a kernel."""
    _, outputs = source.tensors
    return formulas_of(outputs)


def formulas_of(outputs: Sequence[te.Tensor]) -> list[Any]:
    """The formulas that tensors are computed by."""
    return _computed([tensor.op for tensor in outputs])


def multiply_adds_of(op: Any) -> int:
    """The multiply-adds of a formula, 0 unless it sums products: of a convolution with weights (out, in/groups, kh, kw) and
    results of (height, width), out * height * width * in/groups * kh * kw for each image; of a dense layer in * out.
    """
    return _points(op) if _sums_products(op.body[0]) else 0


def _sums_products(body: Any) -> bool:
    if not isinstance(body, tir.Reduce) or len(body.source) != 1:
        return False
    term = body.source[0]
    while isinstance(term, (tir.Cast, tir.Select)) or (isinstance(term, tir.Call) and term.op.name == "tir.if_then_else"):
        term = term.value if isinstance(term, tir.Cast) else term.true_value if isinstance(term, tir.Select) else term.args[1]
    return isinstance(term, tir.Mul)


def moved(use: KernelUse) -> int:
    """The bytes of the arrays that a step reads and writes, each once."""
    return sum(value.spec.bytes for value in (*use.reads, *use.writes))


def _computed(ops: list[Any]) -> list[Any]:
    seen: dict[Any, None] = {}
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in seen:
            seen[op] = None
            stack += [tensor.op for tensor in op.input_tensors]
    return [op for op in seen if isinstance(op, te.ComputeOp)]


def operations_of(op: Any) -> int:
    """The operations of one formula."""
    body = op.body[0]
    if isinstance(body, tir.Reduce):
        return _points(op) * (len(op.body) + sum(map(_of_element, body.source)))
    return _points(op) * sum(map(_of_element, op.body))


def _points(op: Any) -> int:
    """The elements that a formula is computed for, times the terms of each."""
    body = op.body[0]
    axes = [*op.axis, *(body.axis if isinstance(body, tir.Reduce) else ())]
    return math.prod(_extent(axis) for axis in axes)


def _extent(axis: Any) -> int:
    value = getattr(axis.dom.extent, "value", None)
    return value if isinstance(value, int) else 1


def _of_element(expr: Any) -> int:
    """The operations of an expression; those of indices and of conditions do not count."""
    count, stack, seen = 0, [expr], set()
    while stack:
        node = stack.pop()
        if node in seen or isinstance(node, (tir.ProducerLoad, tir.Var)):
            continue
        seen.add(node)
        if isinstance(node, tir.Call):
            count += node.op.name not in _FREE
        elif isinstance(node, _ARITHMETIC):
            count += 1
        stack += node.child_nodes()
    return count
