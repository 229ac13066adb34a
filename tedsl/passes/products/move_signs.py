"""Multiply bytes of one kind, where the processor multiplies unsigned by signed ones alone: what is moved by 128 is corrected
once for a tile.

before:  for (i: 0, m) { for (k: 0, n) { S[ramp(0, 1, 16)] = dot(S[ramp(0, 1, 16)], A[i, k] sixteen times, B[k]) } ... }
after:   C[ramp(0, 1, 16)] = 0; for (k: 0, n) { C[ramp(0, 1, 16)] = dot(C[ramp(0, 1, 16)], 128 in each byte, B[k]) }
         for (i: 0, m) { S[ramp(0, 1, 16)] = S[ramp(0, 1, 16)] - C[ramp(0, 1, 16)]
                         for (k: 0, n) { S[ramp(0, 1, 16)] = dot(S[ramp(0, 1, 16)], A[i, k] + 128 sixteen times, B[k]) } ... }

(A and B signed; with both unsigned, A - 128 and -128 take the places of A + 128 and 128. All of it modulo 2**32.) Rows that
multiply by the same elements of B share a correction, which stands before the loops that these do not depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tedsl.ir import build
from tedsl.ir.dtype import INT32, dtype
from tedsl.ir.expr import Add, Broadcast, Call, Expr, Load, Ramp, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import DOT, REINTERPRET
from tedsl.ir.stmt import Allocate, For, ForKind, SeqStmt, Stmt, Store, no_op, seq
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy
from tedsl.ir.walk.visitor import uses
from tedsl.passes.facts.structure import Numbering
from tedsl.target.target import Target

_MOST = -0x7F7F7F80  # 128 in each byte of a word
_SHARED = 4  # rows
_OTHER = {"int8": dtype("uint8"), "uint8": dtype("int8")}  # of the same bits, the other kind


class _Term(NamedTuple):
    """A step that adds products of bytes of one kind: the word that its lanes share, and the bytes that it is multiplied by."""

    store: Store
    word: Expr
    others: Load


class _Correction(NamedTuple):
    """Sums that are computed before a statement, in memory that it reads."""

    memory: Var
    size: int
    made: Stmt


def move_signs(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with sums of products of bytes of one kind corrected after their loops, where that is needed."""
    return func.with_body(_Signs()(func.body)) if target.has_vnni and func.attrs.get("tir.noalias") else func


class _Signs(ScopedRewriter):
    """before: the corrections that are to stand before the statement that is being rewritten."""

    def __init__(self) -> None:
        self.number = Numbering()
        self.before: list[_Correction] = []

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        outside, self.before = self.before, []
        done = self.bubbling(stmt)
        done, self.before = _placed(self.before, done), outside
        return done

    def bubbling(self, stmt: Stmt) -> Stmt:
        """Returns `stmt` rewritten, with corrections left that may stand before it."""
        match stmt:
            case For(kind=ForKind.SERIAL):
                corrected = self.corrected(stmt)
                return self.around(stmt, stmt.body, [stmt.loop_var]) if corrected is None else corrected
            case Allocate():
                return self.around(stmt, stmt.body, [stmt.buffer_var])
            case SeqStmt():
                return self.sequence(stmt)
            case _:
                return self.descend(stmt)

    def around(self, stmt: For | Allocate, body: Stmt, bound: list[Var]) -> Stmt:
        """Returns a loop or an allocation with the corrections inside that depend on it."""
        outside, self.before = self.before, []
        new = self.bubbling(body)
        inside = [c for c in self.before if uses(c.made, bound) or _writes(body, c)]
        self.before = [*outside, *(c for c in self.before if c not in inside)]
        new = _placed(inside, new)
        return stmt if new is body else stmt.replace(body=new)

    def sequence(self, stmt: SeqStmt) -> Stmt:
        """Returns a sequence with each correction behind what writes the bytes that it reads."""
        done: list[Stmt] = []
        outside, self.before = self.before, []
        for at, part in enumerate(stmt.seq):
            found, self.before = self.before, []
            new = self.bubbling(part)
            late = [c for c in self.before if any(_writes(earlier, c) for earlier in stmt.seq[:at])]
            self.before = [*found, *(c for c in self.before if c not in late)]
            done.append(_placed(late, new))
        self.before = [*outside, *self.before]
        same = all(a is b for a, b in zip(done, stmt.seq))
        return stmt if same else seq(*done)

    def corrected(self, loop: For) -> Stmt | None:
        """Returns the loop with words moved by 128, behind what corrects its sums; None for loops that do anything else, or
        where few rows share a correction.

        Sums are corrected before the loop: afterwards, LLVM keeps corrections in registers and sums on the stack meanwhile.
        """
        stores = _stores(loop)
        terms = {store: term for store in stores or () if (term := _term(store))}
        variables = {node.loop_var for node in of_kinds(loop, For) if isinstance(node, For)}
        if stores is None or not terms or len({store.buffer_var for store in stores}) > 1:
            return None
        if any(uses(store.index, variables) or not _adds(store, self.number) for store in stores):
            return None
        steps: dict[int, list[_Term]] = {}  # by the place of the sum
        for term in terms.values():
            steps.setdefault(self.number(term.store.index), []).append(term)
        shared: dict[tuple[int, ...], tuple[_Correction, list[Store]]] = {}  # by the bytes that are multiplied by
        for listed in steps.values():
            key: tuple[int, ...] = (listed[0].store.value.dtype.lanes, *(self.number(term.others) for term in listed))
            if key not in shared:
                shared[key] = self.correction(loop, listed), []
            shared[key][1].append(listed[0].store)
        if any(len(places) < _SHARED for _, places in shared.values()):
            return None
        moved = {store: _moved(term) for store, term in terms.items()}
        first = [Store(store.buffer_var, build.sub(_before(store), _all(correction)), store.index)
                 for correction, places in shared.values() for store in places]
        self.before += [correction for correction, _ in shared.values()]
        return seq(*first, _nest(loop, moved))

    def correction(self, loop: For, terms: Sequence[_Term]) -> _Correction:
        """Returns the sums of 128 times the bytes that are multiplied by in `terms`."""
        lanes = terms[0].store.value.dtype.lanes
        memory = pointer_var("moved", INT32)
        empty = _Correction(memory, lanes, terms[0].store)
        made: dict[Store, Store] = {}
        for term in terms:
            bytes_ = term.others.dtype.element
            most = _repeated(build.const(_MOST, INT32), _OTHER[str(bytes_)].with_lanes(4 * lanes), lanes)
            total = Call(_all(empty).dtype, DOT, (_all(empty), *_ordered(term, most)))
            made[term.store] = Store(memory, total, _all(empty).index)
        zero = Store(memory, Broadcast(build.const(0, INT32), lanes), _all(empty).index)
        return empty._replace(made=seq(zero, fresh_copy(_nest(loop, made, only=True))))


