"""Operators written as statements: those for kernels, where there are any."""

from __future__ import annotations

from tedsl import te
from topi.schedules.default import schedule_default
from topi.schedules.gpu.limits import limits_of
from topi.schedules.kernel import Kernel


def schedule_statements(kernel: Kernel) -> None:
    """Compute an operator of te.extern by its statements for blocks of threads."""
    op = kernel.anchor
    if isinstance(op, te.ExternOp) and op.by_threads is not None:
        limits = limits_of(kernel.target)
        kernel.schedule[op].by_threads(limits.threads, limits.shared)
    else:
        schedule_default(kernel)
