"""Checks for conflicts among iterations of a parallel loop and among blocks of a launch, which run in any order: shadow buffers
record which of them accessed each element.

    for (i: 0, 8) "parallel" { C[i // 2] = ... }                          C.owner[i // 2] = i + 1
    attr [blockIdx.x] "thread_extent" = 8 { C[A[blockIdx.x]] = ... }      C.owner[A[blockIdx.x]] = blockIdx.x + 1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable

from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Call, Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import AttrStmt, For, LetStmt, Stmt
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.passes.checked.shadows import CheckedMemory, with_shadow
from tedsl.passes.facts.threads import BLOCK_TAGS, NOTES, launched
from tedsl.runtime.faults import ANY

SEVERAL = -1  # in a shadow of readers: more than one iteration read the element


class Together(ABC):
    """Iterations or blocks that run in any order, with shadow buffers for the memory that they write: which of them wrote and
    which read each element.
    """

    def __init__(self) -> None:
        self.owners: dict[CheckedMemory, Buffer] = {}
        self.readers: dict[CheckedMemory, Buffer] = {}

    @abstractmethod
    def me(self) -> Expr:
        """Returns the number, counted from 1, of the current iteration or block."""

    @abstractmethod
    def values_of(self, iteration: Expr) -> list[Expr]:
        """Returns the values of the variables in iteration number `iteration`; the least integer where several iterations are
        meant.
        """

    @abstractmethod
    def meets(self, element: str, verb: str, did: str) -> str:
        """Returns the text of the error that `element` was accessed by another iteration, with placeholders for its number.

        verb, did: what the current and the other iteration do ("reads", "stored").
        """

    @abstractmethod
    def shadow(self, memory: CheckedMemory, what: str) -> Buffer:
        """Returns a shadow of `memory` that records `what` about its elements."""

    def heeds(self, memory: CheckedMemory) -> bool:
        """Tells whether `memory` is shared by all iterations or blocks, so that conflicts in it are checked."""
        return True

    def all_store(self, value: Expr, place: Iterable[Expr], loaded: Iterable[CheckedMemory | None],
                  loops: Iterable[Var]) -> bool:
        """Tells whether all iterations that store `value`, which loads from `loaded`, to an element `place` store equal values
        there.
        """
        return False

    def take_notes(self, written: Iterable[CheckedMemory | None], read: Container[CheckedMemory | None]) -> None:
        """Creates shadow buffers for the memory in `written`: who wrote each element, and, for memory in `read`, who read
        it.
        """
        for memory in written:
            if memory is not None and memory not in self.owners and self.heeds(memory):
                self.owners[memory] = self.shadow(memory, "owner")
                if memory in read:
                    self.readers[memory] = self.shadow(memory, "reader")

    def shadowed(self, body: Stmt) -> Stmt:
        """Returns `body`, which runs all iterations or blocks, inside the allocations of the shadow buffers."""
        for shadow in (*self.owners.values(), *self.readers.values()):
            body = with_shadow(shadow, build.const(0, INT64), body)
        return body

    def is_other(self, iteration: Expr) -> Expr:
        """Tells whether `iteration`, the value of a shadow, is neither this iteration nor 0 (none)."""
        return build.logical_and(build.not_equal(iteration, build.const(0, INT64)), build.not_equal(iteration, self.me()))


class Iterations(Together):
    """The iterations of a parallel loop."""

    def __init__(self, loop: For) -> None:
        super().__init__()
        self.loop = loop

    def shadow(self, memory: CheckedMemory, what: str) -> Buffer:
        return memory.shadow(what, "int64")

    def me(self) -> Expr:
        return build.add(build.cast(INT64, build.sub(self.loop.loop_var, self.loop.min)), build.const(1, INT64))

    def values_of(self, iteration: Expr) -> list[Expr]:
        value = build.add(build.sub(iteration, build.const(1, INT64)), build.cast(INT64, self.loop.min))
        return [_unless_several(iteration, value)]

    def meets(self, element: str, verb: str, did: str) -> str:
        var = self.loop.loop_var.name
        return f"{verb} {element}, which another iteration of the parallel loop {var}, {var} = {{}}, {did}"


class Blocks(Together):
    """The blocks of the launch that begins at `launch`. before: the memory that exists outside of it."""

    def __init__(self, launch: AttrStmt, counts: dict[str, Expr], before: Iterable[CheckedMemory]) -> None:
        super().__init__()
        self.counts, self.before = counts, frozenset(before)
        self.at: dict[str, Var] = {}  # the variables of the axes inside of which we are, by tag
        self.lets = {node.var for node in post_order(launch) if isinstance(node, LetStmt)}

    def shadow(self, memory: CheckedMemory, what: str) -> Buffer:
        return decl_buffer(memory.extents, "int64", f"{memory.name}.{what}", scope=NOTES)

    def heeds(self, memory: CheckedMemory) -> bool:
        return memory.scope in ("", "global")

    def inside(self, axis: IterVar) -> dict[str, Var]:
        """Enters a launch of `axis`; returns the outer value of `at`, to be restored."""
        outer = self.at
        if axis.thread_tag in self.counts:
            self.at = {axis.thread_tag: axis.var, **outer}
        return outer

    def me(self) -> Expr:
        number: Expr = build.const(0, INT64)
        for tag, count in self.counts.items():
            number = build.mul(number, build.cast(INT64, count))
            if tag in self.at:
                number = build.add(number, build.cast(INT64, self.at[tag]))
        return build.add(number, build.const(1, INT64))

    def values_of(self, iteration: Expr) -> list[Expr]:
        values: list[Expr] = []
        rest = build.sub(iteration, build.const(1, INT64))
        for count in reversed(self.counts.values()):
            wide = build.cast(INT64, count)
            values.append(_unless_several(iteration, build.floormod(rest, wide)))
            rest = build.floordiv(rest, wide)
        return values[::-1]

    def meets(self, element: str, verb: str, did: str) -> str:
        which = ", ".join(f"{tag} = {{}}" for tag in self.counts)
        return (f"{verb} {element}, which another block of the launch, {which}, {did}: the blocks of a launch run in any order "
                "and cannot wait for each other")

    def all_store(self, value: Expr, place: Iterable[Expr], loaded: Iterable[CheckedMemory | None],
                  loops: Iterable[Var]) -> bool:
        used, own = set(variables(value)), {*self.at.values(), *self.lets}
        if used & own or any(memory in self.owners or memory not in self.before for memory in loaded):
            return False
        if any(isinstance(node, Call) and not node.op.is_pure for node in post_order(value)):
            return False
        moves = any(own & set(variables(index)) for index in place)
        return not (moves and used & set(loops))


def blocks_of(launch: AttrStmt) -> dict[str, Expr]:
    """Returns the number of blocks of the launch that begins here, for each tag of which there may be several."""
    counts: dict[str, Expr] = {}
    for node in post_order(launch):
        axis = launched(node)
        if axis is not None and axis.thread_tag in BLOCK_TAGS and isinstance(node, AttrStmt) and build.as_int(node.value) != 1:
            counts[axis.thread_tag] = node.value
    return {tag: counts[tag] for tag in BLOCK_TAGS if tag in counts}


def _unless_several(iteration: Expr, value: Expr) -> Expr:
    return build.select(build.less(iteration, build.const(0, INT64)), build.const(ANY, INT64), value)
