"""Refuses updates of one element by several threads: the result would depend on which of them comes last.

attr [threadIdx.x] "thread_extent" = 8 { B[0] = B[0] + A[threadIdx.x] }        all 8 threads read, add and write at once
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.errors import LoweringError
from tedsl.ir.expr import Expr, Let, Var
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, For, IfThenElse, Store, While
from tedsl.ir.walk.accesses import stores
from tedsl.ir.walk.around import OUTSIDE, Around, Binding, Condition, Loop, Step
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.dependence import Dependence
from tedsl.passes.facts.threads import is_common, scope_of, takes_notes
from tedsl.passes.threads.gather_threads import Kernel, Thread


def check_races(kernel: Kernel) -> None:
    """Raises LoweringError for an element that several threads update without a condition that selects one of them."""
    races = _Races(kernel)
    known = None
    while known != races.private:  # what a turn of a loop writes, the next one reads
        known = dict(races.private)
        races.each(races.note)
    races.each(races.check)


class _Races:
    def __init__(self, kernel: Kernel) -> None:
        self.depends = Dependence()
        self.scopes = {node.buffer_var: scope_of(node.buffer_var.type_annotation) for node in post_order(kernel.body)
                       if isinstance(node, Allocate)}
        self.stores = list(stores(kernel.body))
        self.threads = kernel.threads
        self.all = [thread for thread in kernel.axes if not thread.is_single]
        self.lets: dict[Var, frozenset[Var]] = {}
        self.known: dict[Around, frozenset[Var]] = {}  # what decides whether and where a place is reached
        self.private: dict[Var, frozenset[Var]] = {}  # memory of each thread: the threads that decide what is in it

    def sources(self, *exprs: Expr | None) -> frozenset[Var]:
        """Returns the variables and memory that expressions depend on, followed through lets and memory of each thread."""
        sources: frozenset[Var] = frozenset()
        for e in exprs:
            if e is not None:
                for var in self.depends(e):
                    sources |= self.lets.get(var, frozenset((var,))) | self.private.get(var, frozenset())
                for node in post_order(e):
                    if isinstance(node, Let):
                        sources |= self.sources(node.value)
        return sources

    def each(self, visit: Callable[[Store, frozenset[Var]], None]) -> None:
        """Calls `visit` for each store in order, with the variables and memory that decide whether it is executed."""
        self.known = {OUTSIDE: frozenset()}
        for store in self.stores:
            visit(store.node, self.decides(store.around))

    def decides(self, place: Around) -> frozenset[Var]:
        pending: list[Around] = []
        at: Around | None = place
        while at is not None and at not in self.known:
            pending.append(at)
            at = at.outer
        for at in reversed(pending):
            assert at.outer is not None
            self.known[at] = self.known[at.outer] | self.decided_by(at.step)
        return self.known[place]

    def decided_by(self, step: Step | None) -> frozenset[Var]:
        """Returns the variables and memory that decide which iterations of a loop, or which side of a branch, are executed;
        records in `lets` those that the value of its variable depends on.
        """
        match step:
            case Loop(var=var, min=low, extent=extent, by=For()):
                self.lets[var] = self.sources(low)
                return self.sources(low, extent)
            case Binding(var=var, value=value):
                self.lets[var] = self.sources(value)
            case Condition(expr=condition, by=IfThenElse() | While()):
                return self.sources(condition)
        return frozenset()

    def axes_of(self, memory: Var) -> list[Thread]:
        """The axes whose threads share `memory`."""
        if takes_notes(memory):
            return []
        scope = self.scopes.get(memory)
        return self.all if scope is None else [thread for thread in self.threads if is_common(scope, thread.axis.thread_tag)]

    def note(self, store: Store, around: frozenset[Var]) -> None:
        """Records that memory of each thread depends on the thread if the value stored there does."""
        memory = store.buffer_var
        shared = self.axes_of(memory)
        own = frozenset(thread.var for thread in self.all if thread not in shared)
        deciding = own & (around | self.sources(store.value, store.index, store.predicate))
        if deciding:
            self.private[memory] = self.private.get(memory, frozenset()) | deciding

    def check(self, store: Store, around: frozenset[Var]) -> None:
        axes = self.axes_of(store.buffer_var)
        if not axes or store.buffer_var not in self.sources(store.value):
            return
        told_apart = around | self.sources(store.index, store.predicate)
        for thread in axes:
            if thread.var not in told_apart:
                raise _race(store, thread)


def _race(store: Store, thread: Thread) -> LoweringError:
    tag = thread.axis.thread_tag
    return LoweringError(
        f"all {shown(thread.count)} threads of {tag} update {store.buffer_var.name}[{shown(store.index)}]: they would race",
        hint=f"bind a loop over elements of that stage to {tag}; or let one thread do it, set_store_predicate(tx.var.equal(0)) "
             f"where tx is the axis {tag}; or keep the values in memory of each thread, set_scope('local')", about=tag)
