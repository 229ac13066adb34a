"""The memory that a statement reads, writes and allocates."""

from __future__ import annotations

import math

from tedsl.ir import build
from tedsl.ir.expr import Call, Load, Var
from tedsl.ir.ops import PREFETCH
from tedsl.ir.stmt import Allocate, Stmt, Store
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record

HINTS = (PREFETCH,)  # opaque, so that they stay, but without effect on memory


@record(eq=False)
class Uses:
    """The data pointers of memory that is read, written and allocated.

    An argument of a call with effects counts as read and written. calls: whether there is such a call.
    """

    read: frozenset[Var]
    written: frozenset[Var]
    allocated: frozenset[Var]
    calls: bool


def uses_of(stmt: Stmt) -> Uses:
    """Returns the memory that `stmt` uses."""
    read: set[Var] = set()
    written: set[Var] = set()
    allocated: set[Var] = set()
    calls = False
    for node in post_order(stmt):
        match node:
            case Load(buffer_var=v):
                read.add(v)
            case Store(buffer_var=v):
                written.add(v)
            case Allocate(buffer_var=v):
                allocated.add(v)
            case Call(op=op) if op.effect == "opaque" and op not in HINTS:
                calls = True
                handed = [n for arg in node.args for n in post_order(arg)]
                pointers = [n.buffer_var if isinstance(n, Load) else n for n in handed if isinstance(n, (Load, Var))]
                written.update(v for v in pointers if v.dtype.is_handle)
            case Var() if node.dtype.is_handle:
                read.add(node)
    return Uses(frozenset(read), frozenset(written), frozenset(allocated), calls)


def bytes_of(stmt: Allocate) -> int | None:
    """Returns the size of an allocation; None if only a call knows it."""
    extents = [build.as_int(extent) for extent in stmt.extents]
    known = [extent for extent in extents if extent is not None]
    return stmt.dtype.bytes * stmt.dtype.lanes * math.prod(known) if len(known) == len(extents) else None
