"""How much of the work of a function each loop in it does: code of those that do little is kept short."""

from __future__ import annotations

from tedsl.ir.build import as_int
from tedsl.ir.expr import LT, Expr
from tedsl.ir.stmt import For, ForKind, IfThenElse, LetStmt, Stmt, Store
from tedsl.ir.walk.visitor import ENDS

_LITTLE = 32  # a rare loop does at most so many times less than what is around it
_UNKNOWN = 32  # iterations of a loop whose extent is not constant


def rare_loops(body: Stmt) -> frozenset[For]:
    """Returns the loops that do at most a 32nd of what the parallel loop around them does, or of all that `body` does
    where there is none, as those beside the main part of a loop often do.

    Work is counted in bits that are stored. Branches of `i < c` run as often as loop i takes them. What is outside of a
    parallel loop does not count in it, since equal ones are compiled once.
    """
    nests: list[tuple[For | None, int]] = [(None, -1)]  # each loop, and the place in this list of the one around it
    work = [0.0]
    extents: dict[Expr, int] = {}
    stack: list[tuple[Stmt, int, float]] = [(body, 0, 1.0)]
    while stack:
        stmt, around, times = stack.pop()
        if isinstance(stmt, Store):
            work[around] += stmt.value.dtype.bits * stmt.value.dtype.lanes * times
        elif isinstance(stmt, For):
            extent = as_int(stmt.extent)
            if extent is not None and as_int(stmt.min) == 0:
                extents[stmt.loop_var] = extent
            nests.append((stmt, around))
            work.append(0.0)
            stack.append((stmt.body, len(nests) - 1, times * (_UNKNOWN if extent is None else extent)))
        elif isinstance(stmt, IfThenElse):
            share = _share(stmt.condition, extents)
            stack.append((stmt.then_case, around, times * (1.0 if share is None else share)))
            if stmt.else_case is not None:
                stack.append((stmt.else_case, around, times * (1.0 if share is None else 1.0 - share)))
        elif isinstance(stmt, LetStmt):
            stack.append((stmt.body, around, times))
        elif type(stmt) not in ENDS:
            stack += [(child, around, times) for child in stmt.child_nodes() if isinstance(child, Stmt)]
    for inner in range(len(nests) - 1, 0, -1):
        work[nests[inner][1]] += work[inner]
    whole: list[float] = []
    rare: list[For] = []
    for own, (loop, around) in zip(work, nests):
        whole.append(own if loop is None or loop.kind is ForKind.PARALLEL else whole[around])
        if loop is not None and own * _LITTLE <= whole[-1]:
            rare.append(loop)
    return frozenset(rare)


def _share(condition: Expr, extents: dict[Expr, int]) -> float | None:
    """Returns the part of the iterations of a loop in which `condition` holds, if it compares the loop's variable."""
    extent = extents.get(condition.a) if isinstance(condition, LT) else None
    limit = as_int(condition.b) if isinstance(condition, LT) else None
    return limit / extent if limit is not None and extent and 0 <= limit <= extent else None
