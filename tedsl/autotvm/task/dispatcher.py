"""Which configuration a template gets: that of the innermost `with` block that has one.

    with autotvm.apply_history_best("matmul.log"):
        with tedsl.target.Target("llvm"):
            s, args = matmul(512, 512, 512, "float32")
"""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any, ClassVar

from tedsl.autotvm.absent import OF_DISPATCHER
from tedsl.autotvm.env import GLOBAL_SCOPE
from tedsl.autotvm.task.fallback import FallbackConfigEntity
from tedsl.autotvm.task.space import ConfigSpace
from tedsl.errors import ArgumentError, ArgumentTypeError, entries
from tedsl.ir.source_line import user_level
from tedsl.target.target import Target

__all__ = ["ApplyConfig", "DispatchContext", "FallbackContext", "clear_fallback_cache"]
Workload = tuple[Any, ...]


class DispatchContext:
    """What says the configuration of a workload; a context manager."""

    current: ClassVar[DispatchContext]

    def __init__(self) -> None:
        self._outer: list[DispatchContext] = []

    def query(self, target: Target | None, workload: Workload | None) -> Any:
        """The configuration for a workload on a target: that of this context, else of those around it."""
        found = self._query_inside(target, workload)
        if found is None and self._outer:
            found = self._outer[-1].query(target, workload)
        return found

    def dismiss(self, target: Target | None, workload: Workload | None, config: object) -> bool:
        """Gives up a record of this context, or of those around it, whose configuration does not apply. Returns whether it was
        one of a record: the next query gives another.
        """
        return bool(self._outer) and self._outer[-1].dismiss(target, workload, config)

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        """Sets the configuration of a workload, where the context keeps several."""
        raise ArgumentError(f"{type(self).__name__} keeps no configurations by workload",
                            hint="apply_history_best keeps them; a subclass defines update(target, workload, cfg)")

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        return None

    def __enter__(self) -> DispatchContext:
        self._outer.append(DispatchContext.current)
        DispatchContext.current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        DispatchContext.current = self._outer.pop()


class ApplyConfig(DispatchContext):
    """The same configuration for every workload; `workload` is the last one that asked."""

    def __init__(self, config: ConfigSpace) -> None:
        super().__init__()
        if not isinstance(config, ConfigSpace):
            raise ArgumentTypeError(f"ApplyConfig takes a configuration, not {config!r}", hint="task.config_space.get(0)")
        self.config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        if workload is not None:
            self.workload = workload
        return self.config

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        self.workload, self.config = workload, cfg


class FallbackContext(DispatchContext):
    """Around all others: a configuration without a record, after a warning, once for each workload."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, Workload | None], ConfigSpace] = {}
        self.silent = False

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        key = str(target), workload
        if key not in self.memory:
            if not (self.silent or GLOBAL_SCOPE.silent) and workload is not None:
                warnings.warn(f"there is no record of {workload} on {target}: a default configuration is used, which may be "
                              "slow", stacklevel=user_level())
            self.memory[key] = FallbackConfigEntity()
        return self.memory[key]

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        self.memory[str(target), workload] = cfg

    def clear_cache(self, target: Target | None, workload: Workload | None) -> None:
        """Forgets the configuration of a workload: the next query chooses, and warns, anew."""
        self.memory.pop((str(target), workload), None)


def clear_fallback_cache(target: Target | None, workload: Workload | None) -> None:
    """Forgets the default configuration that a workload got for a target."""
    context = DispatchContext.current
    while not isinstance(context, FallbackContext):
        context = context._outer[-1]
    context.clear_cache(target, workload)


DispatchContext.current = FallbackContext()
entries(globals(), absent=OF_DISPATCHER, later={"ApplyHistoryBest": "tedsl.autotvm.history:ApplyHistoryBest"})
