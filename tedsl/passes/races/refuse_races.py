"""Refuses kernels whose threads race, and handwritten parallel loops and launches whose iterations or blocks race. Runs in
`lower`, where it changes nothing, and again where kernels become loops.
"""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Stmt
from tedsl.passes.facts.threads import launched
from tedsl.passes.races.own_parts import check_own_parts
from tedsl.passes.races.parallel_races import check_iterations
from tedsl.passes.races.same_statement import check_statements
from tedsl.passes.races.updates import check_races
from tedsl.passes.threads.gather_threads import Kernel, gather_threads, kernel_of


def refuse_races(func: PrimFunc, *, to_read: bool = False) -> PrimFunc:
    """Returns `func` unchanged; raises LoweringError if threads of a kernel race, or iterations or blocks of a parallel loop or
    launch that was written by hand.

    to_read: the loops are only read, and a race in those of a schedule is a finding (`tedsl/findings.py`).
    """
    try:
        _check_races(func)
    except LoweringError as race:
        if not (to_read and func.attrs.get("from_legacy_te_schedule")):
            raise
        refuse_to_run(race)
    return func


def _check_races(func: PrimFunc) -> None:
    gathered = gather_threads(func)
    check_iterations(gathered)
    if gathered is func:
        return
    pending: list[Stmt] = [gathered.body]
    while pending:
        stmt = pending.pop()
        if launched(stmt) is not None:
            kernel = kernel_of(stmt).running
            check_kernel(kernel)
            check_own_parts(kernel, func.attrs.get("tedsl.own_parts", ()))
        else:
            pending += [child for child in stmt.child_nodes() if isinstance(child, Stmt)]


def check_kernel(kernel: Kernel) -> None:
    """Raises LoweringError for an element that several threads update, and for a statement in which one thread reads an element
    that another thread writes.
    """
    check_races(kernel)
    check_statements(kernel)
