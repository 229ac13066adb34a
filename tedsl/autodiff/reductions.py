"""The derivatives of reductions: what is passed down to each element that is reduced.

- A sum passes on what it gets. A maximum or minimum passes it to the first element, in row-major order, that has that value.
- Every other reduction, a product or one of the user's, of tuples too: the element at step t comes between the results `before`
  of the elements before it and `after` of those after it, so that the whole is f(f(before, element), after). Both are
  recurrences (te.scan), and the derivative is that of f: a product needs no division, and is right where elements are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.autodiff.sweep import Branch, Path, without_lets
from tedsl.autodiff.terms import is_fixed, reduced
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, INT32, INT64
from tedsl.ir.expr import Add, Expr, Max, Min, Mul, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.ops import ISNAN
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.declare import define, placeholder
from tedsl.lang.operation import ComputeOp, extent_of
from tedsl.lang.reducer import comm_reducer
from tedsl.lang.scan.operation import scan
from tedsl.lang.tensor import Tensor, load

Seeds = Mapping[int, tuple[Path, Expr]]
Passed = list[tuple[Expr, Path, Expr]]  # expressions, each with conditions and the derivative by it


def passed_to_elements(op: ComputeOp, reduction: Reduce, seeds: Seeds) -> tuple[Passed, Passed]:
    """What is passed to the elements that are reduced, over all axes, and to the values that the reduction starts with."""
    where = () if build.is_true(reduction.condition) else (Branch(reduction.condition, True, True),)
    if _is(reduction, Add):
        path, value = seeds[0]
        return [(reduction.source[0], (*path, *where), value)], [(start, path, value) for start in reduction.init]
    if _is(reduction, Max) or _is(reduction, Min):
        return _to_the_first(op, reduction, where, *seeds[0])
    return _between(op, reduction, where, seeds)


def _is(reduction: Reduce, kind: type[Add | Max | Min | Mul]) -> bool:
    combiner = reduction.combiner
    result = combiner.result[0]
    return len(combiner.result) == 1 and isinstance(result, kind) and {result.a, result.b} == {combiner.lhs[0], combiner.rhs[0]}


def _position(axes: Sequence[IterVar]) -> Expr:
    """The number of a step in row-major order, from 0."""
    of = INT32 if all(axis.dtype is INT32 for axis in axes) else INT64
    position: Expr = build.const(0, of)
    for axis in axes:
        assert axis.dom is not None
        step = build.cast(of, build.sub(axis.var, axis.dom.min))
        position = build.add(build.mul(position, build.cast(of, extent_of(axis))), step)
    return position


# --- maximum and minimum ----------------------------------------------------------------------------------------------

_NOTHING, _START = -2, -1  # positions of no element, and of the value that the reduction starts with


def _to_the_first(op: ComputeOp, reduction: Reduce, where: Path, path: Path, value: Expr) -> tuple[Passed, Passed]:
    first = _first_position(op, reduction)
    at = load(first, tuple([axis.var for axis in op.axis]))

    def chosen(position: Any) -> Branch:
        return Branch(build.equal(at, position), True, False)

    source, position = reduction.source[0], _position(op.reduce_axis)
    return ([(source, (*path, *where, chosen(position)), value)],
            [(start, (*path, chosen(_START)), value) for start in reduction.init])


def _first_position(op: ComputeOp, reduction: Reduce) -> Tensor:
    """The position of the first element that is the result of a maximum or minimum; the first NaN where there is one."""
    better = build.greater if _is(reduction, Max) else build.less

    def combine(x: Any, y: Any) -> tuple[Expr, Expr]:
        (at, a), (other, b) = x, y
        both_nan = build.logical_and(_is_nan(a), _is_nan(b))
        beats = build.logical_or(better(a, b), build.logical_and(_is_nan(a), build.logical_not(_is_nan(b))))
        earlier = build.logical_and(build.less(at, other), build.logical_or(build.equal(a, b), both_nan))
        some = build.logical_and(build.not_equal(at, _NOTHING), build.logical_or(beats, earlier))
        first = build.logical_or(build.equal(other, _NOTHING), some)
        return build.select(first, at, other), build.select(first, a, b)

    def identity(of: Any, value: Any) -> tuple[Expr, Expr]:
        return build.const(_NOTHING, of), reduction.combiner.identity_element[0]

    winner = comm_reducer(combine, identity, name="first")

    def element(*i: Var) -> Any:
        at: dict[Var, Expr] = dict(zip([axis.var for axis in op.axis], i))
        axes = [reduced(axis, at) for axis in op.reduce_axis]
        at.update({axis.var: new.var for axis, new in zip(op.reduce_axis, axes)})
        position = _position(axes)
        start = (build.const(_START, position.dtype), *[substitute(value, at) for value in reduction.init])
        return winner((position, substitute(reduction.source[0], at)), axes, substitute(reduction.condition, at),
                      start if reduction.init else None)

    return Tensor(define(op.shape, element, [axis.name for axis in op.axis], f"{op.name}.first"), 0)


def _is_nan(value: Expr) -> Expr:
    return build.call(ISNAN, value, dtype_=BOOL)


# --- every other reduction --------------------------------------------------------------------------------------------

def _between(op: ComputeOp, reduction: Reduce, where: Path, seeds: Seeds) -> tuple[Passed, Passed]:
    for axis in op.reduce_axis:
        if not is_fixed(axis, (*op.axis, *op.reduce_axis)):
            raise TedslError(f"gradient: {op.name} reduces over {axis.name}, whose range depends on another axis or on data, "
                             "by a reducer that is neither a sum nor a maximum or minimum",
                             hint="write the range with constants, and a condition: where=k < n")
    steps = build.const(1, INT32)
    for axis in op.reduce_axis:
        steps = build.product_of_extents(steps, extent_of(axis))
    if build.as_int(steps) == 0:
        return [], [(start, *seeds[number]) for number, start in enumerate(reduction.init) if number in seeds]
    elements = _elements(op, reduction, steps)
    before, after = _Partial(op, reduction, elements, steps, False), _Partial(op, reduction, elements, steps, True)
    at, outer = _position(op.reduce_axis), [axis.var for axis in op.axis]
    joined = before.joined_with(reduction.source, at, outer)
    whole = after.joined_with(joined, build.sub(build.sub(steps, 1), at), outer)
    passed = [(whole[number], (*path, *where), value) for number, (path, value) in seeds.items()]
    if not reduction.init:
        return passed, []
    zero = build.const(0, steps.dtype)
    every = after.joined_with([load(e, (zero, *outer)) for e in elements], build.sub(steps, 1), outer)
    started = _combined(reduction, reduction.init, every)
    return passed, [(started[number], path, value) for number, (path, value) in seeds.items()]


def _elements(op: ComputeOp, reduction: Reduce, steps: Expr) -> list[Tensor]:
    """What is reduced, as tensors of (step, *axes of the result); the identity where it is left out."""
    def values(t: Var, *i: Var) -> tuple[Expr, ...]:
        at: dict[Var, Expr] = dict(zip([axis.var for axis in op.axis], i))
        rest: Expr = t
        for position, axis in reversed(list(enumerate(op.reduce_axis))):
            assert axis.dom is not None
            extent = build.cast(rest.dtype, extent_of(axis))
            step = build.floormod(rest, extent) if position else rest
            rest = build.floordiv(rest, extent)
            at[axis.var] = build.add(axis.dom.min, build.cast(axis.dtype, step))
        found = zip(reduction.source, reduction.combiner.identity_element)
        return tuple([substitute(build.if_then_else(reduction.condition, source, nothing), at) for source, nothing in found])

    made = define((steps, *op.shape), values, ["t", *[axis.name for axis in op.axis]], f"{op.name}.elements")
    return [Tensor(made, number) for number in range(made.num_outputs)]


class _Partial:
    """The results of a reduction before each step, or after it (backwards): states of a scan."""

    def __init__(self, op: ComputeOp, reduction: Reduce, elements: Sequence[Tensor], steps: Expr, backwards: bool) -> None:
        self.reduction, self.backwards = reduction, backwards
        name = f"{op.name}.{'after' if backwards else 'before'}"
        axes = ["t", *[axis.name for axis in op.axis]]
        shape = (steps, *op.shape)
        states = [placeholder(shape, element.dtype, f"{name}.state") for element in elements]
        starts = reduction.combiner.identity_element if backwards or not reduction.init else reduction.init
        self.exact = self.is_product or (bool(reduction.init) and not backwards)

        def start(_: Var, *i: Var) -> tuple[Expr, ...]:
            return tuple([substitute(value, dict(zip([axis.var for axis in op.axis], i))) for value in starts])

        def step(t: Var, *i: Var) -> tuple[Expr, ...]:
            earlier = [load(state, (build.sub(t, 1), *i)) for state in states]
            at = build.sub(steps, t) if backwards else build.sub(t, 1)
            here = [load(element, (at, *i)) for element in elements]
            return self.combined(earlier, here)

        first = define((build.const(1, steps.dtype), *op.shape), start, axes, f"{name}.init")
        update = define(shape, step, axes, f"{name}.update")
        count = range(len(elements))
        made = scan([Tensor(first, n) for n in count], [Tensor(update, n) for n in count], states, elements, name)
        self.states: list[Tensor] = made if isinstance(made, list) else [made]

    @property
    def is_product(self) -> bool:
        return _is(self.reduction, Mul)

    def combined(self, partial: Sequence[Expr], values: Sequence[Expr]) -> tuple[Expr, ...]:
        """The partial results with the values on their other side."""
        return _combined(self.reduction, *((values, partial) if self.backwards else (partial, values)))

    def joined_with(self, values: Sequence[Expr], row: Expr, outer: Sequence[Expr]) -> tuple[Expr, ...]:
        """The partial results in row number `row` with the values. The first row has none: there the values are left alone,
        since an identity such as -inf may have no derivative.
        """
        partial = [load(state, (row, *outer)) for state in self.states]
        joined = self.combined(partial, values)
        if self.exact:
            return joined
        return tuple([build.select(build.equal(row, 0), alone, both) for alone, both in zip(values, joined)])


def _combined(reduction: Reduce, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
    combiner = reduction.combiner
    values = {**dict(zip(combiner.lhs, left)), **dict(zip(combiner.rhs, right))}
    return tuple([without_lets(substitute(result, values)) for result in combiner.result])
