"""Add up products of narrow integers by groups of neighbours, where the target has an instruction for that.

before:  for (r: 0, 4) { C[ramp(0, 1, 16)] += broadcast(int32(A[k + r]), 16)*int32x16(B[ramp(n + r, 4, 16)]) }
after:   C[ramp(0, 1, 16)] = dot(C[ramp(0, 1, 16)], A[k .. k + 3] sixteen times, B[n .. n + 63])

Integer sums may be taken in any order, so that every schedule counts which adds such products to the same elements in a short
loop, in its unrolled copies, or in one sum, whatever stands between them. The elements of a group are neighbours in both
operands: an operand is a vector with a step of the group's size, or one number for all lanes.

Masked sums have no groups, so those at the end of a tile fill registers before. What is multiplied may keep a mask of the first
lanes.

Sums of products of bfloat16 are taken by pairs only where a pragma says so: the instruction takes denormal numbers as zero, and
adds in an order of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tedsl.ir import build
from tedsl.ir.dtype import INT32, DType
from tedsl.ir.expr import LT, Add, Broadcast, Call, Cast, Expr, IntImm, Load, Mul, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import DOT, REINTERPRET
from tedsl.ir.stmt import Allocate, AttrStmt, For, ForKind, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.folding import fold_with
from tedsl.passes.machine.lane_slices import CannotSlice, slice_lanes
from tedsl.passes.machine.split_vectors import lanes_on
from tedsl.passes.products.move_signs import move_signs
from tedsl.passes.storage.fill_registers import fill_registers
from tedsl.target.target import Target

PRAGMA = "pragma_bfloat16_pairs"
LONGEST = 16  # iterations of a loop that is taken for some groups
LEAST = 4  # lanes


class Operand(NamedTuple):
    """Elements of a buffer: from `base` on, in each lane the next group (`moves`), or the same in all lanes."""

    load: Load
    base: Expr
    moves: bool  # then its mask, if it has one, turns on the first lanes


class Term(NamedTuple):
    """A product that is added to the elements `place` of a buffer."""

    value: Expr
    left: Operand
    right: Operand


def use_dot_products(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with groups of products of narrow integers added to 32-bit sums by `tir.dot`."""
    if not contains(func.body, Cast):
        return func
    nodes = list(post_order(func.body))
    if not any(isinstance(n, Mul) and n.dtype.lanes >= LEAST and _terms_of_group(n, target) > 1 for n in nodes):
        return func
    func = fill_registers(func, target)
    allocated = {n.buffer_var for n in nodes if isinstance(n, Allocate)}
    return move_signs(func.with_body(_Dots(target, bool(func.attrs.get("tir.noalias")), allocated)(func.body)), target)


def _is_narrow(of: DType) -> bool:
    return of.bits < 32 and (of.is_integer or of.code == "bfloat")


