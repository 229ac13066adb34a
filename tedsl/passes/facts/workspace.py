"""The memory that a function allocates at most at one time."""

from __future__ import annotations

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir import build
from tedsl.ir.func import PrimFunc
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, Stmt
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.memory_uses import bytes_of
from tedsl.passes.facts.threads import scope_of


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """Returns the largest number of bytes of global memory that is allocated at one time in `func`, whose memory is flat: each
    allocation is rounded up to a multiple of `workspace_byte_alignment`.

    Raises ArgumentError for an alignment below 1 and for sizes that only a call knows.
    """
    if not isinstance(func, PrimFunc):
        raise ArgumentTypeError(f"calculate_workspace_bytes takes a function, not {type_in_words(func)}", hint="mod['main']")
    align = build.as_int(workspace_byte_alignment)
    if align is None or align < 1:
        raise ArgumentError(f"calculate_workspace_bytes: the alignment is a number of bytes from 1 on, not "
                            f"{workspace_byte_alignment!r}")
    peaks: dict[Stmt, int] = {}
    for node in post_order(func.body):
        if isinstance(node, Stmt):
            inside = max([peaks[child] for child in node.child_nodes() if isinstance(child, Stmt)], default=0)
            peaks[node] = inside + (_aligned(node, align) if isinstance(node, Allocate) else 0)
    return peaks[func.body]


def _aligned(stmt: Allocate, align: int) -> int:
    if scope_of(stmt.buffer_var.type_annotation) != "global":
        return 0
    size = bytes_of(stmt)
    if size is None:
        extents = ", ".join(map(shown, stmt.extents))
        raise ArgumentError(f"calculate_workspace_bytes: {stmt.buffer_var.name} has [{extents}] elements, "
                            "which only a call knows",
                            hint="ask for a function of constant shapes; s.explain() shows the size as a formula")
    return -(-size // align) * align
