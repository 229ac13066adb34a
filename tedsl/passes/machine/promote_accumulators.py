"""Keep what a loop accumulates in registers: load before the loop, store after it.

before:  C[y*n + x] = 0; for (k: 0, m) { C[y*n + x] = C[y*n + x] + A[..]*B[..] }
after:   allocate(C.acc, [1]) { C.acc[0] = 0; for (k: 0, m) { C.acc[0] = C.acc[0] + A[..]*B[..] }; C[y*n + x] = C.acc[0] }

The loop must read and write a buffer only at loop-invariant addresses that are proved disjoint (a tile: `C[i]`, `C[i + 16]`,
...). Then they become elements of a small array with constant indices, which the code generator turns into registers. The
outermost such loop is chosen. A store of the start value just before the loop becomes the start value of the register. A
condition that changes in the loop, as in sums that skip zeros, has to hold in some iteration: then the loop writes there.
"""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import Allocate, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import POINTER, of_kinds
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.machine.accumulators import Plan, find_accumulators


def promote_accumulators(func: PrimFunc) -> PrimFunc:
    """Returns `func` with the accumulators of its serial loops in local arrays of constant indices."""
    return func.with_body(_Promoter(bool(func.attrs.get("tir.noalias")), func.body)(func.body))


class _Promoter(ScopedRewriter):
    def __init__(self, noalias: bool, body: Stmt) -> None:
        self.noalias = noalias
        self.analyzer = Analyzer()
        self.number = Numbering()
        self.depends = Dependence()
        self.allocated = {s.buffer_var for s in of_kinds(body, Allocate) if isinstance(s, Allocate)}
        self.registers = _constant_arrays(body)  # what the code generator keeps in registers anyway

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case SeqStmt():
                return self.sequence(stmt)
            case For():
                return self.loop(stmt, [])[0]
            case _:
                return self.descend(stmt)

    def sequence(self, stmt: SeqStmt) -> Stmt:
        """Returns the statements in order; stores just before a loop may become start values of its accumulators."""
        done: list[Stmt] = []
        changed = False
        for part in stmt.seq:
            if not isinstance(part, For):
                new = self.stmt(part)
                changed |= new is not part
                done.append(new)
                continue
            start = len(done)
            while start and isinstance(done[start - 1], Store):
                start -= 1
            new, used = self.loop(part, [s for s in done[start:] if isinstance(s, Store)])
            done[start:] = [s for s in done[start:] if s not in used]  # statements before them may be the same objects
            done.append(new)
            changed |= bool(used) or new is not part
        return seq(*done) if changed else stmt

    def loop(self, loop: For, before: list[Store]) -> tuple[Stmt, set[Stmt]]:
        """Returns the loop with its accumulators promoted, and the stores of `before` that became their start values."""
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        if loop.kind == ForKind.SERIAL:
            plan = find_accumulators(loop, self.analyzer, self.number, self.depends, self.noalias,
                                     self.allocated, self.registers)
            if plan is not None:
                return self.promoted(loop, plan, before)
        return self.descend(loop), set()

    def promoted(self, loop: For, plan: Plan, before: list[Store]) -> tuple[Stmt, set[Stmt]]:
        mine = {slot.memory for slot in plan.slots}
        counted = any(isinstance(n, Load) and n.buffer_var in mine for end in (loop.min, loop.extent) for n in post_order(end))
        # a loop that counts by what it accumulates reads memory where it begins: the stores before it stay
        starts, used = plan.start_values([] if counted else before, self.number)
        body = plan.in_registers(loop.body)
        self.allocated |= set(plan.memory)
        self.registers |= set(plan.memory)
        new_loop = loop.replace(body=self.stmt(body))
        first = [starts.get(slot, slot.load()) for slot in plan.slots]
        whole = seq(*first, new_loop, *(slot.store() for slot in plan.slots))
        if len(starts) < len(plan.slots) and not self.analyzer.can_prove(build.greater(loop.extent, 0)):
            if used:  # stores that were taken must happen in any case
                starts, used = {}, set()
                whole = seq(*(slot.load() for slot in plan.slots), new_loop, *(slot.store() for slot in plan.slots))
            whole = IfThenElse(build.greater(loop.extent, 0), whole)
        for acc in plan.memory:
            whole = Allocate(acc, plan.memory[acc][0], (build.const(plan.memory[acc][1], "int32"),), build.true(), whole)
        return whole, used




def _constant_arrays(body: Stmt) -> set[Var]:
    """Returns the allocations whose every access has a constant index."""
    arrays = {s.buffer_var for s in of_kinds(body, Allocate) if isinstance(s, Allocate) and isinstance(s.extents[0], IntImm)}
    for node in of_kinds(body, Load, Store, POINTER):
        if not arrays:
            break
        if isinstance(node, (Load, Store)):
            base = node.index.base if isinstance(node.index, Ramp) else node.index
            if not isinstance(base, IntImm) or node.predicate is not None:
                arrays.discard(node.buffer_var)
        elif isinstance(node, Var):
            arrays.discard(node)
    return arrays
