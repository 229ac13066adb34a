"""Read turned tiles by rows, and turn them in registers.

before:  for (k: 0, 16) { B[ramp(k*16, 1, 16)] = A[ramp(k, n, 16)] }            16 gathers of 16 elements
after:   let r0 = A[ramp(0, 1, 16)], r1 = A[ramp(n, 1, 16)], ..., r15           16 loads of rows,
         let s0 = shuffle(r0, r8), ...                                          4 times 16 shuffles
         B[ramp(0, 1, 16)] = ..., B[ramp(16, 1, 16)] = ..., ...                 16 stores

Iterations may also go down in memory, as where a window is flipped: the columns then come in the other order.

A gather, or a load for each lane, takes a cycle and more for each element; a shuffle moves a vector. The loop may read several
turned loads, compute with what it reads, and add to what it stores in every iteration. Where a constant extent is no multiple
of the tile, the last tile is read from before its end; what is left over of others keeps its own code.

The lanes may lie anywhere, as those of a vector that goes on in the next row of a matrix do, if each iteration moves all of
them to the next element: A[floordiv(ramp(x, 1, 16), 7)*n + floormod(ramp(x, 1, 16), 7)*m + broadcast(k, 16)]. A row then begins
where its lane of the index is in the first iteration, computed as a scalar.

Neighbouring lanes may be groups of neighbouring elements, if each iteration moves them to the next group: terms that are added
up at once, A[floordiv(ramp(x, 1, 32), 2)*n + floormod(ramp(x, 1, 32), 2) + broadcast(2*k, 32)]. Groups are words, which
change places as elements do otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.linear import detect_linear_equation
from tedsl.ir import build
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Add, Broadcast, Call, Expr, IntImm, Let, Load, Ramp, Shuffle, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, REINTERPRET
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import Substitution, fresh_copy, substitute
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.passes.facts.conjunctions import conjunction
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.folding import is_always_false
from tedsl.passes.machine.lane_slices import CannotSlice, slice_lanes, two_parts
from tedsl.passes.machine.mark_streams import MARK
from tedsl.passes.machine.split_vectors import lanes_on
from tedsl.target.target import Target

LARGEST = 16  # rows of a tile: a register each, and as many again while they are turned
SMALLEST = 4
MOST_WRITTEN = 4  # tiles beside each other that are written one by one; more are a loop
FEWEST_LANES = 3  # of a tile of four, whose last row is there twice
_WORDS = {16: dtype("uint16"), 32: dtype("float32"), 64: dtype("float64")}  # groups of elements that may move together
LANE_BYTES = 16  # of x86: interleaving instructions work inside of such parts of a vector


def transpose_tiles(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with turned loads of serial loops read by rows, where the target has fast shuffles."""
    if target.architecture not in ("x86-64", "aarch64") or not func.attrs.get("tir.noalias") or not contains(func.body, Ramp):
        return func
    own = {node.buffer_var for node in of_kinds(func.body, Allocate) if isinstance(node, Allocate)}
    return func.with_body(_Tiles(target, own)(func.body))


