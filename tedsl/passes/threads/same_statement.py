"""Races inside of one statement: a thread reads what another thread writes there, and no barrier fits in between.

    S[threadIdx.x] = S[7 - threadIdx.x]                            thread 0 reads S[7], which thread 7 writes
    if (S[7 - threadIdx.x] > 0) { S[threadIdx.x] = 0 }             the same: some decide after others have written

Refused is a race that is shown: two threads and an element, at one iteration of the loops around and for some sizes.
Other iterations and other statements are kept apart by barriers. Conditions on data are taken to hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import And, Broadcast, Call, Expr, Load, Ramp, Select, Var
from tedsl.ir.stmt import Allocate, AssertStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, Store, While
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.facts.threads import scope_of
from tedsl.passes.threads.conflicts import Access, Conflicts
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.passes.threads.insert_barriers import is_barrier

THREADS = 1024  # looked at, of a block
SIZES = ((8, 8, 8, 8), (3, 5, 7, 2), (2, 1, 3, 4), (16, 4, 2, 8))  # tried for what only a call decides, in turn
UNKNOWN = 2  # iterations of a loop that data bounds
STEPS: tuple[Callable[[int], int], ...] = (lambda n: 0, lambda n: min(1, n - 1), lambda n: n // 2, lambda n: n - 1)
Values = dict[Var, int]


@dataclass(frozen=True, eq=False)
class _Around:
    """What stands around a statement: loops and blocks as (variable, first, count), and conditions."""

    loops: tuple[tuple[Var, Expr, Expr], ...] = ()
    conditions: tuple[Expr, ...] = ()

    def under(self, *conditions: Expr) -> _Around:
        return replace(self, conditions=(*self.conditions, *conditions))


@dataclass(frozen=True, eq=False)
class _Touch:
    """An access to an element, and where it stands."""

    index: Expr
    around: _Around


def check_statements(kernel: Kernel) -> None:
    """Raises for a statement in which a thread reads an element that another one writes."""
    if kernel.threads:
        _Statements(kernel).stmt(kernel.body, _Around(tuple(
            (one.var, build.const(0, one.var.dtype), one.count) for one in kernel.blocks)))


class _Statements:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.conflicts = kernel, Conflicts(kernel)
        self.shared = {node.buffer_var: node for node in post_order(kernel.body) if isinstance(node, Allocate)
                       and scope_of(node.buffer_var.type_annotation) in ("shared", "global")}
        self.lets: dict[Var, Expr] = {}

    def stmt(self, stmt: Stmt, around: _Around) -> None:
        match stmt:
            case Store():
                reads = [read for e in (stmt.value, stmt.index, stmt.predicate) if e is not None
                         for read in self.reads(e, around)]
                self.compare(reads, [(stmt.buffer_var, _Touch(stmt.index, around))])
            case IfThenElse():
                reads = list(self.reads(stmt.condition, around))
                then, other = around.under(stmt.condition), around.under(build.logical_not(stmt.condition))
                if reads:
                    stores = self.stores(stmt.then_case, then)
                    if stmt.else_case is not None:
                        stores += self.stores(stmt.else_case, other)
                    self.compare(reads, stores)
                self.stmt(stmt.then_case, then)
                if stmt.else_case is not None:
                    self.stmt(stmt.else_case, other)
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

    def inside(self, stmt: Stmt, around: _Around) -> _Around:
        match stmt:
            case For(loop_var=v, min=low, extent=extent):
                runs = build.less(*build.match_operands(build.sub(v, low), extent))
                return replace(around, loops=(*around.loops, (v, low, extent)), conditions=(*around.conditions, runs))
            case While(condition=condition) | AssertStmt(condition=condition):
                return around.under(condition)
            case LetStmt(var=v, value=value):
                self.conflicts.lets.add(v)
                if not _on_data(value):
                    self.lets[v] = substitute(value, self.lets)
        return around

    def stores(self, stmt: Stmt, around: _Around) -> list[tuple[Var, _Touch]]:
        """What `stmt` writes before its first barrier."""
        if isinstance(stmt, Store):
            return [(stmt.buffer_var, _Touch(stmt.index, around))]
        if isinstance(stmt, IfThenElse):
            sides = [(stmt.then_case, around.under(stmt.condition))]
            if stmt.else_case is not None:
                sides.append((stmt.else_case, around.under(build.logical_not(stmt.condition))))
            return [found for side, where in sides for found in self.stores(side, where)]
        parts = [child for child in stmt.child_nodes() if isinstance(child, Stmt)]
        if isinstance(stmt, SeqStmt):
            parts = list(itertools.takewhile(lambda part: not is_barrier(part), parts))
        if isinstance(stmt, For):
            self.conflicts.loop(stmt)
        inner = self.inside(stmt, around)
        return [found for part in parts for found in self.stores(part, inner)]

    def reads(self, expr: Expr, around: _Around) -> Iterator[tuple[Var, _Touch]]:
        """The loads of shared memory in `expr`, each under what decides whether it is made or used."""
        pending: list[tuple[Any, _Around]] = [(expr, around)]
        while pending:
            node, where = pending.pop()
            match node:
                case Load(buffer_var=v, index=index) if v in self.shared:
                    yield v, _Touch(index, where)
                    pending.append((index, where))
                case And(a=a, b=b):
                    pending += [(a, where), (b, where.under(a))]
                case Select(condition=c, true_value=yes, false_value=no):
                    pending += [(c, where), (yes, where.under(c)), (no, where.under(build.logical_not(c)))]
                case Call(op=op, args=(c, yes, no)) if op.name == "tir.if_then_else":
                    pending += [(c, where), (yes, where.under(c)), (no, where.under(build.logical_not(c)))]
                case _:
                    pending += [(child, where) for child in node.child_nodes()]

    # --- is it a race? ---

    def compare(self, reads: Sequence[tuple[Var, _Touch]], stores: Sequence[tuple[Var, _Touch]]) -> None:
        for (memory, read), (target, write) in itertools.product(reads, stores):
            fixed = {v for v, _, _ in read.around.loops}
            if memory is target and memory in self.shared and self.conflicts.meet(
                    Access(memory, read.index, False), Access(target, write.index, True), fixed):
                self.search(memory, read, write)

    def search(self, memory: Var, read: _Touch, write: _Touch) -> None:
        expressions = [substitute(e, self.lets) for touch in (read, write) for e in (touch.index, *touch.around.conditions)]
        inner, own = write.around.loops, {one.var for one in self.kernel.axes} | {v for v, _, _ in write.around.loops}
        counts = [e for _, low, count in inner for e in (low, count)] + [one.count for one in self.kernel.threads]
        symbols = list(dict.fromkeys(v for e in (*expressions, *counts) for v in variables(e)
                                     if v not in own and v.dtype.is_int))
        if _on_data(expressions[0]) or _on_data(write.index):
            return
        for sizes, step in itertools.product(SIZES if symbols else SIZES[:1], STEPS if inner else STEPS[:1]):
            values = dict(zip(symbols, itertools.cycle(sizes)))
            self.at(memory, read, write, values, step)

    def at(self, memory: Var, read: _Touch, write: _Touch, values: Values, step: Callable[[int], int]) -> None:
        """The threads at one iteration, for known sizes."""
        sizes = dict(values)
        counts = [_value(one.count, values) for one in self.kernel.threads]
        if None in counts:
            return
        last = {one.var: (count or 1) - 1 for one, count in zip(self.kernel.threads, counts)}
        for v, first, count in write.around.loops:
            low, many = (_value(substitute(e, self.lets), {**values, **last}) for e in (first, count))
            if low is None or (many is not None and many <= 0):
                return
            many = UNKNOWN if many is None else many
            values = {**values, v: low + step(many)}
        limit = _value(build.as_expr(1), values)
        for extent in self.shared[memory].extents:
            size = _value(extent, values)
            limit = None if size is None or limit is None else limit * size
        writers: dict[int, list[tuple[int, ...]]] = {}
        threads = list(itertools.islice(itertools.product(*[range(count or 0) for count in counts]), THREADS))
        for thread in threads:
            for element in self.elements(write, values, thread):
                writers.setdefault(element, []).append(thread)
        for thread in threads:
            for element in self.elements(read, values, thread):
                other = next((one for one in writers.get(element, ()) if one != thread), None)
                if other is not None and element >= 0 and (limit is None or element < limit):
                    raise self.race(memory, read, write, thread, other, element, sizes)

    def elements(self, touch: _Touch, values: Values, thread: tuple[int, ...]) -> list[int]:
        """The elements that `thread` touches."""
        here = {**values, **{one.var: k for one, k in zip(self.kernel.threads, thread)}}
        if not all(_may_hold(substitute(condition, self.lets), here) for condition in touch.around.conditions):
            return []
        index = substitute(touch.index, self.lets)
        if isinstance(index, Ramp):
            base, stride = _value(index.base, here), _value(index.stride, here)
            return [] if base is None or stride is None else [base + lane * stride for lane in range(index.lanes)]
        found = _value(index.value if isinstance(index, Broadcast) else index, here)
        return [] if found is None else [found]

    def race(self, memory: Var, read: _Touch, write: _Touch, reader: tuple[int, ...], writer: tuple[int, ...], element: int,
             sizes: Values) -> LoweringError:
        name, threads = memory.name, self.kernel.threads
        differs = next(one for one, a, b in zip(threads, reader, writer) if a != b)
        who, whom = (", ".join(map(str, one)) for one in (reader, writer))
        where = f" (where {', '.join(f'{v.name} = {k}' for v, k in sizes.items())})" if sizes else ""
        tag = differs.axis.thread_tag
        return LoweringError(
            f"the threads of {tag} write {name}[{write.index!r}] and read {name}[{read.index!r}] in one statement: they would "
            f"race. Thread {who} reads {name}[{element}], which thread {whom} writes{where}",
            hint=f"read {name}[{read.index!r}] into memory of each thread first (allocate with scope 'local', or a let), then "
                 "a barrier, tvm_storage_sync('shared'), then write", about=tag)


def _on_data(expr: Expr) -> bool:
    return any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_pure) for node in post_order(expr))


def _value(expr: Expr, values: Values) -> int | None:
    """The value of an index; None if it is not known."""
    from tedsl.ir.evaluate import evaluate  # the interpreter is loaded where a race is suspected only

    if expr.dtype.lanes > 1 or _on_data(expr) or any(v not in values for v in variables(expr)):
        return None
    return int(evaluate(expr, values))


def _may_hold(condition: Expr, values: Values) -> bool:
    """Whether nothing that is known speaks against `condition`."""
    pending = [condition]
    while pending:
        part = pending.pop()
        match part:
            case And(a=a, b=b):
                pending += [a, b]
            case Call(op=op, args=(inner,)) if op.name == "tir.likely":
                pending.append(inner)
            case _:
                if _value(part, values) == 0:
                    return False
    return True
