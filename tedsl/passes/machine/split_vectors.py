"""Fit vectors to the machine: masks that it lacks become narrower vectors, very wide vectors become loops.

before:  B[ramp(i, 1, 8)] = A[ramp(i, 1, 8)]  if (ramp(i, 1, 8) < broadcast(n, 8))
after:   let count = n - i
         if (8 <= count) { B[ramp(i, 1, 8)] = A[ramp(i, 1, 8)] }
         else { if (count & 4) { four lanes }; if (count & 2) { two more }; if (count & 1) { the last one } }

A statement with a mask other than "the first lanes", or with several masks, is executed lane by lane. A mask that the target
supports stays. Vectors wider than the machine's stay too (LLVM splits them in registers), unless they would fill the register
file, have a mask where masks are no registers, or are not a power of two: LLVM takes those apart into single elements where a
value goes from block to block, as the accumulators of a loop do. They are cut into powers of two; with the masks of AVX-512,
into vectors of the machine and a rest.
"""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import GE, GT, LE, LT, Broadcast, Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import MASKED, contains, of_kinds
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.conjunctions import conjunction, mask_parts
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.loops.vectorize_expr import any_lane
from tedsl.passes.machine.lane_slices import CannotSlice, slice_lanes
from tedsl.target.target import Target

REGISTERS = 16  # of the machine's width in one vector: more would spill


