"""The derivative of te.scan: a scan that goes backwards.

    before:  Y[t] = update(Y[t - 1], X[t])      after:  R[m - 1 - t] = head[t] + update'(Y[t], X[t + 1]) * R[m - 2 - t]

The update, written over the finished rows Y in place of its state, is a graph of plain formulas. Its derivative by Y, times the
rows of R that are there, is the step of R; its derivative by all else that it reads, times R, comes after the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.autodiff.heads import RowsFromOp, seed
from tedsl.autodiff.sweep import guarded
from tedsl.autodiff.terms import reduced
from tedsl.autodiff.vjp import RecomputedOp
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Reduce, Var
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.declare import define, placeholder
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.reads import has_load
from tedsl.lang.redirect import redirected
from tedsl.lang.scan.operation import ScanOp, scan
from tedsl.lang.scan.order import dependents
from tedsl.lang.tensor import Tensor, load

Walk = Callable[[Mapping[Tensor, Tensor], Sequence[Tensor], Sequence[Expr], Collection[Operation]], "list[Tensor | None]"]


def passed_by_scan(op: ScanOp, heads: Mapping[int, Tensor], prefix: Sequence[Expr], depend: Collection[Tensor], walk: Walk) \
        -> dict[Tensor, list[Tensor]]:
    """What a scan adds to the derivatives by its first rows and by the tensors that its steps read."""
    steps = Steps(op, prefix)
    rows = steps.backwards(heads, walk)
    border = [tensor for tensor in steps.read if tensor in depend]
    found: dict[Tensor, list[Tensor]] = {}
    for tensor, total in zip(border, walk(steps.heads_of(rows), border, prefix, steps.ops)):
        if total is not None:
            found.setdefault(tensor, []).append(total)
    for number, row in rows.items():
        if op.init[number] in depend:
            found.setdefault(op.init[number], []).append(steps.first_rows(number, row))
    return found


def check_not_inside(op: ScanOp, inputs: Sequence[Tensor]) -> None:
    """Refuses derivatives by what exists only while a scan runs: its states and what is computed from them."""
    inside = {*(state.op for state in op.state_placeholder), *(update.op for update in op.update),
              *dependents(producers_first(dict.fromkeys([tensor.op for tensor in op.update])), op.state_placeholder)}
    for tensor in inputs:
        if tensor.op in inside:
            raise TedslError(f"gradient: {tensor.name} is computed step by step inside of the scan {op.name}, and there is no "
                             "derivative by it", hint=f"differentiate by the rows of {op.name} itself, or by what it reads")


class Steps:
    """The steps of a scan as plain formulas over its finished rows.

    updates: of each state. ops: the operations between the rows and these. read: what else they read.
    """

    def __init__(self, op: ScanOp, prefix: Sequence[Expr]) -> None:
        self.op, self.prefix = op, prefix
        self.states = [op.output(number) for number in range(op.num_outputs)]
        self.floats = [number for number, state in enumerate(self.states) if state.dtype.is_float]
        self.count = self.states[0].shape[0]
        assert op.scan_axis.dom is not None
        self.begin = op.scan_axis.dom.min
        replaced: dict[Tensor, Tensor] = dict(zip(op.state_placeholder, self.states))
        results = dict(zip(op.update, self.states))
        members = dependents(producers_first(dict.fromkeys([tensor.op for tensor in op.update])), op.state_placeholder)
        read_inside = {tensor for member in members for tensor in member.input_tensors}
        for member in members:
            assert isinstance(member, ComputeOp)
            outputs = [member.output(number) for number in range(member.num_outputs)]
            values = tuple([results.get(tensor) for tensor in outputs])
            copy = _copied(member, replaced, values, not read_inside.isdisjoint(outputs))
            replaced.update({tensor: copy.output(number) for number, tensor in enumerate(outputs)})
        self.updates = [replaced.get(tensor, tensor) for tensor in op.update]
        self.ops = {tensor.op for tensor in (*self.updates, *[replaced[member.output(0)] for member in members])}
        self.read = [tensor for tensor in dict.fromkeys([tensor for one in self.ops for tensor in one.input_tensors])
                     if tensor.op not in self.ops and tensor.op is not op]

    def backwards(self, heads: Mapping[int, Tensor], walk: Walk) -> dict[int, Tensor]:
        """The derivatives by the rows of each state of floats, from the last row to the first: (rows, *prefix, *rest)."""
        name = f"{self.op.name}.grad"
        shapes = {number: (self.count, *self.prefix, *self.states[number].shape[1:]) for number in self.floats}
        states = {number: placeholder(shapes[number], self.states[number].dtype, f"{name}.state") for number in self.floats}
        wanted = [self.states[number] for number in self.floats]
        passed = dict(zip(self.floats, walk(self.heads_of(states), wanted, self.prefix, self.ops)))
        firsts, updates = [], []
        for number in self.floats:
            firsts.append(self.of_rows(number, heads.get(number), None, (build.const(1, self.count.dtype), *shapes[number][1:]),
                                       f"{name}.init"))
            updates.append(self.of_rows(number, heads.get(number), passed[number], shapes[number], f"{name}.update"))
        try:
            made: Any = scan(firsts, updates, list(states.values()), [], name)
        except TedslError as problem:
            raise TedslError(f"gradient: {self.op.name} reads earlier rows in a way that cannot be reversed: {problem}",
                             hint="read rows at a constant distance, such as state[t - 1, i]") from problem
        return dict(zip(self.floats, made if isinstance(made, list) else [made]))

    def of_rows(self, number: int, head: Tensor | None, passed: Tensor | None, shape: Sequence[Expr], name: str) -> Tensor:
        """What the head and later rows add to rows, which are counted from the last one."""
        outer = len(self.prefix)

        def element(back: Var, *axes: Var) -> Expr:
            row = build.sub(build.sub(self.count, 1), back)
            before, rest = axes[:outer], axes[outer:]
            total: Expr = build.const(0.0, self.states[number].dtype)
            if head is not None:
                total = guarded(*seed(head, before, (row, *rest)))
            if passed is not None:
                later = load(passed, (*before, row, *rest))
                total = later if head is None else build.add(total, later)
            return total

        return Tensor(define(tuple(shape), element, self.names("t", number), name))

    def heads_of(self, rows: Mapping[int, Tensor]) -> dict[Tensor, Tensor]:
        """The heads of the updates: `rows` of derivatives, from the last one, in their order; 0 for the first rows."""
        found = {}
        for number in self.floats:
            info = RowsFromOp(rows[number], self.begin)
            shape = (*self.prefix, *self.states[number].shape)

            def element(*axes: Var, info: RowsFromOp = info) -> Expr:
                return guarded(*info.seed(axes[:len(self.prefix)], axes[len(self.prefix):]))

            names = [*(f"p{d}" for d in range(len(self.prefix))), *(f"i{d}" for d in range(self.states[number].ndim))]
            found[self.updates[number]] = Tensor(define(shape, element, names, f"{self.op.name}.rows", info=info))
        return found

    def first_rows(self, number: int, rows: Tensor) -> Tensor:
        """The derivative by the initial rows of a state."""
        outer, first = len(self.prefix), self.op.init[number]

        def element(*axes: Var) -> Expr:
            row = build.sub(build.sub(self.count, 1), build.cast(self.count.dtype, axes[outer]))
            return load(rows, (row, *axes[:outer], *axes[outer + 1:]))

        names = [*(f"p{d}" for d in range(outer)), *(f"j{d}" for d in range(first.ndim))]
        return Tensor(define((*self.prefix, *first.shape), element, names, f"{self.op.name}.{first.op.name}.grad"))

    def names(self, first: str, number: int) -> list[str]:
        return [first, *(f"p{d}" for d in range(len(self.prefix))), *(f"i{d}" for d in range(1, self.states[number].ndim))]


def _copied(op: ComputeOp, replaced: Mapping[Tensor, Tensor], values: tuple[Tensor | None, ...], is_read: bool) -> ComputeOp:
    """A copy of a formula that reads other tensors; in range everywhere, unless it is an update, whose values are known.

    is_read: other formulas of the step read it, so that it is computed all the same.
    """
    body = redirected(op.body, replaced)
    if is_read or not any(values):
        inside = _InRange(op)
        body = tuple(map(inside, body))

    def element(*axes: Var) -> tuple[Expr, ...]:
        at: dict[Var, Expr] = dict(zip([axis.var for axis in op.axis], axes))
        own = tuple([reduced(axis, at) for axis in op.reduce_axis])
        at.update({axis.var: new.var for axis, new in zip(op.reduce_axis, own)})
        made = [substitute(value, at) for value in body]
        return tuple([value.replace(axis=own, source=made[0].source, condition=made[0].condition, init=made[0].init)
                      if isinstance(value, Reduce) and isinstance(made[0], Reduce) else value for value in made])

    return define(op.shape, element, [axis.name for axis in op.axis], op.name, tag=op.tag, info=RecomputedOp(values))


class _InRange(Rewriter):
    """Gives loads that may be out of range where a formula is computed whole the value 0 there."""

    def __init__(self, op: ComputeOp) -> None:
        super().__init__()
        self.known = Analyzer()
        for axis in (*op.axis, *op.reduce_axis):
            if axis.dom is not None:
                self.known.bind(axis.var, axis.dom)

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, ProducerLoad):
            return node
        asked = build.true()
        for index, extent in zip(node.indices, node.producer.shape):
            for condition in (build.greater_equal(index, 0), build.less(index, extent)):
                if not has_load(index) and not self.known.can_prove(condition):
                    asked = build.logical_and(asked, condition)
        return node if build.is_true(asked) else build.if_then_else(asked, node, build.const(0, node.dtype))
