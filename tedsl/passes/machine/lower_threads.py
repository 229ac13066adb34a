"""Turn the kernels of a device into loops of a CPU: blocks become loops, threads become loops between the barriers.

before:  attr [threadIdx.x] "thread_extent" = 8; allocate(S, [8], shared); allocate(L, [1], local) {
           L[0] = A[threadIdx.x];  S[threadIdx.x] = L[0];  sync;  B[threadIdx.x] = S[7 - threadIdx.x] * L[0] }
after:   allocate(S, [8]); allocate(L, [8]) {
           for (threadIdx.x: 0, 8) { L[threadIdx.x] = A[threadIdx.x];  S[threadIdx.x] = L[threadIdx.x] }
           for (threadIdx.x: 0, 8) { B[threadIdx.x] = S[7 - threadIdx.x] + L[threadIdx.x] } }

The statements between two barriers are a phase, which the threads run one after the other. A loop or branch that contains a
barrier takes the same path in all threads, so it encloses the loops over them. Memory of one thread that several phases use
gets room for each thread. A phase that uses no thread axis does the same in all threads and runs once.
"""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import script, shown
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
    seq,
)
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import has_launch, launched
from tedsl.passes.races.refuse_races import check_kernel
from tedsl.passes.threads.allreduce import across_threads
from tedsl.passes.threads.gather_threads import Kernel, kernel_of, loops_over
from tedsl.passes.threads.make_way import checked_before, kept
from tedsl.passes.threads.meetings import divergent, is_allreduce, is_barrier, meeting, thread_in
from tedsl.passes.threads.private import PrivateMemory
from tedsl.passes.threads.uniform import Uniformity


def lower_threads(func: PrimFunc) -> PrimFunc:
    """Returns `func` with its launches turned into loops; `func` itself if it has none. Its launches must be gathered and its
    barriers inserted.
    """
    return func.with_body(_Lowerer()(func.body)) if has_launch(func.body) else func


class _Lowerer(ScopedRewriter):
    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if launched(stmt) is None:
            return self.descend(stmt)
        kernel = kernel_of(stmt).running
        check_kernel(kernel)
        return loops_over([axis for axis in kernel.blocks if not axis.is_single], _Fission(kernel)(kernel.body))


class _Fission:
    """Turns the statements of each thread of a block into loops over all its threads."""

    def __init__(self, kernel: Kernel) -> None:
        self.threads = kernel.threads
        self.uniform = Uniformity(kernel)
        self.private = PrivateMemory(kernel)

    def __call__(self, stmt: Stmt) -> Stmt:
        met = meeting(stmt)
        if met is None:
            return self.phase(stmt)
        match stmt:
            case SeqStmt():
                return self.sequence(stmt)
            case For():
                self.must_agree(met, stmt.min, f"the loop {stmt.loop_var.name}, whose start is")
                self.must_agree(met, stmt.extent, f"the loop {stmt.loop_var.name}, whose extent is")
                return stmt.replace(body=self(stmt.body), kind=ForKind.SERIAL)
            case While():
                self.must_agree(met, stmt.condition, "a while loop on")
                return stmt.replace(body=self(stmt.body))
            case IfThenElse():
                self.must_agree(met, stmt.condition, "the condition")
                other = None if stmt.else_case is None else self(stmt.else_case)
                return IfThenElse(stmt.condition, self(stmt.then_case), other)
            case AssertStmt():
                if self.uniform.varies(stmt.condition):
                    return self(checked_before(stmt))
                return stmt.replace(body=self(stmt.body))
            case LetStmt():
                return self.let(stmt)
            case Allocate():
                return self.allocation(stmt)
            case AttrStmt():
                if is_allreduce(stmt.body):
                    return across_threads(stmt, self.threads, self.private)
                return stmt.replace(body=self(stmt.body))
            case _:
                if is_barrier(stmt):
                    return seq()
                words = script(stmt)
                raise LoweringError(f'{words} stands outside of its attribute "reduce_scope", which says how it combines')

    def must_agree(self, met: Stmt, expr: Expr, where: str) -> None:
        if self.uniform.varies(expr):
            divergent(met, expr, where)

    def sequence(self, stmt: SeqStmt) -> Stmt:
        """Groups neighbours without a barrier in between into one phase."""
        phases: list[Stmt] = []
        run: list[Stmt] = []
        for part in stmt.seq:
            if meeting(part) is None:
                run.append(part)
                continue
            phases += [self.phase(seq(*run)), self(part)] if run else [self(part)]
            run = []
        return seq(*phases, self.phase(seq(*run)) if run else None)

    def phase(self, stmt: Stmt) -> Stmt:
        """Returns a loop that runs `stmt` for one thread after the other."""
        stmt = self.private(stmt)
        nodes = list(post_order(stmt))
        used = set(nodes)
        acts = any(isinstance(node, Call) and node.op.effect == "opaque" for node in nodes)
        return loops_over([thread for thread in self.threads if acts or thread.var in used], stmt)

    def let(self, stmt: LetStmt) -> Stmt:
        """Stores a value that differs among the threads and is used in several phases in an array with one element per
        thread.
        """
        if not self.uniform.varies(stmt.value):
            return stmt.replace(body=self(stmt.body))
        if self.uniform.is_pure(stmt.value):
            return self(substitute(stmt.body, {stmt.var: stmt.value}))
        whole = kept(stmt)
        self.private.add(whole.buffer_var, whole)
        return self.allocation(whole)

    def allocation(self, stmt: Allocate) -> Stmt:
        """Gives memory of one thread that several phases use one part per thread; memory of the block is left unchanged."""
        for extent in stmt.extents:
            if self.uniform.varies(extent):
                raise LoweringError(f"the size of {stmt.buffer_var.name}, {shown(extent)}, differs among the threads of a "
                                    "block, and the memory is used before and after a barrier",
                                    hint="allocate the largest size",
                                    about=thread_in(extent))
        copies = self.private.copies(stmt.buffer_var)
        if not copies:
            return stmt.replace(body=self(stmt.body))
        size: Expr = build.const(1, "int32")
        for extent in (*(thread.count for thread in copies), *stmt.extents):
            size = build.product_of_extents(size, extent)
        return stmt.replace(extents=(size,), body=self(stmt.body))


