"""The multi-dimensional indices of flat accesses, where they are proved.

    float32[64, 100] at i*100 + j, with j known to lie in 0..99    ->    [i, j]

An element of a compact array has exactly one tuple of indices within the shape. So indices that add up to the flat index, all
but the first within their dimensions, are those of the original formula. There is no entry for an access to memory that several
buffers share, or without a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise

from tedsl.arith.affine import Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr, IntImm, Load, Mul, Ramp, SizeVar, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.stmt import LOGICAL_SHAPE, Allocate, Stmt, Store
from tedsl.ir.walk.accesses import accesses
from tedsl.ir.walk.around import Around, Binding, Condition, Loop, Step
from tedsl.ir.walk.lanes import one_lane
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record

MOST_ACCESSES = 5000  # proved for one function: those of longer ones stay flat

Indices = tuple[Expr, ...]


def places_of(func: PrimFunc) -> dict[Node, Indices]:
    """Maps each Load and Store of `func` to its indices, and each Allocate to its shape, as far as they are known."""
    reader = _Reader(func)
    reader.read(func.body)
    return {node: indices for node, indices in reader.found.items() if indices is not None}


@record
class _Layout:
    """The shape and strides of a buffer in its memory; no strides: compact row-major."""

    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...] = ()
    offset: Expr | None = None


class _Known:
    """An analyzer that is moved from place to place and knows the loops and conditions around the present one."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.scopes: list[tuple[Around, ExitStack]] = []

    def enter(self, place: Around) -> None:
        """Moves to `place`: adds the facts that hold there and drops those of the previous place that do not."""
        while self.scopes and not place.includes(self.scopes[-1][0]):
            self.scopes.pop()[1].close()
        depth = self.scopes[-1][0].depth if self.scopes else 0
        pending = []
        at: Around | None = place
        while at is not None and at.depth > depth:
            pending.append(at)
            at = at.outer
        for inner in reversed(pending):
            scope = ExitStack()
            self.learn(inner.step, scope)
            self.scopes.append((inner, scope))

    def learn(self, step: Step | None, scope: ExitStack) -> None:
        match step:
            case Loop(var=var, min=low, extent=extent):
                self.analyzer.bind(var, Range.from_min_extent(low, extent))
                scope.enter_context(self.analyzer.constraint_scope(build.greater(extent, 0)))
            case Binding(var=var, value=value) if value.dtype.is_integer and value.dtype.lanes == 1:
                self.analyzer.bind_let(var, value)
            case Condition(expr=expr) if expr.dtype.lanes == 1 and not step.chosen_by:
                scope.enter_context(self.analyzer.constraint_scope(step.value))


