"""Extracts some lanes of a vector statement as a narrower statement, or of a vector as a narrower one.

Lanes of places that lie beside each other in rows, and go on in the next row, are those of two straight parts:

    lane k of floordiv(ramp(x, 1, 16), 56)*n + floormod(ramp(x, 1, 16), 56)*m is  (k < next ? here : there) + k*m  with
    next = 56 - floormod(x, 56), here = lane 0, there = lane next - next*m
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tedsl.ir import build
from tedsl.ir.expr import (
    Add,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Mul,
    Not,
    Ramp,
    Select,
    Shuffle,
    Var,
)
from tedsl.ir.ops import COMBINE_LANES, IF_THEN_ELSE, LANE_MASK
from tedsl.ir.stmt import IfThenElse, LetStmt, Stmt, Store, no_op
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.folding import is_always_false, is_always_true
from tedsl.passes.loops.vectorize_expr import ELEMENTWISE

_MIX = (LANE_MASK, *COMBINE_LANES)
_INSIDE = (Load, Let, Shuffle, *_MIX)  # what scalars have to do with lanes


Part = TypeVar("Part", Stmt, Expr)


class TwoParts(NamedTuple):
    """Places of lanes in a row and in the next one: lane k is k * step behind `here` if k < next, else behind `there`. Both are
    without `apart`, which all lanes have in common.
    """

    apart: Expr
    here: Expr
    there: Expr
    next: Expr
    step: int

    def lane(self, number: int) -> Expr:
        start = self.here
        if number:
            start = Select(build.less(number, self.next), self.here, self.there)
        return build.add(build.add(self.apart, start), number * self.step)


class CannotSlice(Exception):
    """Raised for a vector whose lanes are not independent, or that is bound outside."""


def slice_lanes(stmt: Part, lanes: int, first: Expr | int, width: int, on: frozenset[Expr] = frozenset()) -> Part:
    """Returns a copy of `stmt`, which has `lanes` lanes, for lanes first .. first + width - 1. The masks `on` are known to hold
    there.

    Raises CannotSlice where a vector is bound outside of `stmt` (unless `first` is a constant) or mixes its lanes.
    """
    return _Slicer(lanes, build.as_expr(first), width, on)(fresh_copy(stmt))  # type: ignore[no-any-return]


class _Slicer(Rewriter):
    """Rewrites bottom-up, so that the children of a vector are sliced before it. on: masks that are known to hold."""

    def __init__(self, lanes: int, first: Expr, width: int, on: frozenset[Expr]) -> None:
        super().__init__()
        self.lanes, self.first, self.width, self.on = lanes, first, width, on
        self.lets: dict[Var, Var] = {}
        self._done: dict[Any, Any] = {}

    def __call__(self, root: Any) -> Any:
        done = self._done
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            if not self.on and isinstance(node, Expr) and node.dtype.lanes == 1 and not contains(node, *_INSIDE):
                done[node] = stack.pop()
                continue
            if isinstance(node, (Let, LetStmt)) and node.var.dtype.lanes == self.lanes:
                self.lets.setdefault(node.var, Var(node.var.name, self.narrow(node.var)))
            pending = [c for c in node.child_nodes() if c not in done]
            if pending:
                stack.extend(reversed(pending))
            else:
                stack.pop()
                done[node] = self.slice(node)
        return done[root]

    def narrow(self, e: Expr) -> Any:
        return e.dtype.with_lanes(self.width) if e.dtype.lanes == self.lanes else e.dtype

    def slice(self, node: Any) -> Any:
        if isinstance(node, Stmt):
            return self.statement(node)
        if not isinstance(node, Expr):
            return node.map_children(self._done.__getitem__)
        if node in self.on:
            return build.true() if self.width == 1 else Broadcast(build.true(), self.width)
        if node.dtype.lanes == 1 and not isinstance(node, (Load, Let)):
            mixes = isinstance(node, Shuffle) or (isinstance(node, Call) and node.op in _MIX)
            return self.fail(node) if mixes else node.map_children(self._done.__getitem__)
        if node.dtype.lanes not in (1, self.lanes):
            self.fail(node)
        return self.vector(node)

    def fail(self, node: Any) -> Any:
        raise CannotSlice(type(node).__name__)

    def vector(self, node: Any) -> Expr:
        new = [self._done[c] for c in node.child_nodes()]
        match node:
            case Ramp(stride=step):
                base = build.add(new[0], build.cast(node.base.dtype, build.mul(self.first, build.cast(self.first.dtype, step))))
                return base if self.width == 1 else Ramp(base, new[1], self.width)
            case Broadcast():
                return new[0] if self.width == 1 else Broadcast(new[0], self.width)
            case Var():
                return self.variable(node)
            case Load():
                return self.load(node)
            case BinaryOp():
                kind: Any = type(node)
                rebuilt: Expr = kind(*new)
                return rebuilt
            case Not() | Select():
                node_type: Any = type(node)
                rebuilt = node_type(*new)
                return rebuilt
            case Cast():
                return Cast(self.narrow(node), new[0])
            case Call(op=op) if op in ELEMENTWISE or op is IF_THEN_ELSE:
                return Call(self.narrow(node), op, tuple(new))
            case Let(var=v):
                return Let(self.lets.get(v, v), new[0], new[1])
            case _:
                return self.fail(node)  # type: ignore[no-any-return]

    def variable(self, var: Var) -> Expr:
        if var in self.lets:
            return self.lets[var]
        if not isinstance(self.first, IntImm):
            return self.fail(var)  # type: ignore[no-any-return]
        return Shuffle((var,), tuple(build.const(self.first.value + k, "int32") for k in range(self.width)))

    def load(self, node: Load) -> Expr:
        index = self._done[node.index]
        predicate = None if node.predicate is None else self._done[node.predicate]
        if predicate is not None and is_always_true(predicate):
            predicate = None
        load = Load(self.narrow(node), node.buffer_var, index, predicate)
        if predicate is None or self.width > 1 or node.dtype.lanes == 1:
            return load
        return build.if_then_else(predicate, load.replace(predicate=None), build.const(0, node.dtype.element))

    def statement(self, node: Stmt) -> Stmt:
        match node:
            case Store():
                return self.store(node)
            case LetStmt(var=v):
                return LetStmt(self.lets.get(v, v), self._done[node.value], self._done[node.body])
            case _:
                return node.map_children(self._done.__getitem__)

    def store(self, node: Store) -> Stmt:
        if node.value.dtype.lanes == 1:
            return node.map_children(self._done.__getitem__)
        value, index = self._done[node.value], self._done[node.index]
        predicate = None if node.predicate is None else self._done[node.predicate]
        if predicate is None or is_always_true(predicate):
            return Store(node.buffer_var, value, index)
        if is_always_false(predicate):
            return no_op()
        if self.width == 1:
            return IfThenElse(predicate, Store(node.buffer_var, value, index))
        return Store(node.buffer_var, value, index, predicate)


def two_parts(index: Expr, bound: Callable[[str, Expr], Var]) -> TwoParts | None:
    """Returns the places of a vector of lanes as those of two rows, whose starts are `bound`; None if they are no such places.
    """
    apart, lanes = _parted(index)
    rows = _Rows()
    step = rows.step(lanes) if lanes is not None else None
    if lanes is None or step is None or rows.place is None or rows.length < index.dtype.lanes:
        return None
    length = build.const(rows.length, rows.place.dtype)
    behind = bound("next", build.sub(length, build.floormod(rows.place, length)))
    there = build.sub(slice_lanes(lanes, index.dtype.lanes, behind, 1), build.mul(behind, step))
    here = slice_lanes(lanes, index.dtype.lanes, 0, 1)
    return TwoParts(apart, bound("here", here), bound("there", there), behind, step)


def _parted(index: Expr) -> tuple[Expr, Expr | None]:
    """Returns the sum of the terms of `index` that all lanes have in common, as a scalar, and that of the others."""
    common: Expr = build.const(0, index.dtype.element)
    own: Expr | None = None
    stack = [index]
    while stack:
        term = stack.pop()
        if isinstance(term, Add):
            stack += [term.b, term.a]
        elif isinstance(term, Broadcast):
            common = build.add(common, term.value)
        else:
            own = term if own is None else Add(own, term)
    return common, own


class _Rows:
    """The rows in which places lie beside each other. place: of the first lane. length: of the shortest row, of which all
    others are multiples; 0 if none is known.
    """

    def __init__(self) -> None:
        self.place: Expr | None = None
        self.length = 0
        self.number = Numbering()

    def step(self, e: Expr) -> int | None:
        """Returns how far lanes are apart in `e` in a row; None if that is not a constant."""
        match e:
            case Broadcast():
                return 0
            case Ramp(stride=IntImm(value=1), base=place):
                if self.place is not None and self.number(self.place) != self.number(place):
                    return None
                self.place = place
                return 1
            case Add(a=a, b=b):
                x, y = self.step(a), self.step(b)
                return None if x is None or y is None else x + y
            case Mul(a=a, b=Broadcast(value=IntImm(value=factor))):
                x = self.step(a)
                return None if x is None else factor * x
            case (FloorDiv() | FloorMod()) as part if isinstance(part.b, Broadcast) and isinstance(part.b.value, IntImm):
                a, length, x = part.a, part.b.value.value, self.step(part.a)
                if x == 0:
                    return 0
                if x != 1 or not isinstance(a, (Ramp, FloorMod)) or length < 1 or not self.goes_with(length):
                    return None
                return 0 if isinstance(part, FloorDiv) else 1
            case _:
                return None

    def goes_with(self, length: int) -> bool:
        """Whether rows of this length end where one of the known rows does, or the other way round."""
        if not self.length:
            self.length = length
        if max(length, self.length) % min(length, self.length):
            return False
        self.length = min(length, self.length)
        return True