def split_vectors(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with vectors and masks that `target` can execute well."""
    splitter = _Splitter(target)
    splitter.lacks_any = splitter.lacks_mask(func.body)
    return func.with_body(splitter(func.body))


class _Splitter(ScopedRewriter):
    """lacks_any: whether the function has an access with a mask that the target lacks."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.number = Numbering()
        self.lacks_any = True
        self.widest: dict[Stmt, Store | None] = {}  # of those around which a value is bound

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Evaluate():
                return stmt
            case Store():
                return self.store(stmt)
            case LetStmt() if stmt.value.dtype.lanes > 1:
                if self.lacks_mask(stmt):
                    return self.lane_by_lane(stmt, stmt.value.dtype.lanes)
                return self.by_registers(stmt, stmt.value.dtype.lanes) or self.bound(stmt, stmt.value.dtype.lanes)
            case _:
                return self.descend(stmt)

    def store(self, store: Store) -> Stmt:
        lanes = store.value.dtype.lanes
        if lanes == 1:
            return store
        try:
            if store.predicate is None and isinstance(store.index, Ramp) and build.as_int(store.index.stride) == 0:
                return slice_lanes(store, lanes, lanes - 1, 1)  # one place: the last lane stays
            pieces = self.pieces(lanes, store.value.dtype)
            if pieces is not None:
                return pieces_of(self, store, store, lanes, *pieces)
            if self.lacks_mask(store) or self.is_short(store, lanes):
                return self.unmasked(store, lanes)
            return self.by_registers(store, lanes) or store
        except CannotSlice:
            return store

    def bound(self, stmt: LetStmt, lanes: int) -> Stmt:
        """Cuts vectors that are bound, and what stores them, into the same pieces: each is one value from loop to loop."""
        widest = self.widest_under(stmt)
        pieces = None if widest is None or widest.value.dtype.lanes != lanes else self.pieces(lanes, widest.value.dtype)
        if widest is None or pieces is None or pieces[0]:
            return self.descend(stmt)
        try:
            return pieces_of(self, stmt, widest, lanes, *pieces)
        except CannotSlice:
            return self.descend(stmt)

    def widest_under(self, stmt: LetStmt) -> Store | None:
        """Returns the store in `stmt` with the widest elements, None if there is none or they differ in lanes. It is looked for
        once for all values that are bound around it.
        """
        if stmt not in self.widest:
            bound, body = [stmt], stmt.body
            while isinstance(body, LetStmt):
                bound.append(body)
                body = body.body
            stores = [n for n in of_kinds(body, Store) if isinstance(n, Store)]
            alike = len({store.value.dtype.lanes for store in stores}) == 1
            widest = max(stores, key=lambda store: store.value.dtype.bytes) if alike else None
            self.widest.update(dict.fromkeys(bound, widest))
        return self.widest[stmt]

    def lacks_mask(self, stmt: Stmt) -> bool:
        """Tells whether a masked vector access in `stmt` has elements that the target cannot mask."""
        return self.lacks_any and contains(stmt, MASKED) and any(
            n.predicate is not None and access_dtype(n).lanes > 1 and not self.target.can_mask(access_dtype(n).element)
            for n in of_kinds(stmt, MASKED) if isinstance(n, (Load, Store)))

    def by_registers(self, stmt: Stmt, lanes: int) -> Stmt | None:
        """Cuts accesses wider than a vector of the machine with masks that depend on a condition on all lanes and one on each,
        where masks are no registers; None for others.

        LLVM 22 splits such masks wrongly: half of one that is known to be off, beside lanes that the condition turns on, counts
        as on.
        """
        if self.target.has_mask_registers or not contains(stmt, MASKED):
            return None
        masked = [access_dtype(n) for n in of_kinds(stmt, MASKED)
                  if isinstance(n, (Load, Store)) and n.predicate is not None and not is_of_first_lanes(n.predicate)]
        width = min([self.native(d) for d in masked if d.lanes == lanes], default=lanes)
        if width >= lanes:
            return None
        try:
            return seq(*(slice_lanes(stmt, lanes, at, min(width, lanes - at)) for at in range(0, lanes, width)))
        except CannotSlice:
            return None

    def is_short(self, store: Store, lanes: int) -> bool:
        """Tells whether a mask turns on a constant number of lanes that fill one or two narrower vectors, which are cheaper.
        Two of a sum are not: it stays in a register, out of which each is taken and put in again.
        """
        prefix = None if store.predicate is None else self.prefix(store)
        count = None if prefix is None else build.as_int(prefix[1])
        is_sum = any(isinstance(n, Load) and n.buffer_var is store.buffer_var for n in of_kinds(store, Load))
        return count is not None and count <= lanes and len(powers(max(count, 0))) <= (1 if is_sum else 2)

    def pieces(self, lanes: int, dtype: DType) -> tuple[int, int] | None:
        """Returns how to cut a vector of `lanes` elements: the lanes of one step of a loop (0: no loop), and the lanes handled
        before the rest is cut into powers of two. None if it is better left whole.
        """
        native = self.native(dtype)
        if lanes > REGISTERS * native:
            return native, lanes - lanes % native
        return (0, 0) if lanes > native and lanes & (lanes - 1) else None

    def native(self, dtype: DType) -> int:
        """Returns the lanes of a vector of the machine."""
        return max(1, self.target.vector_bits // (8 * dtype.bytes))

    def loads_odd(self, stmt: Stmt) -> bool:
        """Tells whether the target loads vectors of any number of lanes at once, of the elements in `stmt`."""
        return self.target.has_mask_registers and all(
            self.target.can_mask(access_dtype(n).element) for n in of_kinds(stmt, Load, Store) if isinstance(n, (Load, Store)))

    def unmasked(self, store: Store, lanes: int) -> Stmt:
        prefix = self.prefix(store)
        if prefix is None:
            return self.lane_by_lane(store, lanes)
        scalars, count = prefix
        masks = self.on_together(store)
        known = build.as_int(count)
        if known is not None:
            done = seq(*(slice_lanes(store, lanes, at, width, masks) for at, width in powers(min(max(known, 0), lanes))))
        else:
            done = self.by_count(store, lanes, count, masks)
        return IfThenElse(conjunction(scalars), done) if scalars else done

    def on_together(self, store: Store) -> frozenset[Expr]:
        """Returns the predicates in `store` that are known to hold in all lanes when the mask of the store is on in all
        lanes.
        """
        assert store.predicate is not None
        once = any_lane(store.predicate)
        same = {self.number(store.predicate), self.number(once)}
        predicates = [n.predicate for n in post_order(store) if isinstance(n, (Load, Store)) and n.predicate is not None]
        return frozenset(p for p in predicates if self.number(p) in same)

    def by_count(self, store: Store, lanes: int, count: Expr, masks: frozenset[Expr]) -> Stmt:
        """Returns `store` whole where at least `lanes` lanes are on, else as one narrower vector for each bit of the count."""
        var = Var("count", count.dtype)
        zero = IntImm(count.dtype, 0)
        parts: list[Stmt] = []
        width = 1 << ((lanes - 1).bit_length() - 1)
        while width:
            at = build.mul(build.floordiv(var, 2 * width), 2 * width)
            taken = build.not_equal(build.bitwise_and(var, width), zero)
            parts.append(IfThenElse(taken, slice_lanes(store, lanes, at, width, masks)))
            width //= 2
        rest = IfThenElse(build.greater(var, zero), seq(*parts))
        whole = slice_lanes(store, lanes, 0, lanes, masks)
        return LetStmt(var, count, IfThenElse(build.greater_equal(var, lanes), whole, rest))

    def prefix(self, store: Store) -> tuple[list[Expr], Expr] | None:
        """Returns the scalar parts of the mask of `store` and the number of leading lanes that it turns on; None if it is not
        such a mask or `store` has other masks.
        """
        masks = [n.predicate for n in post_order(store) if isinstance(n, (Load, Store)) and access_dtype(n).lanes > 1]
        if store.predicate is None or len({self.number(m) for m in masks if m is not None}) != 1:
            return None
        parts = mask_parts(store.predicate)
        vectors = [part for part in parts if part.dtype.lanes > 1]
        if len(vectors) != 1:
            return None
        count = lanes_on(vectors[0])
        return None if count is None else ([part for part in parts if part.dtype.lanes == 1], count)

    def lane_by_lane(self, stmt: Stmt, lanes: int) -> Stmt:
        """Returns `stmt` as a loop over the lanes, or as one copy for each lane where a vector is bound outside of it."""
        lane = Var("lane")
        try:
            body = slice_lanes(stmt, lanes, lane, 1)
            return For(lane, IntImm(lane.dtype, 0), IntImm(lane.dtype, lanes), ForKind.SERIAL, body)
        except CannotSlice:
            try:
                return seq(*(slice_lanes(stmt, lanes, k, 1) for k in range(lanes)))
            except CannotSlice:
                return stmt


def pieces_of(splitter: _Splitter, stmt: Stmt, store: Store, lanes: int, step: int, main: int) -> Stmt:
    """Returns `stmt`, which is `store` or contains it, cut into narrower vectors: a loop of `step` lanes (one vector if `step`
    is 0) for the first `main` lanes, then powers of two; what remains below a vector of the machine stays one where masks load
    it at once.
    """
    parts: list[Stmt] = []
    if step and main:
        chunk = Var("chunk")
        body = slice_lanes(stmt, lanes, build.mul(chunk, step), step)
        parts.append(For(chunk, IntImm(chunk.dtype, 0), IntImm(chunk.dtype, main // step), ForKind.SERIAL, splitter.stmt(body)))
    elif main:
        parts.append(splitter.stmt(slice_lanes(stmt, lanes, 0, main)))
    rest = lanes - main
    odd = rest % splitter.native(store.value.dtype) if splitter.loads_odd(stmt) else 0
    pieces = [*powers(rest - odd), *([(rest - odd, odd)] if odd else [])]
    parts += [splitter.stmt(slice_lanes(stmt, lanes, main + at, width)) for at, width in pieces]
    return seq(*parts)


def powers(count: int) -> list[tuple[int, int]]:
    """Returns (first lane, width) of the powers of two that add up to `count`, the widest first."""
    pieces, at = [], 0
    for bit in reversed(range(count.bit_length())):
        if count >> bit & 1:
            pieces.append((at, 1 << bit))
            at += 1 << bit
    return pieces


def lanes_on(mask: Expr) -> Expr | None:
    """Returns the number of leading lanes that `mask` turns on, which may be negative or exceed the lanes; None for other
    masks.
    """
    if isinstance(mask, (GT, GE)):
        ramp, limit, equal = mask.b, mask.a, isinstance(mask, GE)
    elif isinstance(mask, (LT, LE)):
        ramp, limit, equal = mask.a, mask.b, isinstance(mask, LE)
    else:
        return None
    if not isinstance(ramp, Ramp) or build.as_int(ramp.stride) != 1 or not isinstance(limit, Broadcast):
        return None
    count = build.sub(limit.value, ramp.base)
    return build.add(count, 1) if equal else count


def is_of_first_lanes(mask: Expr) -> bool:
    """Returns whether `mask` turns on some first lanes, and is nothing else."""
    parts = mask_parts(mask)
    return len(parts) == 1 and lanes_on(parts[0]) is not None


def access_dtype(node: Load | Store) -> DType:
    return node.dtype if isinstance(node, Load) else node.value.dtype