class _Reader:
    """Finds the indices of the accesses of a function."""

    def __init__(self, func: PrimFunc) -> None:
        self.known = _Known()
        self.analyzer = self.known.analyzer
        self.found: dict[Node, Indices | None] = {}
        self.layouts: dict[Var, _Layout] = {}
        for buffer in func.buffers:
            self.declare(buffer)

    def read(self, body: Stmt) -> None:
        for node in post_order(body):
            if isinstance(node, Allocate):
                self.allocate(node)
        for number, access in enumerate(accesses(body)):
            if number < MOST_ACCESSES:
                self.known.enter(access.around)
                self.access(access.node)
            else:
                self.found[access.node] = None

    def declare(self, buffer: Buffer) -> None:
        offset = None if build.as_int(buffer.elem_offset) == 0 else buffer.elem_offset
        self.layouts[buffer.data] = _Layout(buffer.shape, buffer.strides, offset)
        for dim in buffer.shape:
            if isinstance(dim, Var) and not isinstance(dim, SizeVar) and not self.analyzer.known.has_met(dim):
                self.analyzer.bind(dim, (0, None))

    def allocate(self, stmt: Allocate) -> None:
        """Records the shape of an allocation that flattening noted, if its size still agrees."""
        shape: tuple[Expr, ...] = tuple(stmt.annotations.get(LOGICAL_SHAPE, stmt.extents))
        if shape is not stmt.extents:
            size, whole = (self.analyzer.simplify(build.cast("int64", _product(dims))) for dims in (shape, stmt.extents))
            is_whole = self.analyzer.known.same(size, whole)
            shape = tuple(map(self.analyzer.simplify, shape)) if is_whole else stmt.extents
        self.layouts[stmt.buffer_var] = _Layout(shape)
        self.found[stmt] = shape

    def access(self, node: Load | Store) -> None:
        """Records the indices of an access; those of a node that occurs at several places must be proved at each."""
        layout = self.layouts.get(node.buffer_var) if isinstance(node, (Load, Store)) else None
        if layout is None or (node in self.found and self.found[node] is None):
            return
        indices = self.indices(node, layout)
        before = self.found.setdefault(node, indices)
        if before is not indices and (before is None or indices is None or not all(map(self.same, before, indices))):
            self.found[node] = None

    def same(self, a: Expr, b: Expr) -> bool:
        if isinstance(a, Ramp) and isinstance(b, Ramp):
            return a.lanes == b.lanes and self.same(a.base, b.base) and self.same(a.stride, b.stride)
        return a.dtype is b.dtype and a.dtype.lanes == 1 and self.analyzer.known.same(a, b)

    def indices(self, node: Load | Store, layout: _Layout) -> Indices | None:
        index, mask, lanes = node.index, node.predicate, node.index.dtype.lanes
        if lanes == 1:
            with self.analyzer.constraint_scope(build.true() if mask is None else mask):
                return _split(index, layout, self.analyzer)
        if not isinstance(index, Ramp):
            return None
        lane = Var("lane", index.base.dtype)
        self.analyzer.bind(lane, (0, lanes - 1))
        in_lane = None if mask is None else one_lane(mask, lane)
        with self.analyzer.constraint_scope(build.true() if in_lane is None else in_lane):
            parts = _split(build.add(index.base, build.mul(index.stride, lane)), layout, self.analyzer)
        if parts is None:
            return None
        vectors = [self.as_vector(part, lane, lanes) for part in parts]
        return None if None in vectors else tuple(part for part in vectors if part is not None)

    def as_vector(self, index: Expr, lane: Var, lanes: int) -> Expr | None:
        """Returns an index of one lane as the ramp of all lanes; None if its steps are not equal."""
        known = self.analyzer.known
        total = known.sum(index)
        step = total.terms.get(lane, 0)
        rest = total.without(lane)
        if any(lane in post_order(term) for term in rest.terms):
            return None
        if step == 0:
            return index
        base = known.build(rest, index.dtype)
        return None if base is None else Ramp(base, IntImm(index.dtype, step), lanes)


def _product(dims: Sequence[Expr]) -> Expr:
    size: Expr = build.const(1, "int32")
    for dim in dims:
        size = build.product_of_extents(size, dim)
    return size


# --- one index as several ---

def _split(flat: Expr, layout: _Layout, analyzer: Analyzer) -> Indices | None:
    """Returns the indices of element `flat` of the memory; None if they are not proved."""
    if not flat.dtype.is_integer:
        return None
    known = analyzer.known
    total = known.sum(analyzer.simplify(flat))
    if layout.offset is not None:
        total = total.plus(known.sum(analyzer.simplify(layout.offset)), -1)
    if not layout.shape:
        return () if not total.terms and not total.const else None
    if len(layout.shape) == 1 and not layout.strides:
        index = flat if layout.offset is None else known.build(total, flat.dtype)
        return None if index is None else (index,)
    if any(isinstance(stride, Var) for stride in layout.strides):
        return _by_strides(total, layout, flat, analyzer)
    return _by_extents(total, layout, flat, analyzer)


def _by_extents(total: Sum, layout: _Layout, flat: Expr, analyzer: Analyzer) -> Indices | None:
    """Returns the indices by the extents of the dimensions, innermost first: an index consists of the terms that the extent
    does not divide. None if they are not proved.
    """
    steps = _steps(layout)
    if steps is None:
        return None
    indices: list[Expr] = []
    known = analyzer.known
    for extent, step in reversed(list(zip(layout.shape[1:], steps))):
        outer, inner = _divided(total, step, analyzer)
        parts = _carried(outer, inner, step, analyzer)
        if parts is None:
            return None
        outer, inner = parts
        index = known.build(inner, flat.dtype)
        if index is None or not _within(index, extent, analyzer):
            return None
        indices.append(index)
        total = outer
    first = known.build(total, flat.dtype)
    return None if first is None else (first, *reversed(indices))


