"""`eliminate_zeros`: a formula that sums only what may differ from zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.autodiff.zeros.choices import cases
from tedsl.autodiff.zeros.solve import Solved, analyzer_of, conjunction, solved, volume
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, ProducerLoad, Select, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.declare import compute, reduce_axis
from tedsl.lang.operation import ComputeOp, extent_of
from tedsl.lang.reductions import sum as sum_over
from tedsl.lang.tensor import Tensor
from tedsl.lang.zeros.terms import Term, is_sum, lifted, split


def eliminate_zeros(tensor: Tensor) -> Tensor:
    """Returns a tensor of the same shape, dtype and values whose sum leaves out what is zero; `tensor` itself if nothing is
    found to leave out.

    It looks at a formula that is a sum, te.sum, of values under conditions: te.select, te.if_then_else with a 0, products with
    a condition cast to a number. Equations and inequalities between indices remove axes of the sum, or shrink them. Where the
    terms of a value have different conditions, each becomes a sum of its own if those have fewer iterations together. The order
    of the sum may change.
    """
    op = tensor.op
    if not isinstance(op, ComputeOp) or op.num_outputs > 1:
        return tensor
    reduction = op.reduction
    if reduction is None:
        return _simplified(op, tensor)
    if not is_sum(reduction) or not _are_independent(op.reduce_axis):
        return tensor
    where = split(reduction.condition)
    terms = [Term((*where, *term.conditions), term.value) for term in lifted(reduction.source[0])]
    outcome = [_solved(term, op) for term in terms]
    if terms and not any(outcome):
        return tensor
    found = [one for parts in outcome for one in parts if not _is_nothing(one)]
    rest = [term for term, parts in zip(terms, outcome) if not parts]
    if rest:
        found.append(_unsolved(rest, op.reduce_axis))
    return _total(op, found) if _work(found) <= _volume(op) else tensor


def _simplified(op: ComputeOp, tensor: Tensor) -> Tensor:
    """Returns the tensor of a formula without a sum with what its choices ask for decided where it can be."""
    body = op.body[0]
    if not any(isinstance(node, Select) or (isinstance(node, Call) and node.op is IF_THEN_ELSE) for node in post_order(body)):
        return tensor
    simple = analyzer_of(op.axis).simplify(body)
    return tensor if simple is body else _tensor(op, Solved((), (), simple), op.name, whole=True)


def _are_independent(axes: Sequence[IterVar]) -> bool:
    """Tells whether the range of no axis depends on data or on another of the axes."""
    own = {axis.var for axis in axes}
    nodes = [node for axis in axes if axis.dom is not None for node in post_order(axis.dom)]
    return not any(isinstance(node, ProducerLoad) or node in own for node in nodes)


def _solved(term: Term, op: ComputeOp) -> list[Solved]:
    """Returns sums over fewer or smaller axes that add up to the sum of `term`; none if there are no such sums."""
    apart = cases(term, [axis.var for axis in op.reduce_axis])
    if len(apart) > 1:
        parts = [solved(one, op.axis, op.reduce_axis) for one in apart]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts) and _work(found) <= _volume(op):
            return found
    whole = solved(term, op.axis, op.reduce_axis)
    return [] if whole is None else [whole]


def _work(parts: Sequence[Solved]) -> int:
    """Returns the iterations for one element of the result: those of each sum, and one that adds several sums up."""
    sums = [part for part in parts if part.axes]
    return sum(part.volume for part in parts) + (len(sums) > 0 and len(parts) > 1)


def _volume(op: ComputeOp) -> int:
    return volume([extent_of(axis) for axis in op.reduce_axis])


def _is_nothing(part: Solved) -> bool:
    return any(build.as_int(condition) == 0 for condition in part.guard)


def _unsolved(terms: Sequence[Term], reduced: Sequence[IterVar]) -> Solved:
    """Returns the sum of terms over all axes, which start at 0 there."""
    value: Expr | None = None
    for term in terms:
        part = build.if_then_else(conjunction(term.conditions), term.value, build.const(0, term.value.dtype))
        value = part if value is None else build.add(value, part)
    assert value is not None
    axes, shifted = [], {}
    for axis in reduced:
        assert axis.dom is not None and axis.dom.extent is not None
        index = Var(axis.name, axis.dtype)
        axes.append((index, axis.dom.extent))
        shifted[axis.var] = build.add(index, axis.dom.min)
    return Solved(tuple(axes), (), substitute(value, shifted))


def _total(op: ComputeOp, parts: Sequence[Solved]) -> Tensor:
    """Returns the sum of all parts as a tensor; sums over axes are tensors of their own unless there is a single part."""
    if len(parts) == 1:
        return _tensor(op, parts[0], op.name, whole=True)
    stages = [_tensor(op, part, f"{op.name}_part{i}") if part.axes else part for i, part in enumerate(parts)]

    def value(*index: Var) -> Expr:
        result: Expr | None = None
        for stage in stages:
            term = _at(op, stage, index) if isinstance(stage, Solved) else stage(*index)
            result = build.as_expr(term) if result is None else build.add(result, term)
        return build.const(0, op.dtype_of(0)) if result is None else result

    return _declared(op, value, op.name, whole=True)


def _at(op: ComputeOp, part: Solved, index: Sequence[Var]) -> Expr:
    """Returns the value of `part` under its guard, at an index of the tensor."""
    value = build.if_then_else(conjunction(part.guard), part.value, build.const(0, part.value.dtype))
    return substitute(value, dict(zip([a.var for a in op.axis], index)))


def _tensor(op: ComputeOp, part: Solved, name: str, *, whole: bool = False) -> Tensor:
    def value(*index: Var) -> Expr:
        at = _at(op, part, index)
        if not part.axes:
            return at
        axes = [reduce_axis((build.const(0, extent.dtype), extent), name=var.name) for var, extent in part.axes]
        return sum_over(substitute(at, dict(zip([var for var, _ in part.axes], axes))), axis=axes)

    return _declared(op, value, name, whole=whole)


def _declared(op: ComputeOp, value: Callable[..., Expr], name: str, *, whole: bool) -> Tensor:
    tag, attrs, info = (op.tag, op.attrs, op.info) if whole else ("", None, None)
    made: Tensor = compute(op.shape, value, name, tag, attrs, info=info, axes=[a.name for a in op.axis])
    return made