class _Dots(ScopedRewriter):
    def __init__(self, target: Target, noalias: bool, allocated: set[Var]) -> None:
        self.target, self.noalias, self.allocated = target, noalias, allocated
        self.number = Numbering()
        self.floats = False  # whether sums of bfloat16 may be taken by pairs

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case AttrStmt(attr_key=key, body=body) if key == PRAGMA:
                before, self.floats = self.floats, True
                done = self.stmt(body)
                self.floats = before
                return done
            case Store():
                return self.run([stmt]) or stmt
            case SeqStmt():
                return self.sequence(stmt)
            case For(kind=ForKind.SERIAL, extent=IntImm(value=n)) if 1 < n <= LONGEST:
                return self.short(stmt, n) or self.descend(stmt)
            case _:
                return self.descend(stmt)

    def short(self, loop: For, extent: int) -> Stmt | None:
        """Returns a loop over sums as groups; None if it does something else, or if terms are left over."""
        parts = loop.body.seq if isinstance(loop.body, SeqStmt) else (loop.body,)
        body = [s for s in parts if isinstance(s, Store) and self.terms(s)]
        if len(body) < len(parts) or any(s.buffer_var is not body[0].buffer_var for s in body):
            return None
        places = [build.add(loop.min, build.const(r, loop.loop_var.dtype)) for r in range(extent)]
        copies = [fold_with(s, {loop.loop_var: place}) for place in places for s in body]  # also where it is widened
        return self.run(copies, whole=True)

    def sequence(self, stmt: SeqStmt) -> Stmt:
        """Returns the statements with each run of sums as groups."""
        done: list[Stmt] = []
        sums: list[Store] = []
        for part in (*stmt.seq, None):
            if isinstance(part, Store) and self.terms(part) and all(s.buffer_var is part.buffer_var for s in sums):
                sums.append(part)
                continue
            if sums:
                grouped = self.run(sums)
                done += [grouped] if grouped is not None else sums
                sums = []
            if part is not None:
                done.append(self.stmt(part))
        same = len(done) == len(stmt.seq) and all(a is b for a, b in zip(done, stmt.seq))
        return stmt if same else seq(*done)

    def run(self, stores: list[Store], whole: bool = False) -> Stmt | None:
        """Returns the stores, each of which adds terms to elements of one buffer, by groups; None if there is no group, or, if
        `whole`, if a term is left over.
        """
        places: dict[tuple[int, int], list[Store]] = {}
        for store in stores:
            places.setdefault((self.number(store.index), store.value.dtype.lanes), []).append(store)
        done: list[Stmt] = []
        found = False
        for same in places.values():
            listed = [self.terms(store) for store in same]
            groups, rest = self.groups([term for terms in listed for term in terms or ()])
            added = None if None in listed or not groups else self.added(same, groups, rest)
            if whole and (rest or added is None):
                return None
            found |= added is not None
            done += same if added is None else added
        return seq(*done) if found else None

    # --- what is added ----------------------------------------------------------------------------------------------

    def terms(self, store: Store) -> list[Term] | None:
        """Returns the products of narrow integers that the store adds to what it overwrites; None if it does anything else."""
        of = store.value.dtype
        if store.predicate is not None or of.lanes < LEAST or of.bits != 32 or not (of.is_integer or self.floats):
            return None
        if not isinstance(store.index, Ramp) or not isinstance(store.index.stride, IntImm) or not store.index.stride.value:
            return None
        if not (self.noalias or store.buffer_var in self.allocated):
            return None
        parts: list[Expr] = [store.value]
        found: list[Term] = []
        before = 0
        while parts:
            part = parts.pop()
            if isinstance(part, Add):
                parts += [part.b, part.a]
            elif isinstance(part, Load) and part.buffer_var is store.buffer_var:
                before += 1
                if part.predicate is not None or self.number(part.index) != self.number(store.index):
                    return None
            else:
                term = self.term(part)
                if term is None or _reads(part, store.buffer_var):
                    return None
                found.append(term)
        return found if before == 1 and found and not _reads(store.index, store.buffer_var) else None

    def term(self, value: Expr) -> Term | None:
        if isinstance(value, Broadcast) or not isinstance(value, Mul):
            return None
        left, right = _operand(value.a), _operand(value.b)
        group = _terms_of_group(value, self.target)
        if group == 1 or left is None or right is None or not (left.moves or right.moves):
            return None
        fits = all(not x.moves or _step(x.load) == group for x in (left, right))
        return Term(value, left, right) if fits else None

    def groups(self, terms: list[Term]) -> tuple[list[Term], list[Term]]:
        """Returns the first term of each group of neighbours, and the terms that are in none."""
        kinds: dict[Any, dict[tuple[int, int], Term]] = {}
        rest: list[Term] = []
        for term in terms:
            (left, first), (right, second) = self.number.terms(term.left.base), self.number.terms(term.right.base)
            kind = (term.left.load.buffer_var, term.left.load.dtype, frozenset(left.items()),
                    term.right.load.buffer_var, term.right.load.dtype, frozenset(right.items()))
            if kinds.setdefault(kind, {}).setdefault((first, second), term) is not term:
                rest.append(term)
        groups: list[Term] = []
        for known in kinds.values():
            while known:
                first, second = min(known)
                term = known[first, second]
                count = self.target.dot_terms(term.left.load.dtype.element, term.right.load.dtype.element)
                near = [(first + r, second + r) for r in range(count)]
                whole = all(at in known for at in near)
                (groups if whole else rest).append(term)
                for at in near if whole else near[:1]:
                    del known[at]
        return groups, rest

    # --- what comes out -----------------------------------------------------------------------------------------------

    def added(self, same: list[Store], groups: list[Term], rest: list[Term]) -> list[Stmt] | None:
        """Returns the stores that add `groups` to the elements of the stores `same`, one for each power of two lanes, and then
        `rest`. What remains below a vector of the machine stays one vector where its masks load that at once; elsewhere, fewer
        lanes than LEAST that are left over are added up as before; None where that cannot be.
        """
        store, at = same[0], 0
        assert isinstance(store.index, Ramp)
        lanes = store.value.dtype.lanes
        done: list[Stmt] = []
        odd = lanes % (self.target.vector_bits // 32) if self.loads_odd(groups) else 0
        while at < lanes if odd > 1 else at <= lanes - LEAST:
            width = lanes - at if lanes - at == odd else 1 << (lanes - odd - at).bit_length() - 1
            base = build.add(store.index.base, build.mul(store.index.stride, build.const(at, store.index.stride.dtype)))
            index = Ramp(base, store.index.stride, width)
            total: Expr = Load(store.value.dtype.with_lanes(width), store.buffer_var, index, None)
            for term in groups:
                total = Call(total.dtype, DOT, (total, _elements(term.left, at, width), _elements(term.right, at, width)))
            done.append(Store(store.buffer_var, total, index))
            at += width
        if at < lanes:
            try:
                return None if rest else [*done, *(slice_lanes(s, lanes, at, lanes - at) for s in same)]
            except CannotSlice:
                return None
        for term in rest:
            before = Load(store.value.dtype, store.buffer_var, store.index, None)
            done.append(Store(store.buffer_var, build.add(before, term.value), store.index))
        return done


    def loads_odd(self, groups: list[Term]) -> bool:
        """Tells whether the target loads vectors of any number of lanes at once, of what is multiplied."""
        return self.target.has_mask_registers and all(
            self.target.can_mask(side.load.dtype.element) for term in groups for side in (term.left, term.right))


def _reads(e: Expr, memory: Var) -> bool:
    return any(isinstance(node, Load) and node.buffer_var is memory for node in post_order(e))


def _operand(e: Expr) -> Operand | None:
    """Returns a factor that is a load of narrow integers, widened."""
    lanes = e.dtype.lanes
    if isinstance(e, Broadcast):
        e = e.value
    if isinstance(e, Cast):
        e = e.value
    if isinstance(e, Broadcast):
        e = e.value
    if not isinstance(e, Load) or not _is_narrow(e.dtype):
        return None
    if e.dtype.lanes == 1:
        return Operand(e, e.index, False) if e.predicate is None else None
    on = None if e.predicate is None else lanes_on(e.predicate)
    known = e.predicate is None or build.as_int(on) is not None
    return Operand(e, e.index.base, True) if known and isinstance(e.index, Ramp) and e.dtype.lanes == lanes else None


def _terms_of_group(product: Mul, target: Target) -> int:
    """Returns how many such products of narrow numbers the target adds up at once; 1 if it does not, or for others."""
    left, right = _operand(product.a), _operand(product.b)
    if left is None or right is None or product.dtype.bits != 32:
        return 1
    kinds = left.load.dtype, right.load.dtype
    alike = all(of.is_float is product.dtype.is_float for of in kinds)
    return target.dot_terms(*(of.element for of in kinds)) if alike else 1


def _step(load: Load) -> int | None:
    return build.as_int(load.index.stride) if isinstance(load.index, Ramp) else None


def _elements(operand: Operand, at: int, lanes: int) -> Expr:
    """Returns the groups of an operand from lane `at` on."""
    narrow = operand.load.dtype.element
    group = 32 // narrow.bits
    one = build.const(1, operand.base.dtype)
    if operand.moves:
        base = build.add(operand.base, build.const(at * group, operand.base.dtype))
        return Load(narrow.with_lanes(group * lanes), operand.load.buffer_var, Ramp(base, one, group * lanes),
                    _groups_on(operand.load.predicate, at, lanes, group))
    group_of = Load(narrow.with_lanes(group), operand.load.buffer_var, Ramp(operand.base, one, group), None)
    words = Broadcast(Call(INT32, REINTERPRET, (group_of,)), lanes)
    return Call(narrow.with_lanes(group * lanes), REINTERPRET, (words,))


def _groups_on(mask: Expr | None, at: int, lanes: int, group: int) -> Expr | None:
    """Returns the mask of the groups of `lanes` lanes, from lane `at` on, that are on in `mask`; None if all are."""
    on = None if mask is None else build.as_int(lanes_on(mask))
    if on is None or on - at >= lanes:
        return None
    ramp = Ramp(build.const(0, INT32), build.const(1, INT32), group * lanes)
    return LT(ramp, Broadcast(build.const(group * max(on - at, 0), INT32), group * lanes))
