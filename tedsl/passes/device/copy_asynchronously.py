"""Copies into shared memory that `double_buffer` fills an iteration ahead go on while the threads compute.

before:  for (k: 0, n) { tvm_storage_sync("shared");  attr [S] "double_buffer_write" { S[(k + 1)%2*32 + x] = A[..] };  f(S) }
after:   tvm_storage_sync("shared")
         for (k: 0, n) { ptx_cp_async(S, (k + 1)%2*32 + x, A, .., 4);  f(S);  ptx_wait_group(0);  tvm_storage_sync("shared") }

What an iteration copies, the next one reads: the threads wait for their copies, and then for each other, at its end. Copies are
of 4, 8 or 16 bytes, from an array of the caller to a place that they divide; other stores stay as they are. Where an element is
chosen by a condition, one side of it may be a copy.
"""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import CP_ASYNC, IF_THEN_ELSE, WAIT_GROUP
from tedsl.ir.stmt import AttrStmt, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.storage.inject_double_buffer import WRITE
from tedsl.passes.threads.meetings import barrier, is_barrier
from tedsl.target.target import Target

FIRST = 80  # devices from sm_80 on copy asynchronously
BYTES = (4, 8, 16)


def copy_asynchronously(kernel: PrimFunc, target: Target) -> PrimFunc:
    """Returns `kernel` with asynchronous copies where it fills shared memory ahead and `target` has them; itself elsewhere."""
    if not target.cpu.startswith("sm_") or int(target.cpu[3:]) < FIRST or not contains(kernel.body, WRITE):
        return kernel
    return kernel.with_body(_Loops(set(kernel.params))(kernel.body))


class _Loops(ScopedRewriter):
    """Rewrites the loops that fill memory ahead. arrays: the memory that may be copied from."""

    def __init__(self, arrays: set[Var]) -> None:
        self.arrays = arrays

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case For(kind=ForKind.SERIAL, body=SeqStmt(seq=parts)) if any(is_barrier(part) for part in parts):
                return self.loop(stmt, parts)
            case _:
                return self.descend(stmt)

    def loop(self, loop: For, parts: tuple[Stmt, ...]) -> Stmt:
        marks = [node.node for part in parts for node in post_order(part)
                 if isinstance(node, AttrStmt) and node.attr_key == WRITE]
        if len(set(marks)) < len(marks):  # memory that is filled twice in an iteration is used in it
            return self.descend(loop)
        copies = _Copies(self.arrays)
        new = [copies(part) if isinstance(part, AttrStmt) and part.attr_key == WRITE else self(part) for part in parts]
        if not copies.made:
            return self.descend(loop)
        wait = Evaluate(Call(build.const(0, "int32").dtype, WAIT_GROUP, (build.const(0, "int32"),)))
        before = []
        if is_barrier(new[0]):  # the end of the iteration before has one
            before, new = new[:1], new[1:]
        return seq(*before, loop.replace(body=seq(*new, wait, barrier())))


class _Copies(ScopedRewriter):
    """Replaces stores by copies. made: how many."""

    def __init__(self, arrays: set[Var]) -> None:
        self.arrays, self.made = arrays, 0
        self.analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Evaluate():
                return stmt
            case Store(value=Call(op=op, args=(condition, chosen, other))) if op is IF_THEN_ELSE and stmt.predicate is None \
                    and condition.dtype.lanes == 1:
                sides = [self.stmt(stmt.replace(value=side)) for side in (chosen, other)]
                plain = all(isinstance(side, Store) for side in sides)
                return stmt if plain else IfThenElse(condition, sides[0], sides[1])
            case Store():
                return self.copied(stmt) or stmt
            case _:
                return self.descend(stmt)

    def copied(self, store: Store) -> Stmt | None:
        """The copy that `store` is; None if it is none."""
        value = store.value
        if not isinstance(value, Load) or value.buffer_var not in self.arrays or store.predicate is not None \
                or value.predicate is not None or scope_of(store.buffer_var.type_annotation) != "shared":
            return None
        to, of = self.first(store.index), self.first(value.index)
        size = value.dtype.bytes * value.dtype.lanes
        if to is None or of is None or size not in BYTES or value.dtype.is_bool:
            return None
        self.made += 1
        given = (store.buffer_var, to, value.buffer_var, of, build.const(size, "int32"))
        return Evaluate(Call(value.dtype.element, CP_ASYNC, given))

    def first(self, index: Expr) -> Expr | None:
        """The first element of an access; None if its elements are not neighbours, or not at a place that they divide."""
        if index.dtype.lanes == 1:
            return index
        if not isinstance(index, Ramp) or build.as_int(index.stride) != 1:
            return None
        aligned = build.equal(build.floormod(index.base, index.lanes), 0)
        return index.base if self.analyzer.can_prove(aligned) else None
