"""Allocate once, outside serial loops, and let allocations with disjoint live ranges share memory.

before:  for (i: 0, n) { allocate(T, [8]) { T[..] = ..; .. = T[..] } }
after:   allocate(T, [8]) { for (i: 0, n) { T[..] = ..; .. = T[..] } }

before:  allocate(A, [64]) { allocate(B, [64]) { allocate(C, [64]) { A = f(); B = g(A); C = h(B); out = C } } }
after:   allocate(A, [64]) { allocate(B, [64]) { A = f(); B = g(A); A = h(B); out = A } }

An allocation is moved out to the function, to the body of the parallel loop (each thread has its own), to just below an
assertion, or to the innermost loop or let that its size depends on. Its live range reaches from its first to its last access; a
loop that has an access but not the allocation itself belongs to it as a whole, since values may be carried from iteration to
iteration. Two share memory if scope, dtype and place are the same and both sizes are constants (the larger one is allocated) or
equal. An output never takes the place of an operand that the same launch of threads reads, and of one of one statement only
with `in_place`. Shared memory keeps the loop that it was moved out of as a note (HOME), for buffers of other dtypes
(`device/share_memory.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, IntImm, Load, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import (
    LAUNCH,
    LOGICAL_SHAPE,
    THREADS,
    Allocate,
    AssertStmt,
    AttrStmt,
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
from tedsl.ir.types import PointerType, memory_kind
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.fresh_stack import Descent
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.live_ranges import HOME, LiveRange, LiveRanges
from tedsl.passes.storage.as_bits import accessed_side_by_side, as_bits, bits_of, has_bits, only_loaded_and_stored
from tedsl.passes.storage.in_place import stores_over

SMALL = 32  # bits: what fits a register is not worth sharing


def rewrite_storage(func: PrimFunc, *, in_place: bool = False, across_dtypes: bool = False) -> PrimFunc:
    """Returns `func` with its allocations moved out of serial loops and shared; itself if it allocates nothing.

    in_place: a result may take the place of an operand that its statement is the last to read (`in_place.py`). across_dtypes:
    values of several dtypes may share memory (`as_bits.py`).
    """
    if not contains(func.body, Allocate):
        return func
    plain = only_loaded_and_stored(func.body) if across_dtypes else frozenset()
    planner = _Planner(in_place, plain, plain & accessed_side_by_side(func.body) if plain else plain)
    body = planner.place(planner.visit(func.body), planner.pending)
    if planner.mixed:
        bits = {slot: pointer_var(slot.name, bits_of(width), scope) for slot, (width, scope) in planner.mixed.items()}
        body = as_bits(body, {old: bits[new] for old, new in (*planner.shared.items(), *zip(bits, bits)) if new in bits})
    shared = {old: new for old, new in planner.shared.items() if old is not new and new not in planner.mixed}
    return func.with_body(substitute(body, shared) if shared else body)


@dataclass
class _Slot:
    """Memory that several allocations use one after the other."""

    node: Allocate
    size: Expr
    free_after: int
    home: Var | None
    holder: LiveRange  # the last that uses it
    nodes: list[Allocate]  # all that do
    is_shared: bool = False

    def has_dtype(self, dtype: DType) -> bool:
        """Tells whether `dtype` is that of all values in it."""
        return all(node.dtype is dtype for node in self.nodes)


class _Planner:
    """Takes allocations out of the code (into `pending`), numbers the statements, and puts the allocations back with
    `place`.
    """

    def __init__(self, in_place: bool, plain: frozenset[Var], side_by_side: frozenset[Var]) -> None:
        self.plain = plain  # memory that may hold values of several dtypes of one width
        self.side_by_side = side_by_side  # and of several widths
        self.mixed: dict[Var, tuple[int, str]] = {}  # memory that does: the bits of the narrowest dtype, and its scope
        self.live = LiveRanges()
        self.loops: list[For | None] = []  # around; None: of other kinds
        self.stores: dict[int, tuple[Store, tuple[For | None, ...]]] | None = {} if in_place else None  # by their numbers
        self.headers: set[int] = set()  # the numbers of the bounds of loops
        self.homes: dict[LiveRange, Var | None] = {}
        self.pending: list[LiveRange] = []
        self.shared: dict[Var, Var] = {}
        self.descent = Descent()
        self.launched: frozenset[Var] = frozenset()  # the threads of the kernel around
        self.threads = 0  # how many axes of threads are around: others may store to the same element

    def visit(self, stmt: Stmt) -> Stmt:
        return self.descent(self.planned, stmt)

    def planned(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Allocate():
                return self.allocation(stmt)
            case SeqStmt():
                parts = [self.visit(s) for s in stmt.seq]
                return stmt if all(a is b for a, b in zip(parts, stmt.seq)) else seq(*parts)
            case For() | While():
                return self.loop(stmt)
            case LetStmt():
                self.live.accessed(stmt.value)
                return self.fenced(stmt, {stmt.var})
            case AssertStmt():
                self.live.accessed(stmt.condition)
                return self.fenced(stmt, None)
            case AttrStmt():
                self.live.accessed(stmt.value)
                self.threads += stmt.attr_key in THREADS
                made = self.launch(stmt) if stmt.attr_key == LAUNCH else self.fenced(stmt, set())
                self.threads -= stmt.attr_key in THREADS
                return made
            case IfThenElse():
                self.live.accessed(stmt.condition)
                then = self.visit(stmt.then_case)
                other = None if stmt.else_case is None else self.visit(stmt.else_case)
                same = then is stmt.then_case and other is stmt.else_case
                return stmt if same else IfThenElse(stmt.condition, then, other)
            case _:
                self.live.accessed(stmt)
                if isinstance(stmt, Store) and self.stores is not None and not self.threads:
                    self.stores[self.live.clock] = stmt, tuple(self.loops)
                return stmt

    def allocation(self, node: Allocate) -> Stmt:
        life = self.live.allocated(node)
        around = self.loops[-1] if self.loops else None
        self.homes[life] = None if around is None else around.loop_var
        if build.is_true(node.condition) and not any(isinstance(n, Load) for e in node.extents for n in post_order(e)):
            self.pending.append(life)
            return self.visit(node.body)
        outer, self.pending = self.pending, []
        body = self.place(self.visit(node.body), self.pending)
        self.pending = outer
        return node if body is node.body else node.replace(body=body)

    def launch(self, stmt: AttrStmt) -> Stmt:
        """Allocates the memory of a kernel where its outermost threads are launched.

        The threads run in any order, so memory that is allocated outside of them and used in them is live during the whole
        launch.
        """
        outside, var = self.launched, stmt.node.var
        self.launched = outside | {var}
        if outside:
            new = self.fenced(stmt, {var} - outside)
        else:
            with self.repeated(None):
                new = self.fenced(stmt, None)
        self.launched = outside
        return new

    def fenced(self, stmt: LetStmt | AssertStmt | AttrStmt, bound: set[Var] | None) -> Stmt:
        """Returns `stmt` with its body visited. Allocations that depend on a variable of `bound` stay inside it; all of them if
        `bound` is None.
        """
        outer, self.pending = self.pending, []
        body = self.settle(self.visit(stmt.body), bound)
        self.pending = outer + self.pending
        return stmt if body is stmt.body else stmt.replace(body=body)

    def settle(self, body: Stmt, bound: set[Var] | None) -> Stmt:
        here = {life: None for life in self.pending if bound is None or _needs(life.node, bound)}
        self.pending = [life for life in self.pending if life not in here]
        return self.place(body, list(here))

    def loop(self, loop: For | While) -> Stmt:
        outer, self.pending = self.pending, []
        with self.repeated(loop if isinstance(loop, For) else None):
            self.live.accessed(*((loop.min, loop.extent) if isinstance(loop, For) else (loop.condition,)))
            self.headers.add(self.live.clock)
            body = self.visit(loop.body)
        private = isinstance(loop, For) and loop.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING)
        body = self.settle(body, None if private else {loop.loop_var} if isinstance(loop, For) else set())
        self.pending = outer + self.pending
        return loop if body is loop.body else loop.replace(body=body)

    @contextmanager
    def repeated(self, loop: For | None) -> Iterator[None]:
        """Context manager in which the body of `loop` is visited, or of one of another kind."""
        self.loops.append(loop)
        with self.live.repeated():
            yield
        self.loops.pop()

    def free_slot(self, slots: list[_Slot], life: LiveRange, size: Expr) -> _Slot | None:
        """Returns the best fitting slot that is free when `life` begins: the smallest that is large enough, else the largest.
        """
        if life.first is None or _is_small(life.node, size) or self.in_registers(_scope(life.node)):
            return None
        fitting = [slot for slot in slots if (slot.free_after < life.first or self.in_place(slot.holder, life))
                   and (slot.has_dtype(life.node.dtype) or self.share_bits(slot, life.node))
                   and _scope(slot.node) == _scope(life.node) and _notes(slot.node) == _notes(life.node)
                   and not _is_small(slot.node, slot.size) and _comparable(slot.size, size)]
        if not isinstance(size, IntImm) or not fitting:
            return fitting[0] if fitting else None
        bits = {id(slot): _value(slot.size) * slot.node.dtype.bits for slot in fitting}
        large = [slot for slot in fitting if bits[id(slot)] >= size.value * life.node.dtype.bits]
        return min(large, key=lambda s: bits[id(s)]) if large else max(fitting, key=lambda s: bits[id(s)])

    def in_registers(self, scope: str) -> bool:
        """Tells whether memory of `scope` is registers, or as good as. Such with a tag is memory of a machine that
        the program knows, and `build` does not.
        """
        kind = memory_kind(scope)
        return kind == "wmma" or (kind in ("local", "warp") and (kind == scope or self.stores is None))

    def share_bits(self, slot: _Slot, b: Allocate) -> bool:
        """Tells whether memory may hold values of the dtype of `b` too. One of symbolic size has elements of one width."""
        widths = {node.dtype.bits for node in (*slot.nodes, b)}
        possible = self.plain if len(widths) == 1 else self.side_by_side if isinstance(slot.size, IntImm) else frozenset()
        return all(node.buffer_var in possible and has_bits(node.dtype) for node in (*slot.nodes, b))

    def in_place(self, old: LiveRange, new: LiveRange) -> bool:
        """Tells whether the statement with which `new` begins is the last that reads `old`, and may store over it."""
        if self.stores is None or new.first is None or old.last not in self.stores:
            return False
        if old.node.dtype.bits != new.node.dtype.bits:
            return False  # a result covers several operands, or a part of one
        if not all(number in self.headers for number in range(new.first, old.last)):
            return False  # more than this statement is in the loops
        store, loops = self.stores[old.last]
        alive = loops[min(old.loops, new.loops):]
        return store.buffer_var is new.node.buffer_var and stores_over(store, old.node.buffer_var, alive)

    def place(self, body: Stmt, lives: list[LiveRange]) -> Stmt:
        """Returns `body` inside the allocations `lives`, those with disjoint live ranges merged."""
        slots: list[_Slot] = []
        for life in sorted(lives, key=lambda life: -1 if life.first is None else life.first):
            size = _size(life.node)
            slot = self.free_slot(slots, life, size)
            if slot is None:
                slots.append(_Slot(life.node, size, life.last, self.homes[life], life, [life.node]))
            else:
                self.shared[life.node.buffer_var] = slot.node.buffer_var
                slot.size = _larger(slot.size, _in_elements(size, life.node, slot))
                slot.free_after, slot.is_shared = life.last, True
                slot.holder = life
                slot.nodes.append(life.node)
                if not slot.has_dtype(slot.node.dtype):
                    self.mixed[slot.node.buffer_var] = min(node.dtype.bits for node in slot.nodes), _scope(slot.node)
                slot.home = slot.home if slot.home is self.homes[life] else None
        order = {life.node: k for k, life in enumerate(lives)}
        for slot in sorted(slots, key=lambda slot: -order[slot.node]):
            node = slot.node
            extents = node.extents if len(node.extents) == 1 and node.extents[0] is slot.size else (slot.size,)
            notes = _notes(node) if slot.is_shared else node.annotations
            if slot.home is not None and notes.get(HOME) is not slot.home and memory_kind(_scope(node)) == "shared":
                notes = {**notes, HOME: slot.home}
            same = body is node.body and extents is node.extents and notes is node.annotations
            body = node if same else node.replace(body=body, extents=extents, annotations=notes)
        return body


def _needs(node: Allocate, bound: set[Var]) -> bool:
    return any(n in bound for extent in node.extents for n in post_order(extent))


def _size(node: Allocate) -> Expr:
    size = node.extents[0] if node.extents else build.const(1, "int32")
    for extent in node.extents[1:]:
        size = build.product_of_extents(size, extent)
    return size


def _notes(node: Allocate) -> dict[str, Any]:
    """Returns those annotations of an allocation that must be equal for two allocations to share memory: all but its shape and
    its loop.
    """
    return {key: value for key, value in node.annotations.items() if key not in (LOGICAL_SHAPE, HOME)}


def _comparable(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm)) or structural_equal(a, b)


def _is_small(node: Allocate, size: Expr) -> bool:
    return isinstance(size, IntImm) and size.value * node.dtype.bits <= SMALL


def _larger(a: Expr, b: Expr) -> Expr:
    return b if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value > a.value else a


def _in_elements(size: Expr, node: Allocate, slot: _Slot) -> Expr:
    """Returns how many elements of a slot are as large as `size` elements of `node`."""
    if not isinstance(size, IntImm) or node.dtype.bits == slot.node.dtype.bits:
        return size
    return IntImm(size.dtype, -(-size.value * node.dtype.bits // slot.node.dtype.bits))


def _value(size: Expr) -> int:
    assert isinstance(size, IntImm)
    return size.value


def _scope(node: Allocate) -> str:
    annotation = node.buffer_var.type_annotation
    return (annotation.storage_scope or "global") if isinstance(annotation, PointerType) else "global"
