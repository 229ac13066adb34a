"""Refuses races inside one statement: a thread reads what another thread writes, and no barrier can stand in between.

    S[threadIdx.x] = S[7 - threadIdx.x]                            thread 0 reads S[7], which thread 7 writes
    if (S[7 - threadIdx.x] > 0) { S[threadIdx.x] = 0 }             the same: some decide after others have written
    if (threadIdx.x < 4) { S[threadIdx.x] = 0 } else { .. = S[threadIdx.x - 4] }     sides of a branch have no order either

A race is refused if it is shown: two threads and an element, at one iteration of the loops around and for some sizes.
Other iterations and other statements are separated by barriers. Conditions on data are assumed to hold, except that a race
that depends on one is not refused between the sides of a branch, nor in memory of the caller.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Load, Var
from tedsl.ir.node import Node
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, For, IfThenElse, LetStmt, Stmt, Store
from tedsl.ir.walk.accesses import Access, accesses, inside_of, never, reads
from tedsl.ir.walk.around import OUTSIDE, Around, Condition, Loop, WithoutLets
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import noted_memory, scope_of, takes_notes
from tedsl.passes.races.known_values import Values, elements, may_hold, on_data, value
from tedsl.passes.races.may_meet import POINTS, may_meet
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.passes.threads.meetings import is_barrier

SIZES = ((8, 8, 8, 8), (3, 5, 7, 2), (2, 1, 3, 4), (16, 4, 2, 8))  # tried for what only a call decides, in turn
UNKNOWN = 2  # iterations of a loop that data bounds
STEPS: tuple[Callable[[int], int], ...] = (lambda n: 0, lambda n: min(1, n - 1), lambda n: n // 2, lambda n: n - 1)
ONE, SIDES = "in one statement", "on the two sides of one branch"
ALIEN = "in memory of one thread that is allocated outside of the kernel, once for all threads"
HINTS = {SIDES: "make it two branches, one after the other, in the order that is meant: threads wait between them",
         ALIEN: "allocate it inside of the threads: each of them has its own there"}
_Thread = tuple[int, ...]


def check_statements(kernel: Kernel) -> None:
    """Raise LoweringError for a statement in which a thread reads an element that another thread writes."""
    if kernel.threads:
        blocks = OUTSIDE.within(*(axis.loop for axis in kernel.blocks))
        _Statements(kernel).stmt(kernel.body, blocks)
        _Statements(kernel).alone(kernel.body, blocks)


class _Statements:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.threads = kernel, kernel.distinct_threads()
        nodes = list(post_order(kernel.body))
        allocated = {node.buffer_var: node for node in nodes if isinstance(node, Allocate)}
        self.extents = {memory: node.extents for memory, node in allocated.items()}
        used = {memory: scope_of(memory.type_annotation) for memory in _memory(nodes, Load) & _memory(nodes, Store)}
        self.shared = {memory for memory, scope in used.items() if scope in ("shared", "warp", "global")}
        self.alien = {memory for memory in used if memory not in self.shared and memory not in allocated
                      and not takes_notes(memory)}
        self.until_barrier = True
        self.callers = {memory for memory in self.shared if used[memory] == "global" and memory not in allocated}
        self.without_lets = WithoutLets(keep=on_data)
        self.known: dict[Around, list[Expr]] = {}
        for node in reversed(nodes):  # from the outside in
            if isinstance(node, For):
                self.threads.loop(node.loop_var, node.min, node.extent)
            elif isinstance(node, LetStmt):
                self.threads.lets.add(node.var)

    def stmt(self, stmt: Stmt, around: Around) -> None:
        match stmt:
            case Store():
                reads, writes = self.parted(accesses(stmt, around, wanted=self.is_shared))
                self.compare(reads[::-1], writes)
            case IfThenElse():
                reads = self.reads((stmt.condition,), around)
                sides = [self.accesses(side, where) for side, where in sides_of(stmt, around)]
                if reads:
                    self.compare(reads, [write for _, writes in sides for write in writes])
                if len(sides) == 2:
                    (reads, writes), (others, replaced) = sides
                    self.compare(reads, replaced, SIDES)
                    self.compare(others, writes, SIDES)
                for side, where in sides_of(stmt, around):
                    self.stmt(side, where)
            case _:
                inner = inside_of(stmt, around)
                reads = self.reads((stmt.min, stmt.extent), around) if isinstance(stmt, For) else []
                for child in stmt.child_nodes():
                    if isinstance(child, Stmt):
                        if reads:
                            self.compare(reads, self.accesses(child, inner)[1])
                        self.stmt(child, inner)

    def alone(self, body: Stmt, around: Around) -> None:
        """Refuses threads that are shown to touch each other's elements in memory of scope "local" that is allocated outside
        the kernel.
        """
        if self.alien:
            self.shared, self.until_barrier = self.alien, False
            self.compare(*self.accesses(body, around), ALIEN)

    def accesses(self, stmt: Stmt, around: Around) -> tuple[list[Access], list[Access]]:
        """Returns the reads and the writes of `stmt` before its first barrier, or all of them (without `until_barrier`)."""
        return self.parted(accesses(stmt, around, wanted=self.is_shared, until=is_barrier if self.until_barrier else never))

    def reads(self, exprs: Sequence[Expr], around: Around) -> list[Access]:
        """Returns the loads of shared memory in expressions, the last one first, each with the conditions under which it is
        executed.
        """
        return list(reads(exprs, around, wanted=self.is_shared))[::-1]

    def is_shared(self, node: Node) -> bool:
        return isinstance(node, Load) and node.buffer_var in self.shared

    def parted(self, accesses: Iterable[Access]) -> tuple[list[Access], list[Access]]:
        """Splits accesses into the reads and the writes."""
        both: tuple[list[Access], list[Access]] = [], []
        for access in accesses:
            both[access.writes].append(access)
        return both

    # --- is it a race? ---

    def compare(self, reads: list[Access], writes: list[Access], where: str = ONE) -> None:
        """Raises LoweringError if two threads are shown to touch one element, one by a read and the other by a write."""
        for read, write in itertools.product(reads, writes):
            memory = read.memory
            if memory is not write.memory or memory not in self.shared:
                continue
            if (where != ONE or memory in self.callers) and any(
                    on_data(condition) for access in (read, write) for condition in self.conditions(access)):
                continue
            same = {loop.var for loop in read.loops} & {loop.var for loop in write.loops}
            if may_meet(read, write, distinct=self.threads, same=same):
                self.search(read, write, where)

    def conditions(self, access: Access) -> list[Expr]:
        """Returns the conditions around an access, and the conditions that the loops are in their ranges, with lets
        substituted.
        """
        if access.around not in self.known:
            facts: list[Expr] = []
            for step in self.without_lets(access.around).steps():
                if isinstance(step, Condition):
                    facts.append(step.value)
                elif isinstance(step, Loop) and step.by is not None:
                    facts += step.facts
            self.known[access.around] = facts
        return self.known[access.around]

    def search(self, read: Access, write: Access, where: str) -> None:
        """Searches for two threads that touch one element, at some iterations and for some sizes, and raises LoweringError with
        them.
        """
        memory = read.memory
        plain, stored = (access.without_lets(self.without_lets) for access in (read, write))
        expressions = [e for access, known in ((read, plain), (write, stored))
                       for e in (*known.indices, *self.conditions(access))]
        outer = {loop.var: loop for loop in stored.around.loops()}
        inner = list({**outer, **{loop.var: loop for loop in plain.around.loops() if loop.var not in outer}}.values())
        own = {axis.var for axis in self.kernel.axes} | {loop.var for loop in inner}
        counts = [e for loop in inner for e in (loop.min, loop.extent)] + [axis.count for axis in self.kernel.threads]
        symbols = list(dict.fromkeys(v for e in (*expressions, *counts) for v in variables(e)
                                     if v not in own and v.dtype.is_int))
        if on_data(plain.node.index) or on_data(stored.node.index) or (symbols and memory in self.callers):
            return  # strides of the caller's are no sizes to try: they keep rows apart
        both = len(outer) < len(inner)  # iterations of their own on either side
        steps = itertools.product(STEPS, STEPS if both else STEPS[:1]) if inner else [(STEPS[0], STEPS[0])]
        for sizes, (step, other) in itertools.product(SIZES if symbols else SIZES[:1], list(steps)):
            values = dict(zip(symbols, itertools.cycle(sizes)))
            at = [(loop, step if k < len(outer) else other) for k, loop in enumerate(inner)]
            meeting = self.at(memory, read, write, values, at)
            if meeting is not None:
                raise self.race(read, write, *meeting, values, where)

    def at(self, memory: Var, read: Access, write: Access, values: Values,
           steps: Sequence[tuple[Loop, Callable[[int], int]]]) -> tuple[_Thread, _Thread, int] | None:
        """Returns a reading thread, a writing thread and the element that both touch, with loop variables and sizes at
        `values`; None if there is none.
        """
        counts = [value(axis.count, values) for axis in self.kernel.threads]
        if None in counts:
            return None
        last = {axis.var: (count or 1) - 1 for axis, count in zip(self.kernel.threads, counts)}
        for loop, step in steps:
            low, many = (value(e, {**values, **last}) for e in (loop.min, loop.extent))
            if low is None or (many is not None and many <= 0):
                return None
            many = UNKNOWN if many is None else many
            values = {**values, loop.var: low + step(many)}
        limit = value(build.as_expr(1), values)
        for extent in self.extents.get(memory, ()):
            size = value(extent, values)
            limit = None if size is None or limit is None else limit * size
        limit = limit if memory in self.extents else None
        # a warp is the threads of one row: they share its memory
        rows = [scope_of(memory.type_annotation) == "warp" and axis.axis.thread_tag != "threadIdx.x"
                for axis in self.kernel.threads]
        writers: dict[tuple[int, _Thread], list[_Thread]] = {}
        threads = list(itertools.islice(itertools.product(*[range(count or 0) for count in counts]), POINTS))
        for thread in threads:
            for element in self.elements(write, values, thread):
                writers.setdefault((element, tuple(itertools.compress(thread, rows))), []).append(thread)
        for thread in threads:
            for element in self.elements(read, values, thread):
                row = tuple(itertools.compress(thread, rows))
                other = next((writer for writer in writers.get((element, row), ()) if writer != thread), None)
                if other is not None and element >= 0 and (limit is None or element < limit):
                    return thread, other, element
        return None

    def elements(self, access: Access, values: Values, thread: _Thread) -> list[int]:
        """Returns the elements that `thread` touches, as far as they are known."""
        here = {**values, **{axis.var: k for axis, k in zip(self.kernel.threads, thread)}}
        if not all(may_hold(condition, here) for condition in self.conditions(access)):
            return []
        return elements(access.without_lets(self.without_lets).node.index, here) or []

    def race(self, read: Access, write: Access, reader: _Thread, writer: _Thread, element: int, sizes: Values,
             place: str) -> LoweringError:
        name, threads = noted_memory(read.memory.name), self.kernel.threads  # what checked mode notes of an element
        differs = next(axis for axis, a, b in zip(threads, reader, writer) if a != b)
        who, whom = (", ".join(map(str, point)) for point in (reader, writer))
        where = f" (where {', '.join(f'{v.name} = {k}' for v, k in sizes.items())})" if sizes else ""
        tag = differs.axis.thread_tag
        hint = HINTS.get(place) or (
            f"read {name}[{shown(read.node.index)}] into memory of each thread first (allocate with scope 'local', or a let), "
            "then a barrier, tvm_storage_sync('shared'), then write")
        return LoweringError(
            f"the threads of {tag} write {name}[{shown(write.node.index)}] and read {name}[{shown(read.node.index)}] {place}: "
            f"they would race. Thread {who} reads {name}[{element}], which thread {whom} writes{where}",
            hint=hint, about=tag)


def sides_of(branch: IfThenElse, around: Around) -> list[tuple[Stmt, Around]]:
    """Returns the sides of `branch`, each with its conditions added to `around`."""
    sides = [(branch.then_case, around.within(Condition(branch.condition, True, branch)))]
    if branch.else_case is not None:
        sides.append((branch.else_case, around.within(Condition(branch.condition, False, branch))))
    return sides


def _memory(nodes: Sequence[Node], kind: type[Load] | type[Store]) -> set[Var]:
    return {node.buffer_var for node in nodes if isinstance(node, kind)}
