"""Make the threads of a block wait for each other where one uses what another wrote, or writes what another still uses.

before:  for (k: 0, 4) { S[threadIdx.x] = A[k*8 + threadIdx.x];  B[k*8 + threadIdx.x] = S[7 - threadIdx.x] }
after:   for (k: 0, 4) { tvm_storage_sync("shared");  S[threadIdx.x] = A[k*8 + threadIdx.x];
                         tvm_storage_sync("shared");  B[k*8 + threadIdx.x] = S[7 - threadIdx.x] }

The first barrier is for the next iteration. A barrier is reached by all threads of the block or by none: a condition that
differs among them is moved inwards, around the statements between the barriers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Expr, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.script import shown
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from tedsl.ir.walk.accesses import Access
from tedsl.ir.walk.around import Binding, Condition, Loop, Step
from tedsl.passes.races.every_thread import EveryThread
from tedsl.passes.races.may_meet import may_meet
from tedsl.passes.threads.common_memory import CommonMemory
from tedsl.passes.threads.gather_threads import Kernel, Thread, with_kernel_bodies
from tedsl.passes.threads.make_way import checked_before, guarded
from tedsl.passes.threads.meetings import barrier, divergent, is_barrier, meeting, thread_in
from tedsl.passes.threads.uniform import Uniformity

Entry = Access | None  # None: a barrier that is sure to be met


def insert_barriers(func: PrimFunc, *, alone: bool = False) -> PrimFunc:
    """Returns `func` with the barriers that its kernels need; `func` itself if it has no kernels. Launches must be gathered.

    alone: also where a block has one thread, as if it had a second one.
    """
    def changed(kernel: Kernel) -> Stmt:
        return _KernelBarriers(_with_company(kernel) if alone else kernel)(kernel.body, frozenset())[0]

    return with_kernel_bodies(func, changed)


def _with_company(kernel: Kernel) -> Kernel:
    if kernel.threads:
        return kernel
    second = IterVar(None, Var("threadIdx.z", INT32), IterType.THREAD_INDEX, "threadIdx.z")
    return Kernel((*kernel.axes, Thread(second, build.const(2, INT32))), kernel.body)


class _Pending:
    """The accesses since the last barrier, by the memory that they are of: accesses of other memory never meet."""

    def __init__(self, entries: Iterable[Access]) -> None:
        self.loads: dict[Any, list[Access]] = {}
        self.stores: dict[Any, list[Access]] = {}
        self.take(entries)

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry is None:
                self.loads.clear()
                self.stores.clear()
            else:
                (self.stores if entry.writes else self.loads).setdefault(entry.memory, []).append(entry)

    def against(self, entry: Access) -> list[Access]:
        """Returns the accesses of the same memory of which one, or `entry`, is a store."""
        stores = self.stores.get(entry.memory, [])
        return stores + self.loads.get(entry.memory, []) if entry.writes else stores

    def __bool__(self) -> bool:
        return bool(self.loads or self.stores)


class _KernelBarriers:
    """Inserts barriers into one kernel. A call with a statement and the variables of the loops around it returns the statement
    with barriers, and its accesses.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.uniform = Uniformity(kernel)
        self.threads = kernel.distinct_threads()
        self.every_thread = EveryThread(kernel)
        self.common = CommonMemory(kernel)
        self.threads.callers |= self.common.callers
        self.decided_by_data = 0  # branches and loops around, in which threads cannot wait

    def __call__(self, stmt: Stmt, around: Set[Var]) -> tuple[Stmt, list[Entry]]:
        match stmt:
            case For(min=low, extent=extent):
                decides: list[Expr] = [low, extent]
            case While(condition=condition) | IfThenElse(condition=condition):
                decides = [condition]
            case _:
                decides = []
        by_data = any(not self.uniform.is_pure(e) and self.uniform.varies(e) for e in decides)
        self.decided_by_data += by_data
        new = self.statement(stmt, around)
        self.decided_by_data -= by_data
        return new

    def statement(self, stmt: Stmt, around: Set[Var]) -> tuple[Stmt, list[Entry]]:
        match stmt:
            case SeqStmt():
                parts, entries, _ = self.sequence(stmt.seq, around)
                return (stmt if _same(parts, stmt.seq) else seq(*parts)), entries
            case For():
                return self.loop(stmt, around)
            case While():
                return self.repeated(stmt, around)
            case IfThenElse():
                return self.branch(stmt, around)
            case LetStmt():
                if not self.uniform.is_pure(stmt.value) or self.uniform.varies(stmt.value):
                    self.threads.lets.add(stmt.var)
                with self.within(Binding(stmt.var, stmt.value, stmt)):
                    return self.inside(stmt, self.reads(stmt.value), around)
            case Allocate() | AttrStmt():
                return self.inside(stmt, [], around)
            case AssertStmt():
                new, entries = self.inside(stmt, self.reads(stmt.condition), around)
                apart = new is not stmt and self.uniform.varies(stmt.condition)
                return (checked_before(new) if apart and isinstance(new, AssertStmt) else new), entries
            case _:
                return stmt, [None] if is_barrier(stmt) else [*self.common.accesses(stmt)]

    def inside(self, stmt: LetStmt | Allocate | AttrStmt | AssertStmt, before: list[Entry], around: Set[Var]) \
            -> tuple[Stmt, list[Entry]]:
        old = stmt.body.seq if isinstance(stmt.body, SeqStmt) else (stmt.body,)
        parts, entries, _ = self.sequence(old, around, before=before)
        return (stmt if _same(parts, old) else stmt.replace(body=seq(*parts))), before + entries

    # --- accesses ---

    def reads(self, expr: Expr) -> list[Entry]:
        return [*self.common.reads(expr)]

    def meets(self, entries: Sequence[Entry], pending: _Pending, fixed: Set[Var], carried: Var | None = None) -> bool:
        """Tells whether an access of `entries` before their first barrier (None) must wait for a pending access.

        Where data decides which threads run a statement, threads are assumed not to conflict in the caller's memory, since that
        cannot be checked.
        """
        for entry in entries:
            if entry is None:
                return False
            if self.decided_by_data and entry.memory in self.threads.callers:
                continue
            if any(may_meet(access, entry, distinct=self.threads, same=fixed, carried=carried)
                   and not self.keep_apart(access, entry, fixed) for access in pending.against(entry)
                   if not (access.at_once and entry.at_once)):
                return True
        return False

    def keep_apart(self, earlier: Access, later: Access, fixed: Set[Var]) -> bool:
        """Tells whether it is proved that `later` touches no element of `earlier`, where threads cannot wait and `may_meet`
        does not decide.

        A store to a shadow buffer of checked mode directly follows the store that it records, which is compared itself: it only
        has to wait for the clearing of the shadow buffer.
        """
        if not self.decided_by_data:
            return False
        is_note = self.common.is_note
        if is_note(later) and (is_note(earlier) or not earlier.writes):
            return True
        if earlier.index is None or later.index is None:
            return False
        pairs = [(earlier, later)]  # and what decides which thread's value stays
        pairs += [(access, access) for access in (earlier, later) if access.writes and not is_note(access)]
        return all(self.every_thread.keep_apart(*pair, fixed) for pair in pairs)

    @contextmanager
    def within(self, step: Step) -> Iterator[None]:
        """Context manager in which accesses are collected as inside the loop, condition or let `step`."""
        outside, self.common.around = self.common.around, self.common.around.within(step)
        yield
        self.common.around = outside

    # --- statements ---

    def sequence(self, stmts: Sequence[Stmt], around: Set[Var], carried: Var | None = None, repeats: bool = False,
                 before: Sequence[Entry] = ()) -> tuple[list[Stmt], list[Entry], bool]:
        """Inserts barriers between `stmts`, and between them and `before`, the accesses right before them.

        repeats: they are the body of a loop, so that an iteration also waits for the one before; carried: the variable of that
        loop. Returns the statements, their accesses, and whether a barrier was inserted.
        """
        pending, parts, all_entries = _Pending(filter(None, before)), list[Stmt](), list[list[Entry]]()
        inner = around | {carried} if carried is not None else around
        waits: set[int] = set()
        for at, stmt in enumerate(stmts):
            new, entries = self(stmt, inner)
            if self.meets(entries, pending, inner):
                waits.add(at)
                pending.take([None])
            pending.take(entries)
            parts.append(new)
            all_entries.append(entries)
        if repeats:
            for at, entries in enumerate(all_entries):
                if at in waits or not pending:
                    break
                if self.meets(entries, pending, around, carried):
                    waits.add(at)
                    break
                if None in entries:
                    break
        total: list[Entry] = []
        for at, entries in enumerate(all_entries):
            total += [None, *entries] if at in waits else entries
        with_barriers = [[barrier(), part] if at in waits else [part] for at, part in enumerate(parts)]
        return list(itertools.chain(*with_barriers)), total, bool(waits)

    def loop(self, loop: For, around: Set[Var]) -> tuple[Stmt, list[Entry]]:
        self.threads.loop(loop.loop_var, loop.min, loop.extent)
        body = loop.body.seq if isinstance(loop.body, SeqStmt) else (loop.body,)
        with self.within(Loop(loop.loop_var, loop.min, loop.extent, loop)):
            parts, entries, _ = self.sequence(body, around, loop.loop_var, repeats=build.as_int(loop.extent) != 1)
        new = loop if _same(parts, body) else loop.replace(body=seq(*parts))
        met = meeting(new)
        if met is not None:
            for bound in (loop.min, loop.extent):
                if self.uniform.varies(bound):
                    divergent(met, bound, f"the loop {loop.loop_var.name}, one of whose bounds is",
                              written=meeting(loop) is not None)
        some = (build.as_int(loop.extent) or 0) >= 1
        return new, [*self.reads(loop.min), *self.reads(loop.extent), *(entries if some else _sure(entries))]

    def repeated(self, loop: While, around: Set[Var]) -> tuple[Stmt, list[Entry]]:
        body = loop.body.seq if isinstance(loop.body, SeqStmt) else (loop.body,)
        parts, entries, _ = self.sequence((Evaluate(loop.condition), *body), around, None, repeats=True)
        if any(is_barrier(part) for part in parts[:1]):  # before the condition: wait at the end of the body instead
            parts = [*parts[1:], parts[0]]
        new = loop if _same(parts[1:], body) else loop.replace(body=seq(*parts[1:]))
        met = meeting(new)
        if met is not None and self.uniform.varies(loop.condition):
            divergent(met, loop.condition, "a while loop on", written=meeting(loop) is not None)
        return new, _sure(entries)

    def branch(self, branch: IfThenElse, around: Set[Var]) -> tuple[Stmt, list[Entry]]:
        condition = branch.condition
        with self.within(Condition(condition, True, branch)):
            then, entries = self(branch.then_case, around)
        other = None
        if branch.else_case is not None:
            with self.within(Condition(condition, False, branch)):
                other, more = self(branch.else_case, around)
            entries = entries + more
        if self.uniform.varies(condition):
            for before, after in ((branch.then_case, then), (branch.else_case, other)):
                if before is not None and after is not None and meeting(after) is not None:
                    return self(self.apart(branch, before), around)
        same = then is branch.then_case and other is branch.else_case
        return branch if same else branch.replace(then_case=then, else_case=other), [*self.reads(condition), *_sure(entries)]

    def apart(self, branch: IfThenElse, side: Stmt) -> Stmt:
        """Splits `branch`, whose condition differs among threads, into branches around single statements."""
        met = meeting(side)
        if met is not None:
            divergent(met, branch.condition, "the condition")
        if not self.uniform.is_pure(branch.condition):
            raise LoweringError(f"threads must wait for each other under the condition {shown(branch.condition)}, which reads "
                                "memory and differs among the threads of a block: some would wait forever",
                                hint="compute the condition from the axes alone, or end it before other threads' values are "
                                     "used", about=thread_in(branch.condition))
        parts = [guarded(branch.condition, branch.then_case, self.uniform)]
        if isinstance(parts[0], IfThenElse) and parts[0].then_case is side:
            raise LoweringError("threads must wait for each other inside of a loop or branch that reads memory to decide, "
                                f"under the condition {shown(branch.condition)}, which differs among the threads of a block",
                                hint="put the condition into that loop or branch", about=thread_in(branch.condition))
        if branch.else_case is not None:
            parts.append(guarded(build.logical_not(branch.condition), branch.else_case, self.uniform))
        return seq(*parts)


def _sure(entries: Sequence[Entry]) -> list[Entry]:
    """Returns `entries` without barriers: those of a statement that may not run cannot be relied on."""
    return [entry for entry in entries if entry is not None]


def _same(parts: Sequence[Stmt], old: Sequence[Stmt]) -> bool:
    return len(parts) == len(old) and all(a is b for a, b in zip(parts, old))
