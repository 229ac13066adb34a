"""What holds for all tasks of a program: `autotvm.GLOBAL_SCOPE`."""

from __future__ import annotations

from tedsl.errors import entries

__all__ = ["GLOBAL_SCOPE", "AutotvmGlobalScope"]


class AutotvmGlobalScope:
    """in_tuning: templates of operators take weights and images that are packed already, as they are in a network, which packs
    them once; tuners set it while they measure, unless they compare results. silent: no warnings of missing records.
    """

    def __init__(self) -> None:
        self.in_tuning = False
        self.silent = False


GLOBAL_SCOPE = AutotvmGlobalScope()
entries(globals())
