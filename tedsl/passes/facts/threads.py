"""Threads of a device in flat loops: launch attributes, and the ranges of thread variables."""

from __future__ import annotations

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.stmt import LAUNCH, THREADS, AttrStmt, For, ForKind, Stmt, no_op
from tedsl.ir.types import PointerType, memory_kind
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order

BLOCK_TAGS = ("blockIdx.z", "blockIdx.y", "blockIdx.x")
THREAD_TAGS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
WRITTEN = "written"  # what checked mode calls its note of the stores to a memory M: a memory named "M.written"
NOTES = "local.notes"  # the scope of what checked mode notes of blocks: the threads of one note the same, in any order


def launched(node: Node) -> IterVar | None:
    """Returns the thread axis that `node` launches; None if it is not a launch."""
    if isinstance(node, AttrStmt) and node.attr_key == LAUNCH and isinstance(node.node, IterVar):
        return node.node
    return None


def has_launch(body: Stmt) -> bool:
    """Tells whether `body` has a launch of threads of a device."""
    return contains(body, LAUNCH) and any(launched(node) is not None for node in post_order(body))


def bind_launched(analyzer: Analyzer, node: Node) -> None:
    """Binds the thread variable that `node` launches, virtual or not, to its range in `analyzer`; does nothing for other
    nodes.
    """
    loop = as_loop(node, blocks=True)
    if loop is not None:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))


def as_loop(node: Node, *, blocks: bool = False) -> For | None:
    """Returns a launch of threads (and, with `blocks`, of blocks) as a loop without a body; None for any other attribute."""
    if not isinstance(node, AttrStmt) or not isinstance(node.node, IterVar) or node.attr_key not in THREADS:
        return None
    var = node.node.var
    if node.node.thread_tag in BLOCK_TAGS and not blocks:
        return None
    return For(var, IntImm(var.dtype, 0), node.value, ForKind.SERIAL, no_op())


def is_common(scope: str, tag: str) -> bool:
    """Tells whether threads of a block that differ along `tag` share memory of `scope` that a kernel allocates. A warp is a row
    of threads along threadIdx.x.
    """
    return scope in ("shared", "global") or (scope == "warp" and tag == "threadIdx.x")


def scope_of(annotation: object) -> str:
    """Returns the memory scope, without its suffix, in the type of a data pointer."""
    scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
    return memory_kind(scope) or "global"


def noted_memory(name: str) -> str:
    """Returns the name of the memory that the shadow buffer called `name` belongs to; `name` itself if it is not a shadow
    buffer.
    """
    return name.removesuffix(f".{WRITTEN}")


def takes_notes(memory: Var) -> bool:
    """Tells whether `memory` is a shadow buffer in which checked mode records the stores of blocks."""
    return isinstance(memory.type_annotation, PointerType) and memory.type_annotation.storage_scope == NOTES
