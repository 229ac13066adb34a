"""Running a formula on tensors, and recording that it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from tedsl.autograd.formula import Derivative, Formula, Source, compile_together
from tedsl.autograd.kinds import Array, Kind, kind_of
from tedsl.autograd.modes import MODE
from tedsl.autograd.node import CONSTANT, NUMBERS, AccumulateGrad, Edge, Gradient, Node, line_of
from tedsl.autograd.value import Changes, Value, place, result
from tedsl.errors import ArgumentError, TedslError

NEW_PLANS: set[Plan] = set()  # whose derivatives no pass has computed yet
_empty = numpy.empty
_new: Any = object.__new__


class Plan:
    """How a formula runs where `needs` of its inputs need a gradient: its kernel, and what is kept for the derivative."""

    __slots__ = ("_backwards", "formula", "kernel", "kinds", "name", "needs", "outputs", "places", "reads", "refusal", "saves",
                 "single")

    def __init__(self, formula: Formula, name: str, needs: tuple[bool, ...], single: bool) -> None:
        self.formula, self.name = formula, name
        self.kernel = formula.kernel
        self.kinds = formula.kinds
        self.single = formula.kinds[0] if single else None
        self.outputs = len(formula.kinds)
        self.needs = needs if any(needs) and any(kind.is_float for kind in formula.kinds) else ()
        self.saves: tuple[Source, ...] = ()
        self.reads: tuple[int, ...] = ()  # the same as numbers of inputs, and ~numbers of results
        self.places: dict[tuple[str, int], int] = {}
        self._backwards: dict[tuple[bool, ...], Backward] = {}
        self.refusal: TedslError | None = None
        if self.needs:
            self._find_saves()

    def _find_saves(self) -> None:
        """What the derivative reads; a formula that has none is refused by the pass back."""
        try:
            whole = self.formula.derivative(self.needs, (True,) * self.outputs)
        except TedslError as refusal:
            self.refusal = refusal
        else:
            kept = dict.fromkeys((source.kind, source.number) for source in whole.sources if source.kind != "head")
            kept |= {(same.kind, same.number): None for same in whole.results
                     if isinstance(same, Source) and same.kind != "head"}
            self.saves = tuple(Source(kind, number) for kind, number in kept)
            self.reads = tuple(number if kind == "input" else ~number for kind, number in kept)
            self.places = {key: at for at, key in enumerate(kept)}
            NEW_PLANS.add(self)

    def backward(self, heads: tuple[bool, ...]) -> Backward:
        """How gradients pass where those of `heads` among the results have one."""
        known = self._backwards.get(heads)
        return known or self._backwards.setdefault(heads, Backward(self, self.formula.derivative(self.needs, heads)))


class Backward:
    """The derivative of a plan. reads: for each input of its formula the place among what is saved, or ~number of a head.

    alone: for each output whether it is the gradient of one input only.
    """

    __slots__ = ("alone", "formula", "kernel", "kinds", "reads", "results")

    def __init__(self, plan: Plan, derivative: Derivative) -> None:
        def place_of(source: Source) -> int:
            return ~source.number if source.kind == "head" else plan.places[source.kind, source.number]

        self.formula = derivative.formula
        self.kernel: Callable[..., Any] | None = self.formula.kernel if self.formula.outputs else None
        self.kinds = self.formula.kinds
        self.reads = tuple(map(place_of, derivative.sources))
        # (number of the output, None), (None, where it is read), or None
        self.results = tuple(None if at is None else (None, place_of(at)) if isinstance(at, Source) else (at, None)
                             for at in derivative.results)
        self.alone = tuple(derivative.results.count(number) == 1 for number in range(len(self.kinds)))


def prepare(nodes: Iterable[Node]) -> None:
    """Compiles what a pass through `nodes` needs and no pass has needed yet, together."""
    new = dict.fromkeys([node.plan for node in nodes if isinstance(node, OperationNode) and node.plan in NEW_PLANS])
    NEW_PLANS.difference_update(new)
    compile_together([plan.formula.derivative(plan.needs, (True,) * plan.outputs).formula for plan in new])


def apply(plan: Plan, tensors: Sequence[Value]) -> Any:
    """Runs the formula of the plan; returns its result, or a tuple of its results. Records it where a gradient is needed."""
    kind = plan.single
    if kind is None:
        return _apply_several(plan, tensors)
    out = _empty(kind.shape, kind.numpy_dtype)
    arrays = [tensor._array for tensor in tensors]
    try:
        plan.kernel(*arrays, out)
    except ArgumentError:
        _run_on_copies(plan.kernel, arrays, [out])
    made: Any = _new(tensors[0].plain)
    made._array = out
    made._kind = kind
    made._changes = made._accumulator = made._held = made.grad = None
    made.output_nr = 0
    if plan.needs:
        made.grad_fn = OperationNode(plan, tensors, (made,))
        made._requires_grad = True
    else:
        made.grad_fn = None
        made._requires_grad = False
    return made


def _apply_several(plan: Plan, tensors: Sequence[Value]) -> tuple[Any, ...]:
    outs = run(plan.kernel, [tensor._array for tensor in tensors], plan.kinds)
    made = tuple(result(tensors[0].plain, out, kind, None, number)
                 for number, (out, kind) in enumerate(zip(outs, plan.kinds)))
    if plan.needs:
        node = OperationNode(plan, tensors, made)
        for one in made:
            if one._kind.is_float:
                one.grad_fn, one._requires_grad = node, True
    return made


def run(kernel: Callable[..., Any], arrays: list[Array], kinds: Sequence[Kind]) -> list[Array]:
    """The arrays of `kinds` that a kernel computes."""
    outs = [_empty(kind.shape, kind.numpy_dtype) for kind in kinds]
    try:
        kernel(*arrays, *outs)
    except ArgumentError:
        _run_on_copies(kernel, arrays, outs)
    return outs


def _run_on_copies(kernel: Callable[..., Any], arrays: list[Array], outs: list[Array]) -> None:
    """Runs a kernel that refused arrays: strided ones are copied; if there is none, it refuses them again."""
    kernel(*[array if array.flags.c_contiguous and array.flags.aligned else numpy.array(array, order="C")
             for array in arrays], *outs)


def apply_formula(formula: Formula, name: str, tensors: Sequence[Value]) -> tuple[Any, ...]:
    """The results of a formula on tensors, recorded where one of them needs a gradient."""
    recording = MODE.recording
    needs = tuple([recording and tensor._requires_grad for tensor in tensors])
    plan = formula.plans.get(needs)
    if plan is None:
        plan = formula.plans.setdefault(needs, Plan(formula, name, needs, False))
    return _apply_several(plan, tensors)


class OperationNode(Node):
    """The record of a formula that ran: what its derivative reads."""

    __slots__ = ("plan", "saved", "versions")

    saved: tuple[Array, ...] | None  # None: freed
    versions: tuple[Any, ...]  # for each array that is saved the counter of its changes, and what that said

    def __init__(self, plan: Plan, tensors: Sequence[Value], results: Sequence[Value]) -> None:
        edges = []
        for tensor, need in zip(tensors, plan.needs):
            node = tensor.grad_fn if need else None
            edges.append((node, tensor.output_nr) if node is not None else tensor.edge() if need else CONSTANT)
        self.next_functions = tuple(edges)
        self.number = next(NUMBERS)
        self.place = place(3)
        self.hooks = None
        self.plan = plan
        saved: list[Array] = []
        versions: list[Any] = []
        for number in plan.reads:
            tensor = tensors[number] if number >= 0 else results[~number]
            changes = tensor._changes
            if changes is None:
                changes = tensor._changes = Changes()
            saved.append(tensor._array)
            versions += (changes, changes.count)
        self.saved = tuple(saved)
        self.versions = tuple(versions)

    def name(self) -> str:
        return self.plan.name

    @property
    def outputs(self) -> int:
        return self.plan.outputs

    def passed(self, heads: Sequence[Gradient], create_graph: bool, keep: bool) -> Sequence[tuple[Gradient, bool]]:
        refusal = self.plan.refusal
        if refusal is not None:
            raise TedslError(f"backward: {self.plan.name}, recorded at {self.line}, has no derivative: {refusal.problem}",
                             hint=refusal.hint)
        backward = self.plan.backward(tuple([head is not None for head in heads]))
        saved = self.saved
        if saved is None:
            raise released(self)
        versions = self.versions
        for at in range(0, len(versions), 2):
            if versions[at].count != versions[at + 1]:
                raise _changed(self, saved, at // 2)
        if not keep:
            self.saved = None if saved else ()
        if create_graph:
            return self._recorded(backward, heads, saved)
        arrays = [heads[~at]._array if at < 0 else saved[at] for at in backward.reads]
        outs = [] if backward.kernel is None else run(backward.kernel, arrays, backward.kinds)
        plain = next(head for head in heads if head is not None).plain
        return [(None, False) if at is None else
                (result(plain, outs[at[0]], backward.kinds[at[0]], None, 0), backward.alone[at[0]]) if at[0] is not None else
                (heads[~at[1]], False) if at[1] < 0 else
                (result(plain, saved[at[1]], kind_of(saved[at[1]]), None, 0), False) for at in backward.results]

    def _recorded(self, backward: Backward, heads: Sequence[Gradient],
                  saved: Sequence[Array]) -> Sequence[tuple[Gradient, bool]]:
        """The same by tensors, so that the derivative is recorded."""
        plain = next(head for head in heads if head is not None).plain

        def tensor(at: int) -> Any:
            return heads[~at] if at < 0 else self._unpacked(at, saved[at], plain)

        name = f"{self.plan.name.removesuffix('0')}Backward0"
        outs = apply_formula(backward.formula, name, [tensor(at) for at in backward.reads]) if backward.kernel else ()
        return [(None, False) if at is None else (outs[at[0]] if at[0] is not None else tensor(at[1]), False)
                for at in backward.results]

    def _unpacked(self, at: int, array: Array, plain: type[Any]) -> Any:
        """The saved tensor number `at`, with its place in the graph."""
        source = self.plan.saves[at]
        node, number = (self, source.number) if source.kind == "result" else self.next_functions[source.number]
        if isinstance(node, AccumulateGrad):
            return node.variable
        return result(plain, array, kind_of(array), node, number)


def released(node: Node) -> TedslError:
    """The error for a second pass through a graph."""
    return TedslError(f"backward: {node.name()}, recorded at {line_of(node.place)}, ran before, and what it saved was freed",
                      hint="pass retain_graph=True to the first backward, or compute the result again")


def _changed(node: OperationNode, saved: Sequence[Array], at: int) -> TedslError:
    changes, count = node.versions[2 * at:2 * at + 2]
    source = node.plan.saves[at]
    what = f"its input {source.number}" if source.kind == "input" else "its result"
    return TedslError(f"backward: {node.name()}, recorded at {line_of(node.place)}, needs {what}, a {kind_of(saved[at])}, "
                      f"whose elements were changed in place at {line_of(changes.place)} (version {changes.count}, saved at "
                      f"version {count})", hint="compute a new tensor there, x = x + y for x += y, or change a copy: x.clone()")


def edges_of(tensors: Sequence[Any]) -> tuple[Edge, ...]:
    """For each of `tensors` where its gradient goes; (None, 0) for what is no tensor."""
    return tuple([tensor.edge() if isinstance(tensor, Value) else CONSTANT for tensor in tensors])
