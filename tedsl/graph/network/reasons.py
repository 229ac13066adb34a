"""Why a step stays below half of its limit: sentences made of what its formula, its shapes and the machine are."""

from __future__ import annotations

import math
from typing import Any

from tedsl import tir
from tedsl.graph.network.costs import computed_by, operations_of
from tedsl.graph.network.kernels import KernelUse
from tedsl.graph.network.limits import Limits
from tedsl.target.target import Target

LOW = 0.5  # of the limit, below which a step has a reason
_SHORT = 10e-6  # seconds of a step to which its call and the ends of its loops are a good part
_FEW = 32  # terms of a sum beside which clearing and storing it are a good part
_EMPTY = 0.8  # of the lanes of the vectors of a row that hold elements
_FREE = frozenset(("tir.if_then_else", "tir.likely", "tir.reinterpret", "tir.fabs"))


def reason(use: KernelUse, seconds: float, between: int, limits: Limits, target: Target) -> str:
    """The sentence of a step. between: the bytes of all arrays of the network, which are used from one call to the next."""
    formulas = computed_by(use.source)
    weights = sum(value.spec.bytes for value in use.reads if value.is_constant)
    part = weights / limits.streams[-1][1] / seconds
    facts = []
    if between > target.machine.l2.size and part > LOW:
        facts.append(f"{weights / 1e6:.1f} MB of weights come from far away: the network uses {between / 1e6:.0f} MB "
                     f"between two calls; {100 * min(part, 1):.0f} % of what memory gives")
    if formulas:
        facts += _of_functions(formulas) + _of_formula(max(formulas, key=operations_of), use, target)
    if seconds < _SHORT:
        facts.append(f"it takes {seconds * 1e6:.1f} µs, of which its call and the ends of its loops are a good part")
    return "; ".join(facts) or "nothing in its formula says why: its schedule leaves this much"


def _of_functions(formulas: list[Any]) -> list[str]:
    calls = sorted({node.op.name.removeprefix("tir.") for op in formulas for node in _nodes(op.body)
                    if isinstance(node, tir.Call) and node.op.name not in _FREE})
    return [f"{', '.join(calls)}: counted as one operation, and takes dozens of instructions"] if calls else []


def _of_formula(op: Any, use: KernelUse, target: Target) -> list[str]:
    facts = []
    body = op.body[0]
    reduced = isinstance(body, tir.Reduce)
    nodes = _nodes(body.source if reduced else op.body)
    terms = math.prod(_extent(axis) for axis in body.axis) if reduced else 1
    multiplies = any(isinstance(node, tir.Mul) for node in nodes)
    if reduced and not multiplies:
        facts.append("it has no multiply-adds, of which the limit counts two operations in one instruction")
    elif reduced and terms <= _FEW:
        facts.append(f"its sums have {terms} terms, beside which loading operands and storing results are a good part")
    lanes, width = target.vector_lanes(use.writes[0].spec.dtype), _extent(op.axis[-1]) if op.axis else 1
    full = width / (-(-width // lanes) * lanes)
    if full < _EMPTY and not _is_flat(op):
        facts.append(f"rows of {width} fill {100 * full:.0f} % of vectors of {lanes} lanes")
    strides = sorted({int(value) for value in getattr(getattr(op, "info", None), "strides", ()) if isinstance(value, int)})
    if strides and strides[-1] > 1:
        facts.append(f"it reads one of {strides[-1]} elements of a row, several loads and shuffles for a vector")
    return facts


def _is_flat(op: Any) -> bool:
    """Whether the last dimension is not alone: a product's columns, or elements that follow each other."""
    return not getattr(getattr(op, "info", None), "kernel", None)


def _nodes(roots: Any) -> list[Any]:
    found, stack = [], list(roots)
    while stack:
        node = stack.pop()
        if not isinstance(node, tir.ProducerLoad):
            found.append(node)
            stack += node.child_nodes()
    return found


def _extent(axis: Any) -> int:
    value = getattr(axis.dom.extent, "value", None)
    return value if isinstance(value, int) else 1
