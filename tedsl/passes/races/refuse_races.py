"""Kernels whose threads race, and hand-written parallel loops and launches whose iterations or blocks do, are refused: by
`lower`, which changes nothing in them, and again where kernels become loops."""

from __future__ import annotations

from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Stmt
from tedsl.passes.facts.threads import launched
from tedsl.passes.races.parallel_races import check_iterations
from tedsl.passes.races.same_statement import check_statements
from tedsl.passes.races.updates import check_races
from tedsl.passes.threads.gather_threads import Kernel, gather_threads, kernel_of


def refuse_races(func: PrimFunc) -> PrimFunc:
    """Raise LoweringError if threads of a kernel race, or iterations of a parallel loop or blocks of a launch that were
    written by hand; returns `func` as it is."""
    gathered = gather_threads(func)
    check_iterations(gathered)
    if gathered is not func:
        pending: list[Stmt] = [gathered.body]
        while pending:
            stmt = pending.pop()
            if launched(stmt) is not None:
                check_kernel(kernel_of(stmt).running)
            else:
                pending += [child for child in stmt.child_nodes() if isinstance(child, Stmt)]
    return func


def check_kernel(kernel: Kernel) -> None:
    """Raise LoweringError for an element that several threads update, and for a statement that reads an element which another
    thread writes in it."""
    check_races(kernel)
    check_statements(kernel)
