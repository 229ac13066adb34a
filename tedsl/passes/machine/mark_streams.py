"""Mark the loops that write each position of an output once, one after the other: their stores may bypass the cache, or be
whole lines of memory.

before:  for (i: 0, n) { B[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)]*2 }
after:   for (i: 0, n) { attr [B] "position_wise" = ramp(i*16, 1, 16) { B[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)]*2 } }

The value of the mark is the index of the first vector that an iteration writes. A marked loop computes the same function of
every position: where `i` is moved by a fraction of an iteration, it computes the positions in between. Only then can the code
generator move it to where lines of memory begin, as stores past the cache need it, and others take less time. The loop may
write a vector to each of several rows, as a tile of a transposition does, if the lines of all rows begin at the same positions.

Tiles that begin where lines of the output do, as those of `split(..., lines_of=B)`, have a mark around them:

before:  for (k: 0, 16) { B[ramp(k*n + max(min(t*16 - B.lead, n - 16), 0), 1, 16)] = ... }
after:   attr [B] "whole_lines" = ramp(max(min(t*16 - B.lead, n - 16), 0), 1, 16) {
           attr [B] "moved" = max(min(t*16 - B.lead, n - 16), 0) - (t*16 - B.lead) { ... } }

The first value is the index of the first vector. All that the loops inside write lies whole lines from there. The second one
is how far the tile was moved inwards: upwards if it is the first one of a row, downwards if it is the last one. What such a
tile writes of the lines of its neighbours they write, too: it may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Add, Call, Cast, Expr, IntImm, Load, Max, Min, Mul, Ramp, Shuffle, Sub, Var
from tedsl.ir.func import RECOMPUTED, PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import ELEMENTS_PAST_LINE, LIKELY
from tedsl.ir.stmt import AttrStmt, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, Store
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, uses
from tedsl.passes.facts.structure import Numbering
from tedsl.passes.folding import fold_with
from tedsl.passes.machine.split_vectors import REGISTERS
from tedsl.target.target import Target

MARK = "position_wise"
WHOLE_LINES, MOVED = "whole_lines", "moved"
NONTEMPORAL = "nontemporal"
PART = 16  # bytes: of the smallest vectors that bypass the cache, and the least alignment of what they write
_LITTLE = 2  # parts of the nearest cache, of which all that a function reads and writes fills less than one: too short a time
_MOST_NODES = 400  # of a store
_MOST_STORES = 64


def alignment_of(lanes: int, size: int, target: Target) -> int:
    """The alignment in bytes that a vector of elements of `size` bytes needs to be stored past the cache as whole lines, or as
    whole vectors of the target that lie in a line.
    """
    return min(target.machine.line, lanes * size)


def mark_streams(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with marks in the loops that the code generator may move to where lines of memory begin."""
    if target.architecture != "x86-64" or target.kind.name != "llvm" or not func.attrs.get("tir.noalias"):
        return func
    bypasses = contains(func.body, NONTEMPORAL) or not _is_small(func, target.machine.large)
    if not bypasses and _is_small(func, target.machine.l1.size // _LITTLE):
        return func
    read = {node.buffer_var for node in post_order(func.body) if isinstance(node, Load)}
    outputs = {buffer.data: buffer.dtype for buffer in func.buffers if buffer.data not in read}
    again = {buffer.data for buffer in func.buffers if buffer.name == func.attrs.get(RECOMPUTED)}
    return func.with_body(_Marker(outputs, again, target, bypasses)(func.body)) if outputs else func


def _is_small(func: PrimFunc, enough: int) -> bool:
    """Tells whether all that a function reads and writes is known to be less than `enough` bytes."""
    total = 0
    for buffer in func.buffers:
        size = buffer.dtype.bytes
        for dim in buffer.shape:
            extent = build.as_int(dim)
            if extent is None:
                return False
            size *= extent
        total += size
    return total < enough


class _Marker(ScopedRewriter):
    """again: what is computed by tiles that overlap, all of which run, but for those under conditions. bypasses: whether
    stores may bypass the cache, and tiles that begin at lines are marked, too.
    leads: by the memory, how many elements it begins behind a line. conditions: around the statement, not on sizes.
    """

    def __init__(self, outputs: dict[Var, DType], again: set[Var], target: Target, bypasses: bool) -> None:
        self.outputs, self.again, self.target, self.bypasses = outputs, again, target, bypasses
        self.leads: dict[Var, Var] = {}
        self.conditions = 0

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store() | Evaluate():
                return stmt
            case LetStmt(var=var, value=Call() | Cast() as value):
                call = value.value if isinstance(value, Cast) else value
                if isinstance(call, Call) and call.op is ELEMENTS_PAST_LINE and isinstance(call.args[0], Var) and \
                        self.is_whole_line(call):
                    self.leads[call.args[0]] = var
                return self.descend(stmt)
            case For(kind=ForKind.SERIAL | ForKind.PARALLEL):
                return self.marked(stmt) or (self.bypasses and self.in_lines(stmt)) or self.descend(stmt)
            case IfThenElse(condition=condition) if not (isinstance(condition, Call) and condition.op is LIKELY):
                self.conditions += 1
                inside = self.descend(stmt)
                self.conditions -= 1
                return inside
            case _:
                return self.descend(stmt)

    def marked(self, loop: For) -> For | None:
        """Returns `loop` with a mark in its body if it may write past the cache, else None."""
        inside = _Inside({loop.loop_var: 1})
        if not inside.collect(loop.body) or not inside.stores:
            return None
        first = inside.stores[0]
        if not isinstance(first.index, Ramp) or self.outputs.get(first.buffer_var) is not first.value.dtype.element:
            return None
        lanes, size = first.value.dtype.lanes, first.value.dtype.bytes
        alignment = alignment_of(lanes, size, self.target)
        if alignment < PART or lanes * size % alignment or alignment & (alignment - 1):
            return None
        if lanes * size > REGISTERS * max(size, self.target.vector_bits // 8):
            return None  # a loop over its parts
        if not all(inside.is_position_wise(store, first) for store in inside.stores):
            return None
        if not inside.are_in_step(lanes):
            return None
        index = first.index.replace(base=inside.at_start(first.index.base))
        return loop.replace(body=AttrStmt(first.buffer_var, MARK, index, loop.body))

    def is_whole_line(self, lead: Call) -> bool:
        """Tells whether `lead` counts from lines, not from parts of lines."""
        elements, size = build.as_int(lead.args[1]), build.as_int(lead.args[2])
        return elements is not None and size is not None and elements * size % self.target.machine.line == 0

    def in_lines(self, loop: For) -> AttrStmt | None:
        """Returns `loop` in a mark if it writes whole lines, given that its first vector is one; else None."""
        inside = _Inside({})
        if not self.leads or loop.kind is not ForKind.SERIAL or not inside.collect(loop) or not inside.stores:
            return None
        first = inside.stores[0]
        memory, element, line = first.buffer_var, first.value.dtype.element, self.target.machine.line
        if memory not in self.leads or self.outputs.get(memory) is not element or \
                first.value.dtype.lanes * element.bytes % line:
            return None
        unit = line // element.bytes
        if not all(inside.is_contiguous(store, first) for store in inside.stores) or not inside.are_in_step(unit):
            return None
        assert isinstance(first.index, Ramp)
        start = inside.at_start(first.index.base)
        moved = None if uses(start, inside.names) else _moved(start, self.leads[memory])
        if moved is None or moved[1] % unit:
            return None
        by, step = moved
        lanes = first.value.dtype.lanes
        is_complete = memory in self.again and not self.conditions and step == lanes and inside.are_in_step(lanes)
        inner = AttrStmt(memory, MOVED, by, loop) if is_complete else loop
        return AttrStmt(memory, WHOLE_LINES, first.index.replace(base=start), inner)


@dataclass
class _Inside:
    """The statements in a loop whose variable is `moved` by one. moved: how far each variable moves in an iteration, of those
    that do. loops: the loops inside, with their first iterations. lets: the values of variables.
    """

    moved: dict[Expr, int]
    stores: list[Store] = field(default_factory=list)
    loops: dict[Var, Expr] = field(default_factory=dict)
    lets: dict[Var, Expr] = field(default_factory=dict)

    def collect(self, body: Stmt) -> bool:
        """Collects the stores of a body that consists of stores, scalar variables and loops of fixed length; False for any
        other.
        """
        if isinstance(body, SeqStmt):
            return all(map(self.collect, body.seq))
        if isinstance(body, Store):
            self.stores.append(body)
            return len(self.stores) <= _MOST_STORES
        if isinstance(body, LetStmt):
            by = _coefficient(body.value, self.moved)
            if by is None or body.value.dtype.lanes > 1:
                return False
            if by:
                self.moved[body.var] = by
            self.lets[body.var] = body.value
            return self.collect(body.body)
        if isinstance(body, For) and body.kind is ForKind.SERIAL:
            if _coefficient(body.min, self.moved) != 0 or _coefficient(body.extent, self.moved) != 0:
                return False
            self.loops[body.loop_var] = body.min
            return self.collect(body.body)
        return False

    @property
    def names(self) -> set[Var]:
        """The variables that are bound inside."""
        return {*self.loops, *self.lets}

    def is_contiguous(self, store: Store, like: Store) -> bool:
        """Tells whether the store writes neighbours of the same memory as the store `like`, and as many."""
        return store.buffer_var is like.buffer_var and store.predicate is None and isinstance(store.index, Ramp) and \
            store.value.dtype.lanes == like.value.dtype.lanes and build.as_int(store.index.stride) == 1

    def is_position_wise(self, store: Store, like: Store) -> bool:
        """Tells whether the moved variables occur only in ramps, all of which advance by stride * lanes per iteration, and
        whether the store writes neighbours of the same memory as the store `like`, which it does not read.
        """
        lanes = like.value.dtype.lanes
        if not self.is_contiguous(store, like):
            return False
        stack: list[Node] = [store.index, store.value]
        count = 0
        while stack:
            e = stack.pop()
            count += 1
            if count > _MOST_NODES or e in self.moved or isinstance(e, Shuffle):
                return False
            if (isinstance(e, Call) and e.op.effect == "opaque") or (isinstance(e, Load) and e.buffer_var is store.buffer_var):
                return False
            if isinstance(e, Ramp):
                by = _coefficient(e.base, self.moved)
                if not isinstance(e.stride, IntImm) or by != e.stride.value * lanes or e.lanes != lanes:
                    return False
                continue
            stack.extend(e.child_nodes())
        return True

    def are_in_step(self, unit: int) -> bool:
        """Tells whether the indices of all stores, in all iterations of the loops inside, differ by multiples of `unit`."""
        if len(self.stores) == 1 and not self.loops:
            return True
        number = Numbering()
        bases = [self._without_lets(store.index.base) for store in self.stores if isinstance(store.index, Ramp)]
        inner = {number(var) for var in self.loops}
        first, start = number.terms(bases[0])
        for base in bases:
            factors, constant = number.terms(base)
            if (constant - start) % unit:
                return False
            for key in factors.keys() | first.keys():
                by = factors.get(key, 0) if key in inner else factors.get(key, 0) - first.get(key, 0)
                if by % unit:
                    return False
        return not any(_hides(base, self.loops.keys(), unit) for base in bases)

    def at_start(self, index: Expr) -> Expr:
        """The index in the first iterations of the loops inside."""
        return fold_with(self._without_lets(index), {var: self._without_lets(low) for var, low in self.loops.items()})

    def _without_lets(self, index: Expr) -> Expr:
        while self.lets and uses(index, self.lets.keys()):
            index = substitute(index, self.lets)
        return index


def _moved(start: Expr, lead: Var) -> tuple[Expr, int] | None:
    """Returns how far a tile that begins at `start` was moved inwards, and the step from tile to tile; None where `start` is
    not a sum of rows and max(min(tile*step - lead, last), 0).
    """
    number = Numbering()
    for term, factor in _terms(start):
        if factor != 1 or not isinstance(term, Max) or build.as_int(term.b) != 0 or not isinstance(term.a, Min):
            continue
        place, last = term.a.a, term.a.b
        factors, constant = number.terms(place)
        if factors.pop(number(lead), 0) == -1 and not uses(last, {lead}):
            return build.sub(term, place), math.gcd(*factors.values(), constant)
    return None


def _terms(e: Expr) -> list[tuple[Expr, int]]:
    """Returns the terms of a sum, each with its constant factor."""
    terms: list[tuple[Expr, int]] = []
    stack = [(e, 1)]
    while stack:
        e, factor = stack.pop()
        if isinstance(e, (Add, Sub)):
            stack += [(e.a, factor), (e.b, factor if isinstance(e, Add) else -factor)]
        elif isinstance(e, Mul) and isinstance(e.b, IntImm):
            stack.append((e.a, factor * e.b.value))
        else:
            terms.append((e, factor))
    return terms


def _hides(e: Expr, variables: Iterable[Var], unit: int) -> bool:
    """Tells whether one of `variables` is used in `e` other than in sums, constant multiples, and multiples of `unit`, such as
    the rows of a matrix.
    """
    stack = [e]
    while stack:
        e = stack.pop()
        if isinstance(e, (Add, Sub)):
            stack += [e.a, e.b]
        elif isinstance(e, Mul) and isinstance(e.b, IntImm):
            if e.b.value % unit:
                stack.append(e.a)
        elif not isinstance(e, Var) and uses(e, variables):
            return True
    return False


def _coefficient(e: Expr, moved: dict[Expr, int]) -> int | None:
    """Returns the step of `e` per iteration; None if it is not a constant."""
    if e in moved:
        return moved[e]
    if isinstance(e, (Add, Sub)):
        a, b = _coefficient(e.a, moved), _coefficient(e.b, moved)
        return None if a is None or b is None else a + b if isinstance(e, Add) else a - b
    if isinstance(e, Mul):
        for factor, other in ((e.a, e.b), (e.b, e.a)):
            if isinstance(factor, IntImm):
                by = _coefficient(other, moved)
                return None if by is None else by * factor.value
    return None if uses(e, moved.keys()) else 0
