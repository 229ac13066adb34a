"""Compute whole registers of sums where a tile ends within one: what lies beyond the end is never stored.

before:  allocate(S, [8]) { for (i: 0, 4) { S[ramp(0, 1, 8)] = 0 if m; for (k: 0, n) { S[ramp(0, 1, 8)] = S[ramp(0, 1, 8)]
             + A[i*n + k]*B[ramp(k*8, 1, 8)] if m }; C[ramp(i*6, 1, 8)] = S[ramp(0, 1, 8)] if m } }      m: the first 6 lanes
after:   allocate(S, [8]) { for (i: 0, 4) { allocate(S', [8]) { S'[ramp(0, 1, 8)] = 0; for (k: 0, n) { S'[ramp(0, 1, 8)] =
             S'[ramp(0, 1, 8)] + A[i*n + k]*B[ramp(k*8, 1, 8)] }; C[ramp(i*6, 1, 8)] = S'[ramp(0, 1, 8)] if m } } }

(All loads have the mask, those of B keep it.) A mask at each term would make of each multiply-add two narrower ones, or one and
a selection. The end of a tile has memory of its own, in which nothing lies before and of which nothing is read after it: code
generators keep it in other registers than those of whole tiles, whose vectors may be wider.

Only arrays of few elements whose every index is constant, which code generators keep in registers. A part of the program is the
end of a tile if it begins with stores to what it loads, and all of its accesses to the array have one mask, "the first lanes".
"""

from __future__ import annotations

import itertools

from tedsl.ir import build
from tedsl.ir.expr import Broadcast, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, Store, While, seq
from tedsl.ir.walk.contents import MASKED, POINTER, contains, of_kinds
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.machine.accumulators import BYTES
from tedsl.passes.machine.lane_slices import CannotSlice, slice_lanes
from tedsl.passes.machine.split_vectors import access_dtype, lanes_on
from tedsl.target.target import Target

Needs = dict[int, int]  # of an array: the elements from a place on that are read before they are written, by place


