"""The fallback schedule, correct for every operator: cheap formulas inlined, plain loops for the rest."""

from __future__ import annotations

from topi.schedules.kernel import Kernel


def schedule_default(kernel: Kernel) -> None:
    """Keep plain loops; fused stages are computed in the innermost loop of the kernel's tail."""
    s = kernel.schedule
    axes = s[kernel.tail].op.axis if kernel.fused else ()
    if axes:
        s[kernel.anchor].compute_at(s[kernel.tail], axes[-1])
