"""The memory that several threads of a block share, and the accesses of expressions and statements to it."""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.ir import build
from tedsl.ir.calls.addresses import addressed
from tedsl.ir.calls.fragments import moved
from tedsl.ir.expr import Call, Expr, Load, StringImm
from tedsl.ir.node import Node
from tedsl.ir.ops import ATOMIC_ADD, LOAD_MATRIX, STORE_MATRIX
from tedsl.ir.stmt import Allocate, Evaluate, Stmt, Store
from tedsl.ir.walk.accesses import Access, accesses, reads
from tedsl.ir.walk.around import OUTSIDE
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import WRITTEN, noted_memory, scope_of, takes_notes
from tedsl.passes.threads.gather_threads import Kernel
from tedsl.runtime.faults import FAULT


class CommonMemory:
    """The memory of one kernel that its threads have in common: shared and warp memory, global memory that it allocates, and
    memory from outside that it both reads and writes."""

    def __init__(self, kernel: Kernel) -> None:
        nodes = list(post_order(kernel.body))
        allocated = {node.buffer_var for node in nodes if isinstance(node, Allocate)}
        atomic = {addressed(call)[0] for call in atomic_calls(nodes)}
        matrices = [(node, moved(node).memory) for node in nodes
                    if isinstance(node, Call) and node.op in (LOAD_MATRIX, STORE_MATRIX)]
        written = {node.buffer_var for node in nodes if isinstance(node, Store)} | atomic | {
            memory for call, memory in matrices if call.op is STORE_MATRIX}
        self.changed = {part for call in atomic_calls(nodes) for part in call.args[0].child_nodes()}
        read = {node.buffer_var for node in nodes
                if isinstance(node, Load) and node not in self.changed and not takes_notes(node.buffer_var)} | {
            memory for call, memory in matrices if call.op is LOAD_MATRIX}
        outside = read & written - allocated
        self.memories = outside | {memory for memory in allocated
                                   if scope_of(memory.type_annotation) in ("shared", "warp", "global")}
        self.callers = {memory for memory in outside if scope_of(memory.type_annotation) == "global"}
        # where checked mode notes which elements of another memory were stored to
        checked = any(isinstance(node, StringImm) and node.value == FAULT for node in nodes)
        names = {memory.name for memory in self.memories} if checked else set()
        self.notes = {memory for memory in self.memories
                      if noted_memory(memory.name) in names - {memory.name}
                      and f"{memory.name}.{WRITTEN}" not in names}  # nothing is noted of notes
        self.around = OUTSIDE  # the place of the statement that is looked at

    def reads(self, expr: Expr) -> list[Access]:
        """Returns the loads of common memory in `expr`."""
        return [*[self._of_statement(read) for read in reads([expr], self.around, wanted=self._is_used)], *self._at_once(expr)]

    def accesses(self, stmt: Stmt) -> list[Access]:
        """Returns the accesses of a simple statement to common memory, loads first. A pointer passed to a call counts as a
        store. A matrix that a warp loads or stores may have any elements: which thread has which is not known.
        """
        match stmt:
            case Evaluate(value=Call(op=op) as call) if op in (LOAD_MATRIX, STORE_MATRIX):
                memory = moved(call).memory
                return [Access(memory, self.around, stmt, op is LOAD_MATRIX)] if memory in self.memories else []
        return [*[self._of_statement(access) for access in accesses(stmt, self.around, wanted=self._is_used)
                  if access.memory in self.memories], *self._at_once(stmt)]

    def _at_once(self, node: Node) -> list[Access]:
        """Returns the atomic changes of common memory in `node`, of any elements."""
        memories = [addressed(call)[0] for call in atomic_calls(post_order(node))]
        return [Access(memory, self.around, node if isinstance(node, Stmt) else None, at_once=True) for memory in memories
                if memory in self.memories]

    def is_note(self, access: Access) -> bool:
        """Tells whether the access is a store by which checked mode records that an element was written."""
        return isinstance(access.node, Store) and access.memory in self.notes and build.is_true(access.node.value)

    def _is_used(self, node: Node) -> bool:
        return node not in self.changed and (node.buffer_var if isinstance(node, Load) else node) in self.memories

    def _of_statement(self, access: Access) -> Access:
        """Returns `access` with the surroundings of its statement only: threads wait between statements, not inside
        expressions.
        """
        return Access(access.node, self.around, access.statement)


def atomic_calls(nodes: Iterable[Node]) -> list[Call]:
    """Returns the atomic changes among `nodes`."""
    return [node for node in nodes if isinstance(node, Call) and node.op is ATOMIC_ADD]
