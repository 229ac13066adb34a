"""What makes loops that can be shown and cannot run: `build` refuses it, `lower` shows the loops and warns.

    with noted() as findings:          a schedule half-way: C.local is not yet computed by the threads that read it
        func = lower_schedule(...)     no error, loops
    marked(func, findings)             a function that is printed, and never compiled (`tedsl/ir/func.py`)

Checks whose refusal leaves loops to show call `refuse_to_run`; all other checks raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tedsl.errors import LoweringError

_NOTED: ContextVar[list[LoweringError] | None] = ContextVar("tedsl_findings", default=None)


def refuse_to_run(finding: LoweringError) -> None:
    """Raises `finding`; inside of `noted` the loops are only read: it is noted there, and the caller goes on."""
    findings = _NOTED.get()
    if findings is None:
        raise finding
    findings.append(finding)


@contextmanager
def noted(wanted: bool = True) -> Iterator[list[LoweringError]]:
    """Context manager in which findings are appended to the list that it gives. wanted: False leaves them errors."""
    findings: list[LoweringError] = []
    before = _NOTED.set(findings if wanted else None)
    try:
        yield findings
    finally:
        _NOTED.reset(before)