def fill_registers(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with sums at the ends of tiles in whole registers, without masks."""
    if not contains(func.body, MASKED) or not contains(func.body, Allocate):
        return func
    partial = {node.buffer_var for node in of_kinds(func.body, MASKED) if isinstance(node, (Load, Store)) and _count(node)}
    return func.with_body(_Filler(target, partial)(func.body)) if partial else func


class _Filler(ScopedRewriter):
    """Fills the ends of tiles. partial: the memory that is accessed with masks of the first lanes, where they may be."""

    def __init__(self, target: Target, partial: set[Var]) -> None:
        self.target, self.partial = target, partial

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)) or not contains(stmt, MASKED):
            return stmt
        if isinstance(stmt, Allocate) and stmt.buffer_var in self.partial and _is_registers(stmt):
            self.uses = _Uses(stmt.buffer_var)
            body = self.parts(stmt, stmt.body)
            stmt = stmt if body is stmt.body else stmt.replace(body=body)
        return self.descend(stmt)

    def parts(self, array: Allocate, stmt: Stmt) -> Stmt:
        """Returns `stmt`, which reads nothing of the array that was written before it, with the ends of tiles in it filled."""
        if not self.uses.accesses(stmt):
            return stmt
        match stmt:
            case For() | AttrStmt() | LetStmt() | Allocate() if self.uses.needs(stmt.body, {}) == {}:
                body = self.parts(array, stmt.body)
                return stmt if body is stmt.body else stmt.replace(body=body)
            case IfThenElse():
                then = self.parts(array, stmt.then_case)
                other = None if stmt.else_case is None else self.parts(array, stmt.else_case)
                same = then is stmt.then_case and other is stmt.else_case
                return stmt if same else stmt.replace(then_case=then, else_case=other)
            case SeqStmt():
                groups = self.uses.groups(stmt)
                if len(groups) > 1:
                    done = [self.parts(array, group) for group in groups]
                    return stmt if all(new is old for new, old in zip(done, groups)) else seq(*done)
        return self.filled(array, stmt) or stmt

    def filled(self, array: Allocate, stmt: Stmt) -> Stmt | None:
        """Returns the end of a tile in registers of its own; None if `stmt` is none."""
        accesses = self.uses.accesses(stmt)
        lanes = access_dtype(accesses[0]).lanes
        counts = {_count(access) for access in accesses}
        count = counts.pop()
        if counts or count is None or lanes == 1 or any(access_dtype(access).lanes != lanes for access in accesses):
            return None
        width = self.width(count, lanes, access_dtype(accesses[0]).bytes)
        try:
            body = _Whole(self.target, self.uses, lanes, count, width)(stmt)
        except CannotSlice:
            return None
        own = copy_var(array.buffer_var)
        return Allocate(own, array.dtype, array.extents, array.condition, substitute(body, {array.buffer_var: own}))

    def width(self, count: int, lanes: int, size: int) -> int:
        """The lanes of the registers that hold `count` elements: whole vectors, or one that is narrower."""
        native = max(1, self.target.vector_bits // (8 * size))
        return min(lanes, max(2, 1 << (count - 1).bit_length()) if count <= native else -(-count // native) * native)


class _Whole(ScopedRewriter):
    """Cuts the statements that use an array to `width` lanes, without masks at the array itself."""

    def __init__(self, target: Target, uses: _Uses, lanes: int, count: int, width: int) -> None:
        self.target, self.uses, self.lanes, self.count, self.width = target, uses, lanes, count, width
        self.memory = uses.memory

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Store):
            if any(self.uses.accesses(part) for part in _own_expressions(stmt)):
                raise CannotSlice("a load that is no part of a store would read more lanes than are stored")
            return self.descend(stmt)
        if not self.uses.accesses(stmt):
            return stmt
        if _count(stmt) != self.count:
            raise CannotSlice("a store without the mask of what it reads")
        all_on = [node.predicate for node in of_kinds(stmt, Load, Store) if self.width == self.count
                  and isinstance(node, (Load, Store)) and _count(node) == self.count]
        on = frozenset(predicate for predicate in all_on if predicate is not None)
        bare = _Bare(self.memory)(slice_lanes(stmt, self.lanes, 0, self.width, on))
        assert isinstance(bare, Store)
        accesses = [node for node in of_kinds(bare, Load, Store) if isinstance(node, (Load, Store))]
        others = [node for node in accesses if isinstance(node, Load) and node.predicate is not None]
        if not all(self.target.can_mask(node.dtype.element) for node in others):
            raise CannotSlice("a mask that the target lacks")
        if any(contains(node.index, Load) and self.uses.accesses(node.index) for node in accesses):
            raise CannotSlice("lanes beyond the end would be places in memory")
        return bare.replace(predicate=None) if bare.buffer_var is self.memory else bare


class _Bare(ScopedRewriter):
    """Loads of an array without their masks."""

    def __init__(self, memory: Var) -> None:
        self.memory = memory

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer_var is self.memory:
            return expr.replace(predicate=None)
        return self.descend(expr)


def _own_expressions(stmt: Stmt) -> tuple[Node, ...]:
    """The expressions of a statement that are in none of the statements inside of it."""
    match stmt:
        case LetStmt() | AttrStmt():
            return (stmt.value,)
        case IfThenElse() | While():
            return (stmt.condition,)
        case For():
            return (stmt.min, stmt.extent)
        case Allocate() | SeqStmt():
            return ()
        case _:
            return (stmt,)


def _is_registers(array: Allocate) -> bool:
    """Whether an array is small, and is accessed at constant places only, which do not overlap."""
    size = bytes_of(array)
    if size is None or size > BYTES or not contains(array.body, MASKED):
        return False
    places: dict[int, int] = {}
    for node in of_kinds(array.body, Load, Store, POINTER):
        if node is array.buffer_var:
            return False
        if not isinstance(node, (Load, Store)) or node.buffer_var is not array.buffer_var:
            continue
        place = _place(node)
        if place is None:
            return False
        places[place] = max(places.get(place, 0), access_dtype(node).lanes)
    return all(a + places[a] <= b for a, b in itertools.pairwise(sorted(places)))


def _place(access: Load | Store) -> int | None:
    """The first element that is accessed, a constant; None if it is none, or elements are no neighbours."""
    index = access.index
    if isinstance(index, Ramp):
        return build.as_int(index.base) if build.as_int(index.stride) == 1 else None
    return index.value if isinstance(index, IntImm) else None


def _count(access: Load | Store) -> int | None:
    """The number of lanes, the first ones, that a mask turns on; None if there is no such mask."""
    predicate = access.predicate
    on = None if predicate is None or isinstance(predicate, Broadcast) else lanes_on(predicate)
    count = None if on is None else build.as_int(on)
    return count if count is not None and 0 < count < access_dtype(access).lanes else None


class _Uses:
    """What statements do with the array at `memory`. Each statement and expression is looked at once."""

    def __init__(self, memory: Var) -> None:
        self.memory = memory
        self._accesses: dict[Node, list[Load | Store]] = {}
        self._loads: dict[Node, Needs] = {}

    def accesses(self, root: Node) -> list[Load | Store]:
        found = self._accesses.get(root)
        if found is None:
            if isinstance(root, Stmt) and not isinstance(root, (Store, Evaluate)):
                found = [access for child in root.child_nodes() for access in self.accesses(child)]
            else:
                found = [node for node in of_kinds(root, Load, Store)
                         if isinstance(node, (Load, Store)) and node.buffer_var is self.memory]
            self._accesses[root] = found
        return found

    def groups(self, stmt: SeqStmt) -> list[Stmt]:
        """The statements of a sequence in groups, as small as can be, that read nothing of the array that another one wrote."""
        groups: list[list[Stmt]] = []
        needs: Needs = {}
        group: list[Stmt] = []
        for part in reversed(stmt.seq):
            needs = self.needs(part, needs)
            group.append(part)
            if not needs:
                groups.append(group)
                group = []
        return [seq(*reversed(parts)) for parts in reversed([*groups, group] if group else groups)]

    def needs(self, stmt: Stmt, after: Needs) -> Needs:
        """What of the array `stmt` and what follows it read before they write it, where what follows it needs `after`."""
        match stmt:
            case SeqStmt():
                for part in reversed(stmt.seq):
                    after = self.needs(part, after)
                return after
            case Store():
                return self.needs_of_store(stmt, after)
            case For():
                once = self.needs(stmt.body, after)
                runs = stmt.kind == ForKind.SERIAL and (build.as_int(stmt.extent) or 0) > 0
                both = _joined(once, after)
                again = once if both == after else self.needs(stmt.body, both)
                return again if runs else _joined(again, after)
            case IfThenElse():
                other = after if stmt.else_case is None else self.needs(stmt.else_case, after)
                return _joined(self.loads(stmt.condition), self.needs(stmt.then_case, after), other)
            case Allocate():
                return self.needs(stmt.body, after)
            case AttrStmt() | LetStmt():
                return _joined(self.loads(stmt.value), self.needs(stmt.body, after))
            case _:
                return _joined(self.loads(stmt), after)

    def needs_of_store(self, store: Store, after: Needs) -> Needs:
        if after and store.buffer_var is self.memory:
            place, written = _place(store), access_dtype(store).lanes if store.predicate is None else _count(store) or 0
            after = {at: count for at, count in after.items() if at != place or count > written}
        return _joined(self.loads(store), after)

    def loads(self, root: Node) -> Needs:
        """The elements that are loaded below `root`."""
        loads = self._loads.get(root)
        if loads is None:
            loads = self._loads[root] = _joined(*({_place(node) or 0: _count(node) or access_dtype(node).lanes}
                                                  for node in self.accesses(root) if isinstance(node, Load)))
        return loads


def _joined(*needs: Needs) -> Needs:
    """All of these needs."""
    some = [one for one in needs if one]
    if len(some) < 2:
        return some[0] if some else {}
    joined: Needs = {}
    for one in some:
        for place, count in one.items():
            joined[place] = max(count, joined.get(place, 0))
    return joined
