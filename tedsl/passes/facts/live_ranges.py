"""When memory is in use: statements are numbered in their order, and an allocation lives from its first to its last access.

A loop that has an access but not the allocation itself belongs to its life as a whole, since values may be carried from
iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tedsl.ir.expr import Load, Var
from tedsl.ir.node import Node
from tedsl.ir.stmt import Allocate, Store
from tedsl.ir.walk.contents import POINTER, of_kinds

# Annotation of an allocation that was moved out of loops: the variable of the innermost of them. Each iteration of it, and of
# those around it, begins with memory of undefined content.
HOME = "allocated_in"


@dataclass(eq=False)
class LiveRange:
    """The numbers of the first and last statement that accesses the memory of an allocation."""

    node: Allocate
    loops: int  # how many loops stand around the allocation itself
    first: int | None = None
    last: int = -1

    def touch(self, first: int, last: int) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = max(self.last, last)


@dataclass
class _Loop:
    """A loop that is being walked: its first number, and the allocations that are live for the whole loop."""

    begin: int
    carried: dict[LiveRange, None] = field(default_factory=dict)


class LiveRanges:
    """The live ranges of a program that is walked once, in the order in which it runs. clock: the number of the last statement;
    depth: how many loops stand around the next one.
    """

    def __init__(self) -> None:
        self.clock = 0
        self.of: dict[Var, LiveRange] = {}
        self._loops: list[_Loop] = []

    @property
    def depth(self) -> int:
        return len(self._loops)

    def allocated(self, node: Allocate) -> LiveRange:
        """Begins the range of an allocation where the walk is."""
        found = self.of[node.buffer_var] = LiveRange(node, self.depth)
        return found

    def accessed(self, *nodes: Node) -> None:
        """Numbers a statement, or expressions that are evaluated together, and extends the ranges of what they access to it."""
        self.clock += 1
        for root in nodes:
            for node in of_kinds(root, Load, Store, POINTER):
                var = node.buffer_var if isinstance(node, (Load, Store)) else node
                found = self.of.get(var) if isinstance(var, Var) else None
                if found is None:
                    continue
                found.touch(self.clock, self.clock)
                for loop in self._loops[found.loops:]:
                    loop.carried[found] = None

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Context manager in which the body of a loop is walked, or what several threads run in any order."""
        loop = _Loop(self.clock + 1)
        self._loops.append(loop)
        yield
        self._loops.pop()
        for found in loop.carried:
            found.touch(loop.begin, self.clock)
