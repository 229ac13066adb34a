"""What a kernel has to do: the operations on numbers of its formula, and the bytes that it reads and writes at least."""

from __future__ import annotations

import math
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
    return _computed([tensor.op for tensor in outputs])


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
    points = math.prod(_extent(axis) for axis in op.axis)
    body = op.body[0]
    if isinstance(body, tir.Reduce):
        points *= math.prod(_extent(axis) for axis in body.axis)
        return points * (len(op.body) + sum(map(_of_element, body.source)))
    return points * sum(map(_of_element, op.body))


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