class _Tiles(ScopedRewriter):
    """own: the memory that the function allocates. marked: what is written past the cache here, in vectors whose starts are
    known.
    """

    def __init__(self, target: Target, own: set[Var]) -> None:
        self.target, self.own, self.marked = target, own, set[Var]()
        self.analyzer = Analyzer()
        self.number = Numbering()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return stmt
        if isinstance(stmt, AttrStmt) and stmt.attr_key == MARK:
            self.marked.add(stmt.node)
            inside = self.descend(stmt)
            self.marked.discard(stmt.node)
            return inside
        if isinstance(stmt, For) and stmt.kind is ForKind.SERIAL and (stores := _stores(stmt.body)):
            turned = self.turned_loads(stmt, stores)
            apart = conjunction(self.apart(store, stmt) for store in stores) if turned else build.const(False, "bool")
            if is_always_false(apart):
                return stmt
            if build.is_true(apart):
                return self.tiled(stmt, stmt.body, stores[0], turned)
            whole = fresh_copy(stmt)
            tiles = self.tiled(stmt, stmt.body, stores[0], turned)
            return stmt if tiles is stmt else IfThenElse(apart, tiles, whole)
        return self.descend(stmt)

    def turned_loads(self, loop: For, stores: Sequence[Store]) -> list[Load]:
        """Returns the loads whose neighbouring elements are read by consecutive iterations, upwards or downwards, not by
        neighbouring lanes.

        Empty if there are none, if the loop reads elements of what it writes that other iterations write, if it reads under a
        condition, or if some lanes are off for other reasons than their number.
        """
        lanes = stores[0].value.dtype.lanes
        alike = all(store.value.dtype.lanes == lanes and isinstance(store.index, Ramp) for store in stores)
        if lanes < FEWEST_LANES or not alike:
            return []
        if contains(loop.body, Let, IF_THEN_ELSE):
            return []  # what is loaded under a condition may not be there in the iterations beside
        loads = [node for node in of_kinds(loop.body, Load) if isinstance(node, Load)]
        if not any(_is_strided(load.index) for load in loads):
            return []
        bound = {node.var for node in of_kinds(loop.body, LetStmt) if isinstance(node, LetStmt)}
        written = {store.buffer_var: self.number(store.index) for store in stores}
        if any(self.reads_others(store, loop.loop_var, loads) for store in stores):
            return []
        if not self.has_one_mask(loop, stores, loads):
            return []
        accesses: list[Load | Store] = [*loads, *stores]
        if any(self.number(access.index) != written.get(access.buffer_var, self.number(access.index)) for access in accesses):
            return []
        groups = {load: self.group_of(load, loop.loop_var) for load in loads if load.buffer_var not in written
                  and not uses(load.index, bound) and not _reads(load.index, written)}
        size = min((group for group in groups.values() if group), default=0)
        return [load for load, group in groups.items() if group and group == size]

    def reads_others(self, store: Store, var: Var, loads: list[Load]) -> bool:
        """Tells whether an iteration may read elements that others write."""
        return any(load.buffer_var is store.buffer_var for load in loads) and self.step(store, var) != 0

    def step(self, store: Store, var: Var) -> int | None:
        """Returns how far the first lane moves from one iteration to the next; None if that is not a constant."""
        return build.as_int(self.moved(store, var))

    def moved(self, store: Store, var: Var) -> Expr:
        """Returns how far the first lane moves from one iteration to the next."""
        assert isinstance(store.index, Ramp)
        base = store.index.base
        linear = detect_linear_equation(base, [var])
        if linear:
            return linear[0]
        return self.analyzer.simplify(build.sub(substitute(base, {var: build.add(var, 1)}), base))

    def apart(self, store: Store, loop: For) -> Expr:
        """Returns the condition under which no iteration writes elements that others write in other lanes, whose order tiles
        change: lanes lie farther apart than all iterations reach, or iterations farther than all lanes.
        """
        assert isinstance(store.index, Ramp)
        step, stride, lanes = self.moved(store, loop.loop_var), store.index.stride, store.value.dtype.lanes
        known, gap = build.as_int(step), build.as_int(stride)
        if known == 0:
            return build.true()
        if known is not None and gap is not None:
            return build.const(abs(known) >= lanes * abs(gap), "bool")
        if uses(step, {loop.loop_var}) or any(isinstance(node, Load) for node in (*post_order(step), *post_order(stride))):
            return build.const(False, "bool")
        if known is not None:
            condition = build.greater_equal(stride, build.mul(build.cast(stride.dtype, loop.extent), abs(known)))
        elif gap is not None:
            condition = build.greater_equal(step, lanes * abs(gap))
        else:
            return build.const(False, "bool")
        return build.true() if self.analyzer.can_prove(condition) else condition

    def has_one_mask(self, loop: For, stores: Sequence[Store], loads: list[Load]) -> bool:
        """Tells whether all accesses are unmasked, or have the mask of the only store, which turns on the first lanes, as many
        in each iteration.
        """
        accesses: list[Load | Store] = [*loads, *stores]
        masks = [access.predicate for access in accesses if access.predicate is not None]
        if not masks:
            return True
        return len(stores) == 1 and stores[0].predicate is not None and len({self.number(mask) for mask in masks}) == 1 and \
            lanes_on(masks[0]) is not None and not uses(masks[0], {loop.loop_var})

    def group_of(self, load: Load, var: Var) -> int:
        """Returns the number of neighbouring elements to whose neighbours the next iteration moves; 0 if it moves otherwise."""
        step = _step(load.index, var, self.analyzer) if load.dtype.bits >= 8 and _is_strided(load.index) else None
        if step in (1, -1):
            return 1
        if step is None or step < 2 or load.dtype.lanes % step or load.dtype.bits * step not in _WORDS:
            return 0
        return step if self.has_groups(load.index, step) else 0

    def has_groups(self, index: Expr, size: int) -> bool:
        """Tells whether each `size` lanes of `index`, from a multiple of it on, are neighbouring elements."""
        one = index.dtype.element
        number = Var("number", one)
        self.analyzer.bind(number, Range(build.const(0, one), build.const(index.dtype.lanes // size, one)))
        try:
            first, *others = (slice_lanes(index, index.dtype.lanes, build.add(build.mul(number, size), at), 1)
                              for at in range(size))
        except CannotSlice:
            return False
        return all(build.as_int(self.analyzer.simplify(build.sub(other, first))) == at for at, other in enumerate(others, 1))

    def tiled(self, loop: For, body: Stmt, store: Store, turned: list[Load]) -> Stmt:
        """Returns `loop` in tiles, where `body` may store more than `store`."""
        group = self.group_of(turned[0], loop.loop_var)
        lanes, extent = store.value.dtype.lanes // group, build.as_int(loop.extent)
        width = min(LARGEST, *(self.target.vector_lanes(load.dtype.element) // group for load in turned),
                    max(_power_below(lanes), SMALLEST if lanes == FEWEST_LANES else 0),
                    LARGEST if extent is None else _power_below(extent))
        if width < SMALLEST:
            return loop
        if body is store and turned == [store.value] and isinstance(turned[0].index, Ramp) and self.has_lines(store, width):
            return self.line_by_line(loop, store, turned[0], width)
        tiles = build.maximum(build.floordiv(loop.extent, width), 0)  # an extent may be negative: then nothing runs
        step = Var(f"{loop.loop_var.name}.tile", loop.loop_var.dtype)
        alone = build.as_int(tiles) == 1
        first = loop.min if alone else build.add(loop.min, build.mul(step, width))
        rows = _Rows(loop.loop_var, first, 0, min(width, lanes), width, group)
        try:
            vectors = self.vectors_of_lines(store, lanes, rows)
            if vectors > 1:
                parts = rows.beside(lanes)
                tile = seq(*(self.whole_lines(parts[at:at + vectors], body, turned) for at in range(0, len(parts), vectors)))
            else:
                tile = self.side_by_side(loop, rows, body, store, turned)
        except CannotSlice:
            return loop
        main = tile if alone else For(step, build.const(0, step.dtype), tiles, ForKind.SERIAL, tile)
        if extent is not None and extent % width == 0:
            return main
        if extent is not None:  # the last tile again reads what is before the rest
            last = rows._replace(first=build.add(loop.min, extent - width), skipped=width - extent % width)
            return seq(main, self.side_by_side(loop, last, body, store, turned))
        done = build.mul(tiles, width)
        return seq(main, fresh_copy(loop.replace(min=build.add(loop.min, done), extent=build.sub(loop.extent, done))))

    def has_lines(self, store: Store, width: int) -> bool:
        """Tells whether each vector of `width` of several that are stored to memory of ours is a line, or lines."""
        lanes, size = store.value.dtype.lanes, store.value.dtype.element.bytes
        return store.predicate is None and store.buffer_var in self.own and lanes > width and lanes % width == 0 and \
            width * size % self.target.machine.line == 0

    def line_by_line(self, loop: For, store: Store, read: Load, width: int) -> Stmt:
        """Returns a loop that copies vectors of `width` of each row, and then those beside them: one tile instead of several,
        which would be alike.
        """
        part = Var("part", loop.loop_var.dtype)
        to, source = (_lanes_from(index, build.mul(part, width), width) for index in (store.index, read.index))
        narrow = Load(read.dtype.with_lanes(width), read.buffer_var, source)
        copy = Store(store.buffer_var, narrow, to)
        count = build.const(store.value.dtype.lanes // width, part.dtype)
        tiles = self.tiled(loop.replace(body=copy), copy, copy, [narrow])
        return For(part, build.const(0, part.dtype), count, ForKind.SERIAL, tiles)

    def side_by_side(self, loop: For, rows: _Rows, body: Stmt, store: Store, turned: list[Load]) -> Stmt:
        """Returns the iterations `rows` of all lanes of `body`: a tile for each `width` of them.

        Where sums in memory of ours leave more than half a tile, each tile begins as far behind the one before as lets the last
        one end with the lanes, so that all are one tile in a loop. Lanes of two tiles are stored twice, with the same values.
        Many whole tiles are a loop, too, unless they add up, which registers do at places that do not move, or are written
        past the cache.
        """
        lanes, width = store.value.dtype.lanes // rows.group, rows.width
        count, rest = -(-lanes // width), lanes % width
        sums = rows.group == 1 and all(load.buffer_var in self.own for load in turned)  # more of a matrix of the user is slower
        if lanes > width and 2 * rest > width and (lanes - width) % (count - 1) == 0 and sums and _may_repeat(body):
            tiles = self.in_a_loop(loop, rows, body, turned, count, (lanes - width) // (count - 1))
            if tiles is not None:
                return tiles
        on = None if store.predicate is None else build.as_int(lanes_on(store.predicate))
        used = lanes if on is None else min(lanes, -(-on // rows.group))  # what is certainly off has no tile
        whole = (lanes if on is None else min(lanes, on // rows.group)) // width
        parts = [part for part in rows.beside(lanes) if part.at < used]
        tiles = None
        if whole > MOST_WRITTEN and not _adds_up(body) and store.buffer_var not in self.marked:
            tiles = self.in_a_loop(loop, rows, body, turned, whole, width, _masks(store) if on is not None else frozenset())
        rests = parts if tiles is None else [part for part in parts if part.at >= whole * width]
        return seq(*([] if tiles is None else [tiles]), *(self.guarded(part, body, store, turned) for part in rests))

    def in_a_loop(self, loop: For, rows: _Rows, body: Stmt, turned: list[Load], count: int, step: int,
                  on: frozenset[Expr] = frozenset()) -> Stmt | None:
        """Returns a loop over `count` tiles of `rows`, each `step` lanes behind the one before; None where lanes from a number
        that is not constant cannot be taken, or are not read by the same loads. on: as of `slice_lanes`.
        """
        part, lanes = Var("part", loop.loop_var.dtype), _stores(body)[0].value.dtype.lanes
        try:
            narrow = slice_lanes(body, lanes, build.mul(part, step * rows.group), rows.width * rows.group, on)
        except CannotSlice:
            return None
        stores = _stores(narrow)
        loads = self.turned_loads(loop.replace(body=narrow), stores)
        if len(loads) < len(turned):
            return None
        tile = self.guarded(rows, narrow, stores[0], loads)
        return For(part, build.const(0, part.dtype), build.const(count, part.dtype), ForKind.SERIAL, tile)

    def vectors_of_lines(self, store: Store, lanes: int, rows: _Rows) -> int:
        """Returns how many vectors of a tile make up a line of memory, where its rows are whole lines and registers hold all of
        these vectors of one of them; else 1.
        """
        line = self.target.machine.line // (store.value.dtype.element.bytes * rows.group)
        is_whole = store.predicate is None and line and lanes % line == 0 and line % rows.width == 0
        return line // rows.width if is_whole and line <= LARGEST else 1

    def whole_lines(self, parts: Sequence[_Rows], body: Stmt, turned: list[Load]) -> Stmt:
        """Returns the tile `parts` of `body`, whose vectors are stored line after line: stores past the cache need that."""
        lets: list[tuple[Var, Expr]] = []
        stored: list[list[Stmt]] = []
        for rows in parts:
            names = {load: Var("column", load.dtype) for load in turned}
            sliced = rows.part_of(_Replaced(names)(body), turned[0].dtype.lanes)
            stored.append(_columns_stored(sliced, names, rows, lets))
        return _bound(lets, [store for line in zip(*stored) for store in line])

    def guarded(self, rows: _Rows, body: Stmt, store: Store, turned: list[Load]) -> Stmt:
        """Returns the iterations and lanes `rows` of `body`, or those of them that are on in its `store`."""
        whole, at, lanes = store.value.dtype.lanes, rows.at, rows.lanes
        if lanes == 1:
            return _iterations(rows.part_of(body, whole), rows)
        names = {load: Var("column", load.dtype) for load in turned}
        named = _Replaced(names)(body)
        if store.predicate is None:
            return _tile(rows.part_of(named, whole), names, rows)
        on = lanes_on(store.predicate)
        assert on is not None
        if rows.group > 1:
            on = build.floordiv(on, rows.group)
        if self.target.can_mask(store.value.dtype.element):  # rows of lanes that are off are copies of the last that is on
            rows = rows._replace(last=build.sub(on, 1))
            return IfThenElse(build.greater(on, at), _tile(rows.part_of(named, whole), names, rows))
        unmasked = rows.part_of(named, whole, _masks(store))
        apart = (_one_by_one if build.as_int(on) is None else _iterations)(rows.part_of(body, whole), rows)
        return IfThenElse(build.greater_equal(on, at + lanes), _tile(unmasked, names, rows), apart)


class _Rows(NamedTuple):
    """The part of a loop that a tile computes: `width` iterations of `var` from `first` on, of `lanes` lanes from `at` on.

    group: the neighbouring elements that count as a lane. last: the last lane that is read, None if all are. skipped: the first
    iterations, which are read but not computed.
    """

    var: Var
    first: Expr
    at: int
    lanes: int
    width: int
    group: int = 1
    last: Expr | None = None
    skipped: int = 0

    def beside(self, lanes: int) -> list[_Rows]:
        """Returns these iterations for `lanes` lanes, `width` at a time."""
        return [self._replace(at=at, lanes=min(self.width, lanes - at)) for at in range(0, lanes, self.width)]

    def part_of(self, body: Stmt, whole: int, on: frozenset[Expr] = frozenset()) -> Stmt:
        """Returns the lanes of `body`, whose vectors have `whole` elements. on: as of `slice_lanes`."""
        return slice_lanes(body, whole, self.at * self.group, self.lanes * self.group, on)


def _lanes_from(index: Expr, first: Expr, lanes: int) -> Ramp:
    """Returns `lanes` lanes of a ramp from `first` on."""
    assert isinstance(index, Ramp)
    moved = build.mul(index.stride, build.cast(index.stride.dtype, first))
    return Ramp(build.add(index.base, build.cast(index.base.dtype, moved)), index.stride, lanes)


def _is_strided(index: Expr) -> bool:
    """Tells whether neighbouring lanes may access other than neighbouring elements, or the same."""
    if isinstance(index, Ramp):
        return build.as_int(index.stride) not in (0, 1)
    return index.dtype.lanes > 1 and not isinstance(index, Broadcast)


def _step(index: Expr, var: Var, analyzer: Analyzer) -> int | None:
    """Returns how far all lanes of `index` move from one iteration to the next; None if that is not a constant, or if lanes
    may move differently.
    """
    by: Expr = build.const(0, index.dtype.element)
    stack: list[tuple[bool, Expr]] = [(True, index)]
    while stack:
        plus, term = stack.pop()
        if not uses(term, {var}):
            continue
        if isinstance(term, (Add, Sub)):
            stack += [(plus, term.a), (plus == isinstance(term, Add), term.b)]
            continue
        if isinstance(term, Broadcast):
            scalar = term.value
        elif isinstance(term, Ramp) and not uses(term.stride, {var}):
            scalar = term.base
        else:
            return None
        moved = build.sub(substitute(scalar, {var: build.add(var, 1)}), scalar)
        by = build.add(by, moved) if plus else build.sub(by, moved)
    return build.as_int(analyzer.simplify(by))


def _reads(index: Expr, written: Mapping[Var, Any]) -> bool:
    """Tells whether `index` depends on elements of what is `written`."""
    return any(isinstance(node, Load) and node.buffer_var in written for node in of_kinds(index, Load))


def _stores(body: Stmt) -> list[Store]:
    """Returns the stores of `body` if it consists of values that are bound, and then stores; else []."""
    while isinstance(body, LetStmt):
        body = body.body
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    return [part for part in parts if isinstance(part, Store)] if all(isinstance(part, Store) for part in parts) else []


def _masks(store: Store) -> frozenset[Expr]:
    """Returns the masks of a store and of what it reads, which are one."""
    masks = [store.predicate, *(node.predicate for node in post_order(store.value) if isinstance(node, Load))]
    return frozenset(mask for mask in masks if mask is not None)


def _may_repeat(body: Stmt) -> bool:
    """Tells whether `body` stores the same when it runs again: it has no masks and reads nothing that it stores."""
    return all(store.predicate is None for store in _stores(body)) and not _adds_up(body)


def _adds_up(body: Stmt) -> bool:
    """Tells whether `body` reads what it stores."""
    written = {store.buffer_var for store in _stores(body)}
    return any(isinstance(load, Load) and load.buffer_var in written for load in of_kinds(body, Load))


def _tile(body: Stmt, names: dict[Load, Var], rows: _Rows) -> Stmt:
    """Returns the iterations `rows` of `body`, a slice in which `names` stand for turned loads; these are read by rows."""
    lets: list[tuple[Var, Expr]] = []
    stored = _columns_stored(body, names, rows, lets)
    return _bound(lets, stored)


def _columns_stored(body: Stmt, names: dict[Load, Var], rows: _Rows, lets: list[tuple[Var, Expr]]) -> list[Stmt]:
    """Returns what `_tile` does in each iteration; what it reads and turns is bound in `lets`."""
    columns = [_columns(load, rows, lets) for load in names]
    moving: set[Any] = {rows.var, *names.values()}
    fixed = []  # what all iterations share
    for node in post_order(body):
        if not moving.isdisjoint(node.child_nodes()):
            moving.add(node)
        elif node not in moving:
            fixed.append(node)
    return [fresh_copy(_Iteration({rows.var: build.add(rows.first, at)}, dict(zip(names.values(), values)), fixed)(body))
            for at, values in enumerate(zip(*columns)) if at >= rows.skipped]


def _bound(lets: list[tuple[Var, Expr]], stored: list[Stmt]) -> Stmt:
    whole: Stmt = seq(*stored)
    for name, value in reversed(lets):
        whole = LetStmt(name, value, whole)
    return whole


def _iterations(body: Stmt, rows: _Rows) -> Stmt:
    """Returns copies of `body` for the iterations `rows`."""
    return seq(*(_iteration(body, rows, at) for at in range(rows.skipped, rows.width)))


def _one_by_one(body: Stmt, rows: _Rows) -> Stmt:
    """Returns a loop over the iterations `rows` of `body`: masks without instructions are branches, too many to write again."""
    var = Var(rows.var.name, rows.var.dtype)
    count = build.const(rows.width - rows.skipped, var.dtype)
    here = build.add(rows.first, build.add(var, rows.skipped))
    return For(var, build.const(0, var.dtype), count, ForKind.SERIAL, fresh_copy(substitute(body, {rows.var: here})))


def _iteration(body: Stmt, rows: _Rows, at: int) -> Stmt:
    return fresh_copy(substitute(body, {rows.var: build.add(rows.first, at)}))


class _Replaced(Rewriter):
    """Replaces loads by variables, and ramps by others."""

    kinds = (Load, Ramp)

    def __init__(self, by: Mapping[Any, Expr]) -> None:
        super().__init__()
        self.by = by

    def rewrite(self, node: Any) -> Any:
        return self.by.get(node, node) if isinstance(node, (Load, Ramp)) else node


class _Iteration(Substitution):
    """Replaces the variable of a loop, and slices of the variables that stand for turned loads by their `columns`. What is
    `fixed` stays.
    """

    def __init__(self, mapping: Mapping[Any, Any], columns: Mapping[Expr, Expr], fixed: list[Node]) -> None:
        super().__init__(mapping)
        self.columns = columns
        self._done.update(zip(fixed, fixed))

    def rewrite(self, node: Any) -> Any:
        if type(node) is Shuffle:
            return self.columns.get(node.vectors[0], node)
        return super().rewrite(node)


def _columns(load: Load, rows: _Rows, lets: list[tuple[Var, Expr]]) -> list[Expr]:
    """Returns the lanes of `load` in each of the iterations `rows`, made from rows of memory that are bound in `lets`."""
    backwards = (_step(load.index, rows.var, Analyzer()) or 0) < 0
    index = substitute(load.index, {rows.var: build.add(rows.first, rows.width - 1 if backwards else 0)})

    def bound(name: str, value: Expr) -> Var:
        lets.append((Var(name, value.dtype), value))
        return lets[-1][0]

    lanes = [build.as_expr(lane) if rows.last is None else build.minimum(lane, rows.last)
             for lane in range(rows.at, rows.at + rows.lanes)]
    numbers = lanes if rows.group == 1 else [build.mul(lane, rows.group) for lane in lanes]
    starts = _lanes_at(index, numbers, bound)
    whole, one = load.dtype.with_lanes(rows.width * rows.group), build.const(1, index.dtype.element)
    word = load.dtype.element if rows.group == 1 else _WORDS[load.dtype.element.bits * rows.group]
    read = [bound("row", _as_words(word, Load(whole, load.buffer_var, Ramp(start, one, whole.lanes)))) for start in starts]
    columns = transposed([*read, *[read[-1]] * (rows.width - rows.lanes)], LANE_BYTES // word.bytes,
                         lambda a, b, picks: bound("turned", Shuffle((a, b), _constants(tuple(picks)))))
    kept = None if rows.lanes == rows.width else _constants(tuple(range(rows.lanes)))
    return [_as_words(load.dtype.element, column if kept is None else Shuffle((column,), kept))
            for column in (reversed(columns) if backwards else columns)]


def _as_words(word: DType, value: Expr) -> Expr:
    """Returns the bits of a vector as another one of `word`."""
    if value.dtype.element is word:
        return value
    return Call(word.with_lanes(value.dtype.lanes * value.dtype.element.bits // word.bits), REINTERPRET, (value,))


def _lanes_at(index: Expr, numbers: Sequence[Expr], bound: Callable[[str, Expr], Var]) -> list[Expr]:
    """Returns the lanes `numbers` of `index` as scalars. What the ramps in it begin with is `bound` once for all of them."""
    if isinstance(index, Ramp):
        stride = index.stride
        return [build.add(index.base, build.mul(stride, build.cast(stride.dtype, number))) for number in numbers]
    known = [build.as_int(number) for number in numbers]
    parts = two_parts(index, bound) if None not in known else None
    if parts is not None:
        return [parts.lane(number) for number in known if number is not None]
    number_of, first = Numbering(), dict[int, Var]()
    for node in list(post_order(index)):
        if isinstance(node, Ramp) and not isinstance(node.base, (Var, IntImm)) and number_of(node.base) not in first:
            first[number_of(node.base)] = bound("first", node.base)
    shared = _Replaced({node: node.replace(base=first[number_of(node.base)]) for node in post_order(index)
                        if isinstance(node, Ramp) and number_of(node.base) in first})(index)
    return [slice_lanes(shared, index.dtype.lanes, number, 1) for number in numbers]


def transposed(rows: Sequence[Expr], part: int, shuffle: Callable[[Expr, Expr, list[int]], Expr]) -> list[Expr]:
    """Returns the columns of a square of as many rows as each has elements, by n log2(n) shuffles of two vectors.

    part: the elements that one instruction can interleave. Rows whose numbers differ in one bit are interleaved inside of such
    parts, which moves that bit of the number into the last bit of the position and the first bit of the position in the part to
    its place; then pairs of rows become the even and the odd parts of both, one instruction each, which moves that bit of the
    number into the first bit of the part, and the last bit of the part to its place.
    """
    size, now = len(rows), list(rows)
    part = min(part, size)
    apart = part // 2
    while apart:
        low = [at + k + side * size for at in range(0, size, part) for k in range(part // 2) for side in (0, 1)]
        now = _paired(now, apart, low, [pick + part // 2 for pick in low], shuffle)
        apart //= 2
    apart = part
    even = [2 * (k - k % part) + k % part for k in range(size)]
    while apart < size:
        now = _paired(now, apart, even, [pick + part for pick in even], shuffle)
        apart *= 2
    return now


def _paired(rows: list[Expr], apart: int, low: list[int], high: list[int],
            shuffle: Callable[[Expr, Expr, list[int]], Expr]) -> list[Expr]:
    """Returns the rows after each pair that is `apart` has become the lanes `low` and the lanes `high` of both."""
    result = list(rows)
    for at in range(len(rows)):
        if not at & apart:
            a, b = rows[at], rows[at + apart]
            result[at], result[at + apart] = shuffle(a, b, low), shuffle(a, b, high)
    return result


@functools.lru_cache(maxsize=256)
def _constants(picks: tuple[int, ...]) -> tuple[Expr, ...]:
    return tuple(build.const(pick, "int32") for pick in picks)


def _power_below(count: int) -> int:
    """Returns the largest power of two that is at most `count`, 0 for 0."""
    return 1 << count.bit_length() - 1 if count > 0 else 0
