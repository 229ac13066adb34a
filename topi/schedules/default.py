"""The schedule that is right for everything: cheap formulas inlined, plain loops for the rest."""

from __future__ import annotations

from topi.schedules.kernel import Kernel


def schedule_default(kernel: Kernel) -> None:
    """Leaves the loops as they are; what was fused is computed in the innermost loop of its end."""
    s = kernel.schedule
    axes = s[kernel.tail].op.axis if kernel.fused else ()
    if axes:
        s[kernel.anchor].compute_at(s[kernel.tail], axes[-1])
