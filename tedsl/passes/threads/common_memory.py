"""The memory that several threads of a block see, and what expressions and statements access of it."""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import Expr, Load, StringImm, Var
from tedsl.ir.stmt import Allocate, Stmt, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import WRITTEN, noted_memory, scope_of, takes_notes
from tedsl.passes.threads.conflicts import Access
from tedsl.passes.threads.every_thread import Around
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.runtime.faults import FAULT


class CommonMemory:
    """Of one kernel: shared and warp memory, what it allocates elsewhere, and what comes from outside and is both written
    and read."""

    def __init__(self, kernel: Kernel) -> None:
        nodes = list(post_order(kernel.body))
        allocated = {node.buffer_var for node in nodes if isinstance(node, Allocate)}
        written = {node.buffer_var for node in nodes if isinstance(node, Store)}
        outside = {node.buffer_var for node in nodes if isinstance(node, Load) and not takes_notes(node.buffer_var)} \
            & written - allocated
        self.memories = outside | {memory for memory in allocated
                                   if scope_of(memory.type_annotation) in ("shared", "warp", "global")}
        self.callers = {memory for memory in outside if scope_of(memory.type_annotation) == "global"}
        # where checked mode notes which elements of another memory were stored to
        checked = any(isinstance(node, StringImm) and node.value == FAULT for node in nodes)
        names = {memory.name for memory in self.memories} if checked else set()
        self.notes = {memory for memory in self.memories
                      if noted_memory(memory.name) in names - {memory.name}
                      and f"{memory.name}.{WRITTEN}" not in names}  # nothing is noted of notes
        self.around = Around()  # what stands around the statement that is looked at

    def reads(self, expr: Expr | None) -> list[Access]:
        if expr is None:
            return []
        return [Access(node.buffer_var, node.index, False, self.around) for node in post_order(expr)
                if isinstance(node, Load) and node.buffer_var in self.memories]

    def accesses(self, stmt: Stmt) -> list[Access]:
        """What a statement without parts loads and then stores."""
        if isinstance(stmt, Store):
            made = self.reads(stmt.value) + self.reads(stmt.index) + self.reads(stmt.predicate)
            if stmt.buffer_var in self.memories:
                notes = stmt.buffer_var in self.notes and build.is_true(stmt.value)
                made.append(Access(stmt.buffer_var, stmt.index, True, self.around, notes))
            return made
        found: list[Access] = []
        for node in post_order(stmt):
            if isinstance(node, Load) and node.buffer_var in self.memories:
                found.append(Access(node.buffer_var, node.index, False, self.around))
            elif isinstance(node, Var) and node in self.memories:  # given to a call, which may do anything with it
                found.append(Access(node, None, True, self.around))
        return found
