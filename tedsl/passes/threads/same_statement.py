"""Races inside of one statement: a thread reads what another thread writes there, and no barrier fits in between.

    S[threadIdx.x] = S[7 - threadIdx.x]                            thread 0 reads S[7], which thread 7 writes
    if (S[7 - threadIdx.x] > 0) { S[threadIdx.x] = 0 }             the same: some decide after others have written
    if (threadIdx.x < 4) { S[threadIdx.x] = 0 } else { .. = S[threadIdx.x - 4] }     sides of a branch have no order either

Refused is a race that is shown: two threads and an element, at one iteration of the loops around and for some sizes.
Other iterations and other statements are kept apart by barriers. Conditions on data are taken to hold; where only the sides
of a branch race, or threads in memory of the caller's, nothing is refused that depends on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import And, Broadcast, Call, Expr, Load, Or, Ramp, Select, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import Allocate, AssertStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, Store, While
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import noted_memory, scope_of, takes_notes
from tedsl.passes.threads.conflicts import THREADS, Access, Conflicts
from tedsl.passes.threads.every_thread import Around, Loop
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.passes.threads.known_values import Values, may_hold, on_data, value
from tedsl.passes.threads.meetings import is_barrier

SIZES = ((8, 8, 8, 8), (3, 5, 7, 2), (2, 1, 3, 4), (16, 4, 2, 8))  # tried for what only a call decides, in turn
UNKNOWN = 2  # iterations of a loop that data bounds
STEPS: tuple[Callable[[int], int], ...] = (lambda n: 0, lambda n: min(1, n - 1), lambda n: n // 2, lambda n: n - 1)
ONE, SIDES = "in one statement", "on the two sides of one branch"
OUTSIDE = "in memory of one thread that is allocated outside of the kernel, once for all threads"
HINTS = {SIDES: "make it two branches, one after the other, in the order that is meant: threads wait between them",
         OUTSIDE: "allocate it inside of the threads: each of them has its own there"}
_Thread = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Touch:
    """An access to an element, and where it stands."""

    index: Expr
    around: Around


Touched = list[tuple[Var, _Touch]]


def check_statements(kernel: Kernel) -> None:
    """Raises for a statement in which a thread reads an element that another one writes."""
    if kernel.threads:
        blocks = Around(tuple((one.var, build.const(0, one.var.dtype), one.count) for one in kernel.blocks))
        _Statements(kernel).stmt(kernel.body, blocks)
        _Statements(kernel).alone(kernel.body, blocks)


class _Statements:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.conflicts = kernel, Conflicts(kernel)
        nodes = list(post_order(kernel.body))
        allocated = {node.buffer_var: node for node in nodes if isinstance(node, Allocate)}
        self.extents = {memory: node.extents for memory, node in allocated.items()}
        used = {memory: scope_of(memory.type_annotation) for memory in _memory(nodes, Load) & _memory(nodes, Store)}
        self.shared = {memory for memory, scope in used.items() if scope in ("shared", "warp", "global")}
        self.alien = {memory for memory in used if memory not in self.shared and memory not in allocated
                      and not takes_notes(memory)}
        self.until_barrier = True
        self.callers = {memory for memory in self.shared if used[memory] == "global" and memory not in allocated}
        self.lets: dict[Var, Expr] = {}

    def stmt(self, stmt: Stmt, around: Around) -> None:
        match stmt:
            case Store():
                reads = [read for e in (stmt.value, stmt.index, stmt.predicate) if e is not None
                         for read in self.reads(e, around)]
                self.compare(reads, [(stmt.buffer_var, _Touch(stmt.index, around))])
            case IfThenElse():
                reads = list(self.reads(stmt.condition, around))
                sides = self.sides(stmt, around)
                if reads:
                    self.compare(reads, [found for side, where in sides for found in self.stores(side, where)])
                if len(sides) == 2:
                    (reads, writes), (others, replaced) = (self.touched(side, where) for side, where in sides)
                    self.compare(reads, replaced, SIDES)
                    self.compare(others, writes, SIDES)
                for side, where in sides:
                    self.stmt(side, where)
            case For():
                self.conflicts.loop(stmt)
                reads = [*self.reads(stmt.min, around), *self.reads(stmt.extent, around)]
                inner = self.inside(stmt, around)
                if reads:
                    self.compare(reads, self.stores(stmt.body, inner))
                self.stmt(stmt.body, inner)
            case _:
                inner = self.inside(stmt, around)
                for child in stmt.child_nodes():
                    if isinstance(child, Stmt):
                        self.stmt(child, inner)

    def alone(self, body: Stmt, around: Around) -> None:
        """Each thread keeps to elements of its own in memory of one thread that is allocated outside, once for all of them."""
        if self.alien:
            self.shared, self.until_barrier = self.alien, False
            self.compare(*self.touched(body, around), OUTSIDE)

    def inside(self, stmt: Stmt, around: Around) -> Around:
        match stmt:
            case For(loop_var=v, min=low, extent=extent):
                runs = build.less(*build.match_operands(build.sub(v, low), extent))
                begun = build.less_equal(*build.match_operands(low, v))
                return replace(around, loops=(*around.loops, (v, low, extent)), conditions=(*around.conditions, begun, runs))
            case While(condition=condition) | AssertStmt(condition=condition):
                return around.under(condition)
            case LetStmt(var=v, value=value):
                self.conflicts.lets.add(v)
                if not on_data(value):
                    self.lets[v] = substitute(value, self.lets)
        return around

    def stores(self, stmt: Stmt, around: Around) -> Touched:
        """What `stmt` writes before its first barrier."""
        return self.touched(stmt, around)[1]

    def touched(self, stmt: Stmt, around: Around) -> tuple[Touched, Touched]:
        """What `stmt` reads and what it writes before its first barrier, or in all of it."""
        reads = [read for e in stmt.child_nodes() if isinstance(e, Expr) for read in self.reads(e, around)]
        writes = [(stmt.buffer_var, _Touch(stmt.index, around))] if isinstance(stmt, Store) else []
        parts = [(child, around) for child in stmt.child_nodes() if isinstance(child, Stmt)]
        if isinstance(stmt, IfThenElse):
            parts = self.sides(stmt, around)
        elif isinstance(stmt, SeqStmt):
            parts = list(itertools.takewhile(lambda part: not (self.until_barrier and is_barrier(part[0])), parts))
        elif not isinstance(stmt, Store):
            if isinstance(stmt, For):
                self.conflicts.loop(stmt)
            inner = self.inside(stmt, around)
            parts = [(child, inner) for child, _ in parts]
        for part, where in parts:
            more = self.touched(part, where)
            reads += more[0]
            writes += more[1]
        return reads, writes

    @staticmethod
    def sides(branch: IfThenElse, around: Around) -> list[tuple[Stmt, Around]]:
        sides = [(branch.then_case, around.under(branch.condition))]
        if branch.else_case is not None:
            sides.append((branch.else_case, around.under(build.logical_not(branch.condition))))
        return sides

    def reads(self, expr: Expr, around: Around) -> Iterator[tuple[Var, _Touch]]:
        """The loads of shared memory in `expr`, each under what decides whether it is made or used."""
        pending: list[tuple[Any, Around]] = [(expr, around)]
        while pending:
            node, where = pending.pop()
            match node:
                case Load(buffer_var=v, index=index) if v in self.shared:
                    yield v, _Touch(index, where)
                    pending.append((index, where))
                case And(a=a, b=b):
                    pending += [(a, where), (b, where.under(a))]
                case Or(a=a, b=b):
                    pending += [(a, where), (b, where.under(build.logical_not(a)))]
                case Select(condition=c, true_value=yes, false_value=no):
                    pending += [(c, where), (yes, where.under(c)), (no, where.under(build.logical_not(c)))]
                case Call(op=op, args=(c, yes, no)) if op is IF_THEN_ELSE:
                    pending += [(c, where), (yes, where.under(c)), (no, where.under(build.logical_not(c)))]
                case _:
                    pending += [(child, where) for child in node.child_nodes()]

    # --- is it a race? ---

    def compare(self, reads: Touched, stores: Touched, where: str = ONE) -> None:
        for (memory, read), (target, write) in itertools.product(reads, stores):
            if memory is not target or memory not in self.shared:
                continue
            if (where != ONE or memory in self.callers) and any(
                    on_data(substitute(e, self.lets)) for touch in (read, write) for e in touch.around.conditions):
                continue
            fixed = {v for v, _, _ in read.around.loops if any(v is other for other, _, _ in write.around.loops)}
            one, other = Access(memory, read.index, False, read.around), Access(target, write.index, True, write.around)
            if self.conflicts.meet(one, other, fixed):
                self.search(memory, read, write, where)

    def search(self, memory: Var, read: _Touch, write: _Touch, where: str) -> None:
        expressions = [substitute(e, self.lets) for touch in (read, write) for e in (touch.index, *touch.around.conditions)]
        inner = list(dict.fromkeys((*write.around.loops, *read.around.loops)))
        own = {one.var for one in self.kernel.axes} | {v for v, _, _ in inner}
        counts = [e for _, low, count in inner for e in (low, count)] + [one.count for one in self.kernel.threads]
        symbols = list(dict.fromkeys(v for e in (*expressions, *counts) for v in variables(e)
                                     if v not in own and v.dtype.is_int))
        if on_data(expressions[0]) or on_data(write.index) or (symbols and memory in self.callers):
            return  # strides of the caller's are no sizes to try: they keep rows apart
        both = len({v for v, _, _ in write.around.loops}) < len(inner)  # iterations of their own on either side
        steps = itertools.product(STEPS, STEPS if both else STEPS[:1]) if inner else [(STEPS[0], STEPS[0])]
        for sizes, (step, other) in itertools.product(SIZES if symbols else SIZES[:1], list(steps)):
            values = dict(zip(symbols, itertools.cycle(sizes)))
            at = [(one, step if k < len(write.around.loops) else other) for k, one in enumerate(inner)]
            found = self.at(memory, read, write, values, at)
            if found is not None:
                raise self.race(memory, read, write, *found, values, where)

    def at(self, memory: Var, read: _Touch, write: _Touch, values: Values,
           steps: Sequence[tuple[Loop, Callable[[int], int]]]) -> tuple[_Thread, _Thread, int] | None:
        """A thread that reads what another one writes, and what, at one iteration, for known sizes."""
        counts = [value(one.count, values) for one in self.kernel.threads]
        if None in counts:
            return None
        last = {one.var: (count or 1) - 1 for one, count in zip(self.kernel.threads, counts)}
        for (v, first, count), step in steps:
            low, many = (value(substitute(e, self.lets), {**values, **last}) for e in (first, count))
            if low is None or (many is not None and many <= 0):
                return None
            many = UNKNOWN if many is None else many
            values = {**values, v: low + step(many)}
        limit = value(build.as_expr(1), values)
        for extent in self.extents.get(memory, ()):
            size = value(extent, values)
            limit = None if size is None or limit is None else limit * size
        limit = limit if memory in self.extents else None
        # a warp is the threads of one row: they share its memory
        rows = [scope_of(memory.type_annotation) == "warp" and one.axis.thread_tag != "threadIdx.x"
                for one in self.kernel.threads]
        writers: dict[tuple[int, _Thread], list[_Thread]] = {}
        threads = list(itertools.islice(itertools.product(*[range(count or 0) for count in counts]), THREADS))
        for thread in threads:
            for element in self.elements(write, values, thread):
                writers.setdefault((element, tuple(itertools.compress(thread, rows))), []).append(thread)
        for thread in threads:
            for element in self.elements(read, values, thread):
                row = tuple(itertools.compress(thread, rows))
                other = next((one for one in writers.get((element, row), ()) if one != thread), None)
                if other is not None and element >= 0 and (limit is None or element < limit):
                    return thread, other, element
        return None

    def elements(self, touch: _Touch, values: Values, thread: tuple[int, ...]) -> list[int]:
        """The elements that `thread` touches."""
        here = {**values, **{one.var: k for one, k in zip(self.kernel.threads, thread)}}
        if not all(may_hold(substitute(condition, self.lets), here) for condition in touch.around.conditions):
            return []
        index = substitute(touch.index, self.lets)
        if isinstance(index, Ramp):
            base, stride = value(index.base, here), value(index.stride, here)
            return [] if base is None or stride is None else [base + lane * stride for lane in range(index.lanes)]
        found = value(index.value if isinstance(index, Broadcast) else index, here)
        return [] if found is None else [found]

    def race(self, memory: Var, read: _Touch, write: _Touch, reader: _Thread, writer: _Thread, element: int,
             sizes: Values, place: str) -> LoweringError:
        name, threads = noted_memory(memory.name), self.kernel.threads  # what checked mode notes of an element
        differs = next(one for one, a, b in zip(threads, reader, writer) if a != b)
        who, whom = (", ".join(map(str, one)) for one in (reader, writer))
        where = f" (where {', '.join(f'{v.name} = {k}' for v, k in sizes.items())})" if sizes else ""
        tag = differs.axis.thread_tag
        hint = HINTS.get(place) or (
            f"read {name}[{read.index!r}] into memory of each thread first (allocate with scope 'local', or a let), then "
            "a barrier, tvm_storage_sync('shared'), then write")
        return LoweringError(
            f"the threads of {tag} write {name}[{write.index!r}] and read {name}[{read.index!r}] {place}: they would "
            f"race. Thread {who} reads {name}[{element}], which thread {whom} writes{where}",
            hint=hint, about=tag)


def _memory(nodes: Sequence[Node], kind: type[Load] | type[Store]) -> set[Var]:
    return {node.buffer_var for node in nodes if isinstance(node, kind)}