def _steps(layout: _Layout) -> list[Expr] | None:
    """Returns, for each dimension but the first, the stride of the dimension before it divided by its own; None if unknown."""
    if not layout.strides:
        return list(layout.shape[1:])
    strides = [build.as_int(stride) for stride in layout.strides]
    if None in strides or strides[-1] != 1:
        return None
    numbers = [int(stride) for stride in strides if stride is not None]
    if any(inner <= 0 or outer % inner for outer, inner in pairwise(numbers)):
        return None
    return [build.const(outer // inner, "int32") for outer, inner in pairwise(numbers)]


def _divided(total: Sum, step: Expr, analyzer: Analyzer) -> tuple[Sum, Sum]:
    """Returns (outer, inner) with `total` = outer * step + inner: `step` divides the terms of outer."""
    outer, inner = Sum({}, 0), Sum({}, total.const)
    number = build.as_int(step)
    for term, factor in total.terms.items():
        if number is not None:
            if number and factor % number == 0:
                outer = outer.plus(Sum({term: factor // number}))
            else:
                inner = inner.plus(Sum({term: factor}))
            continue
        quotient = _quotient(term, step, analyzer)
        if quotient is None:
            inner = inner.plus(Sum({term: factor}))
        else:
            outer = outer.plus(quotient, factor)
    return outer, inner


def _quotient(term: Expr, step: Expr, analyzer: Analyzer) -> Sum | None:
    """Returns `term` / `step` where `step` is a factor of the term, else None."""
    known = analyzer.known
    if known.same(term, step):
        return Sum({}, 1)
    rest: list[Expr] = []
    stack, taken = [term], False
    while stack:
        factor = stack.pop()
        if isinstance(factor, Mul) and not known.same(factor, step):
            stack += [factor.b, factor.a]
        elif not taken and factor.dtype is step.dtype and known.same(factor, step):
            taken = True
        else:
            rest.append(factor)
    if not taken:
        return None
    product = rest[0]
    for factor in rest[1:]:
        product = build.mul(product, factor)
    return known.sum(analyzer.simplify(product))


def _carried(outer: Sum, inner: Sum, step: Expr, analyzer: Analyzer) -> tuple[Sum, Sum] | None:
    """Moves a multiple of a constant `step` from `inner` to `outer`, so that the least value of inner lies in 0..step - 1; or
    None.
    """
    number = build.as_int(step)
    if number is None:
        return outer, inner
    low, _ = analyzer.known.range_of(inner)
    if low is None or number <= 0:
        return None
    count = low // number
    return outer.shifted(count), inner.shifted(-count * number)


def _within(index: Expr, extent: Expr, analyzer: Analyzer) -> bool:
    """Tells whether `index` is proved to lie in 0..extent - 1."""
    low, high = analyzer.bounds(index)
    number = build.as_int(extent)
    if number is not None:
        return low is not None and high is not None and low >= 0 and high < number
    at_least = low is not None and low >= 0
    if not at_least and not analyzer.can_prove(build.greater_equal(index, 0)):
        return False
    return analyzer.can_prove(build.less(index, build.cast(index.dtype, extent)))


def _by_strides(total: Sum, layout: _Layout, flat: Expr, analyzer: Analyzer) -> Indices | None:
    """Returns the indices by strides that are variables: each index is the coefficient of its stride. None if they are not
    proved.
    """
    known = analyzer.known
    indices: list[Expr] = []
    for stride in layout.strides:
        if not isinstance(stride, Var) or layout.strides.count(stride) > 1:
            return None
        part, total = _divided(total, stride, analyzer)
        index = known.build(part, flat.dtype)
        if index is None:
            return None
        indices.append(index)
    return tuple(indices) if not total.terms and not total.const else None

