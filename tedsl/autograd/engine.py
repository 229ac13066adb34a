"""The pass from results back to leaves.

A node runs when all gradients for its results are there: how many come is counted first. Of the nodes that may run, the one
that was recorded last goes first, so that what a pass needs in between is freed early. There is no recursion: graphs may be
as deep as memory allows. Several threads may run passes, also through one graph.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.autograd.kinds import kind_of
from tedsl.autograd.modes import Setting
from tedsl.autograd.node import AccumulateGrad, Edge, Gradient, Hooks, Node
from tedsl.autograd.operators import ADD
from tedsl.autograd.recording import NEW_PLANS, prepare
from tedsl.autograd.value import Value, result
from tedsl.errors import ArgumentTypeError, ShapeError, TedslError
from tedsl.ir.script import shown


def run(roots: Sequence[tuple[Edge, Any]], targets: Sequence[Edge] | None, retain_graph: bool, create_graph: bool) -> list[Any]:
    """Passes the gradients of `roots` back. targets: the edges whose gradients are returned, None where nothing comes; then
    nothing is added to leaves. Without them gradients end in the accumulators.
    """
    with Setting(create_graph):
        return _Pass(roots, targets, retain_graph, create_graph).run()


class _Pass:
    """The state of one pass. waiting: for each node how many gradients are still to come; arrived: what came so far, for each
    output a gradient and whether nobody else has its array.
    """

    def __init__(self, roots: Sequence[tuple[Edge, Any]], targets: Sequence[Edge] | None, retain_graph: bool,
                 create_graph: bool) -> None:
        self.keep, self.create = retain_graph, create_graph
        self.targets = None if targets is None else list(targets)
        self.captured: dict[Edge, Any] = {}
        self.wanted: dict[Node, set[int]] = {}
        for node, number in self.targets or ():
            if node is not None:
                self.wanted.setdefault(node, set()).add(number)
        self.waiting = _counts([node for (node, _), _ in roots])
        if NEW_PLANS:
            prepare(self.waiting)
        self.useful = None if self.targets is None else _leading_to(self.waiting, self.wanted)
        self.arrived: dict[Node, list[tuple[Gradient, bool]]] = {}
        self.ready: list[tuple[int, Node]] = []
        started = []
        for (node, number), gradient in roots:
            self.arrive(node, number, gradient, False)
            started.append(node)
        for node in dict.fromkeys(started):
            if self.waiting[node] == 0:
                heapq.heappush(self.ready, _Turn(node))

    def run(self) -> list[Any]:
        ready, pop = self.ready, heapq.heappop
        while ready:
            self.step(pop(ready)[1])
        return [] if self.targets is None else [self.captured.get(edge) for edge in self.targets]

    def arrive(self, node: Node, number: int, gradient: Gradient, alone: bool) -> None:
        """Adds a gradient to those that came for an output of a node."""
        slots = self.arrived.get(node)
        if slots is None:
            slots = self.arrived[node] = [(None, False)] * node.outputs
        before, owned = slots[number]
        slots[number] = (gradient, alone) if before is None else self.sum(before, owned, gradient)

    def sum(self, before: Any, owned: bool, gradient: Any) -> tuple[Any, bool]:
        if self.create:
            return ADD(before, gradient), False
        if owned:
            numpy.add(before._array, gradient._array, out=before._array)
            return before, True
        array = numpy.add(before._array, gradient._array)
        return result(before.plain, numpy.asarray(array), before._kind, None, 0), True

    def step(self, node: Node) -> None:
        """Runs a node to which all gradients have come."""
        slots = self.arrived.pop(node, None)
        if slots is not None and node.hooks is not None:
            slots = _after_hooks(node, node.hooks, slots)
        if node in self.wanted and slots is not None:
            for number in self.wanted[node]:
                self.captured[node, number] = slots[number][0]
        empty = slots is None or all(gradient is None for gradient, _ in slots)
        if isinstance(node, AccumulateGrad):
            if not empty and self.targets is None and slots is not None:
                node.add(*slots[0], ADD if self.create else None)
            return
        useful = self.useful is None or node in self.useful
        passed = self.through(node, slots) if useful and not empty and slots is not None else None
        slots = None
        for at, (below, number) in enumerate(node.next_functions):
            if below is None:
                continue
            if passed is not None and passed[at][0] is not None and (self.useful is None or below in self.useful or
                                                                     below in self.wanted):
                self.arrive(below, number, *passed[at])
            self.waiting[below] -= 1
            if self.waiting[below] == 0:
                heapq.heappush(self.ready, _Turn(below))

    def through(self, node: Node, slots: list[tuple[Gradient, bool]]) -> Sequence[tuple[Gradient, bool]]:
        heads = [gradient for gradient, _ in slots]
        hooks = node.hooks
        if hooks is None:
            return node.passed(heads, self.create, self.keep)
        for prehook in list(hooks.before.values()):
            heads = _replaced(f"a prehook of {node.name()}", prehook(tuple(heads)), heads)
        passed = node.passed(heads, self.create, self.keep)
        for hook in list(hooks.after.values()):
            before = [gradient for gradient, _ in passed]
            passed = [(gradient, False) for gradient in _replaced(f"a hook of {node.name()}", hook(tuple(before), tuple(heads)),
                                                                  before)]
        return passed


def _Turn(node: Node) -> tuple[int, Node]:
    """The entry of a node in the heap: numbers differ, so that nodes are not compared."""
    return -node.number, node


def _counts(roots: Sequence[Node]) -> dict[Node, int]:
    """For each node that can be reached how many edges lead to it."""
    counts: dict[Node, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        for below, _ in stack.pop().next_functions:
            if below is not None:
                if below in counts:
                    counts[below] += 1
                else:
                    counts[below] = 1
                    stack.append(below)
    return counts


def _leading_to(nodes: dict[Node, int], targets: dict[Node, set[int]]) -> set[Node]:
    """The nodes from which a target can be reached, by at least one edge."""
    above: dict[Node, list[Node]] = {}
    for node in nodes:
        for below, _ in node.next_functions:
            if below is not None:
                above.setdefault(below, []).append(node)
    found: set[Node] = set()
    stack = list(targets)
    while stack:
        for node in above.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


def _after_hooks(node: Node, hooks: Hooks, slots: list[tuple[Gradient, bool]]) -> list[tuple[Gradient, bool]]:
    """The gradients after the hooks of tensors; those that are retained are stored."""
    slots = list(slots)
    for number, functions in hooks.of_outputs.items():
        for hook in list(functions.values()):
            gradient, alone = slots[number]
            changed = None if gradient is None else hook(gradient)
            if changed is not None:
                check_gradient(f"the hook of result {number} of {node.name()}", changed, gradient)
                slots[number] = changed, False
            else:
                slots[number] = gradient, False if gradient is not None else alone  # the hook may have kept it
    for number, reference in hooks.retained.items():
        tensor = reference()
        gradient = slots[number][0]
        if tensor is not None and gradient is not None:
            tensor.grad = gradient if tensor.grad is None else ADD(tensor.grad, gradient)
            slots[number] = gradient, False
    return slots


def _replaced(where: str, changed: Any, before: list[Gradient]) -> list[Gradient]:
    """The gradients that a hook of a node returned; those before if it returned None."""
    if changed is None:
        return before
    if not isinstance(changed, (tuple, list)) or len(changed) != len(before):
        raise ArgumentTypeError(f"{where} returned {shown(changed)}, not a tuple of {len(before)} gradients",
                                hint="it returns as many as it got, or None to leave them as they are")
    for new, old in zip(changed, before):
        if new is not None and old is not None:
            check_gradient(where, new, old)
        elif new is not None and not isinstance(new, Value):
            raise ArgumentTypeError(f"{where} gave {type(new).__name__}, not a tensor")
    return list(changed)


def check_gradient(where: str, gradient: Any, of: Value) -> None:
    """Refuses a gradient that is no tensor, or not of the kind of the tensor that it belongs to."""
    if not isinstance(gradient, Value):
        raise ArgumentTypeError(f"{where} gave {type(gradient).__name__}, not a tensor",
                                hint="autograd.tensor(values) makes one; None stands for zero")
    if gradient._kind is not of._kind:
        raise ShapeError(f"{where} gave a gradient {kind_of(gradient._array)} for a tensor {of._kind}",
                         hint="a gradient has the shape and dtype of its tensor")


def refuse_constant(tensor: Value) -> TedslError:
    """The error for a pass from a tensor that depends on nothing that needs a gradient."""
    return TedslError("backward: this tensor requires no gradient, nor does anything that it was computed from",
                      hint="set x.requires_grad = True, or make it by tensor(values, requires_grad=True), before computing; "
                           "inside of no_grad() nothing is recorded")
