"""Which arrays of a function live on its stack."""

from __future__ import annotations

from tedsl.codegen.kernels import abi
from tedsl.ir.expr import IntImm
from tedsl.ir.stmt import Allocate, For, ForKind, Stmt
from tedsl.ir.walk.contents import contains


def arrays_on_stack(body: Stmt, *, in_parallel: bool = False) -> frozenset[Allocate]:
    """Selects the arrays of a function with that body that live on its stack: the smallest first, for accumulators are small.

    in_parallel: the function is the body of a parallel loop; parallel loops inside it run serially, in the same function.
    """
    arrays: list[tuple[int, int, Allocate]] = []
    stack = [body]
    while stack:
        s = stack.pop()
        if isinstance(s, Allocate):
            size = _room(s)
            if size is not None:
                arrays.append((size, len(arrays), s))
        elif isinstance(s, For) and s.kind is ForKind.PARALLEL and not in_parallel:
            continue  # a function of its own
        stack.extend([child for child in s.child_nodes() if isinstance(child, Stmt) and contains(child, Allocate)])
    total, chosen = 0, set()
    for size, _, s in sorted(arrays):
        total += size
        if total > abi.STACK_LIMIT:
            break
        chosen.add(s)
    return frozenset(chosen)


def _room(s: Allocate) -> int | None:
    """Returns the bytes that an array of constant size takes, in whole cache lines; None if its size is not a constant."""
    size = s.dtype.bytes * s.dtype.lanes
    for extent in s.extents:
        if not isinstance(extent, IntImm):
            return None
        size *= max(0, extent.value)
    return -(-max(1, size) // abi.WORKSPACE_ALIGNMENT) * abi.WORKSPACE_ALIGNMENT