def _placed(corrections: Sequence[_Correction], stmt: Stmt) -> Stmt:
    """Returns `stmt` behind the corrections, in memory of their own."""
    for correction in reversed(corrections):
        size = (build.const(correction.size, "int32"),)
        stmt = Allocate(correction.memory, INT32, size, build.true(), seq(correction.made, stmt))
    return stmt


def _writes(stmt: Stmt, correction: _Correction) -> bool:
    """Tells whether `stmt` writes, or makes, what the correction reads."""
    read = {load.buffer_var for load in of_kinds(correction.made, Load) if isinstance(load, Load)}
    return any(node.buffer_var in read for node in of_kinds(stmt, Store, Allocate) if isinstance(node, (Store, Allocate)))


def _stores(stmt: Stmt) -> list[Store] | None:
    """Returns the stores of a nest of loops of constant extents that does nothing else; None for others."""
    if isinstance(stmt, Store):
        return [stmt]
    if isinstance(stmt, For):
        return _stores(stmt.body) if stmt.kind is ForKind.SERIAL else None
    if not isinstance(stmt, SeqStmt):
        return None
    found: list[Store] = []
    for part in stmt.seq:
        inside = _stores(part)
        if inside is None:
            return None
        found += inside
    return found


def _nest(stmt: Stmt, by: Mapping[Store, Store], only: bool = False) -> Stmt:
    """Returns a nest of loops with other stores. only: without those that are not among them."""
    if isinstance(stmt, For):
        return stmt.replace(body=_nest(stmt.body, by, only))
    if isinstance(stmt, SeqStmt):
        return seq(*(_nest(part, by, only) for part in stmt.seq))
    assert isinstance(stmt, Store)
    return by.get(stmt, no_op() if only else stmt)


def _adds(store: Store, number: Numbering) -> bool:
    """Tells whether a store adds to the elements that it writes, and reads no others of its memory."""
    loads = [load for load in of_kinds(store, Load) if isinstance(load, Load) and load.buffer_var is store.buffer_var]
    value = store.value
    while isinstance(value, (Add, Call)):
        if isinstance(value, Call) and value.op is not DOT:
            return False
        value = value.args[0] if isinstance(value, Call) else value.a
    return isinstance(value, Load) and len(loads) == 1 and value is loads[0] and number(value.index) == number(store.index)


def _term(store: Store) -> _Term | None:
    """Returns what a store adds that is one step of products of bytes of one kind; None for any other."""
    value = store.value
    if not isinstance(value, Call) or value.op is not DOT or store.predicate is not None:
        return None
    total, left, right = value.args
    if not isinstance(total, Load) or total.buffer_var is not store.buffer_var or total.predicate is not None:
        return None
    if left.dtype.element is not right.dtype.element or str(left.dtype.element) not in _OTHER:
        return None
    words = [_word(side) for side in (left, right)]
    for word, other in ((words[0], right), (words[1], left)):
        if word is not None and isinstance(other, Load):
            return _Term(store, word, other)
    return None


def _word(operand: Expr) -> Expr | None:
    """Returns the word that all lanes of an operand share."""
    if isinstance(operand, Call) and operand.op is REINTERPRET and isinstance(operand.args[0], Broadcast):
        return operand.args[0].value if operand.args[0].value.dtype is INT32 else None
    return None


def _moved(term: _Term) -> Store:
    """Returns the step with the word moved by 128."""
    bytes_, lanes = term.others.dtype.element, term.store.value.dtype.lanes
    word = _repeated(build.bitwise_xor(term.word, build.const(_MOST, INT32)), _OTHER[str(bytes_)].with_lanes(4 * lanes), lanes)
    total = _before(term.store)
    return term.store.replace(value=Call(total.dtype, DOT, (total, *_ordered(term, word))))


def _before(store: Store) -> Load:
    """Returns the elements that a store writes, as they are before it."""
    return Load(store.value.dtype, store.buffer_var, store.index, None)


def _ordered(term: _Term, word: Expr) -> tuple[Expr, Expr]:
    """Returns the operands of the step with another word, in their order."""
    assert isinstance(term.store.value, Call)
    return (term.others, word) if term.store.value.args[1] is term.others else (word, term.others)


def _repeated(word: Expr, of: object, lanes: int) -> Expr:
    return Call(dtype(of), REINTERPRET, (Broadcast(word, lanes),))


def _all(correction: _Correction) -> Load:
    """Returns the sums of a correction."""
    index = Ramp(build.const(0, INT32), build.const(1, INT32), correction.size)
    return Load(INT32.with_lanes(correction.size), correction.memory, index, None)
