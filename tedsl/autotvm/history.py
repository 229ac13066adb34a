"""The context of the best configurations among records."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from tedsl.autotvm.record import load_from_file
from tedsl.autotvm.task.dispatcher import DispatchContext, Workload
from tedsl.autotvm.task.space import ConfigSpace
from tedsl.errors import ArgumentError
from tedsl.target.target import Target


class ApplyHistoryBest(DispatchContext):
    """The best configuration of each workload among records: the path of a file, paths, or pairs of input and result."""

    def __init__(self, records: Any) -> None:
        super().__init__()
        self._best: dict[tuple[str, Workload], tuple[float, ConfigSpace]] = {}
        if records is not None:
            self.load(records)

    def load(self, records: str | PathLike[str] | Iterable[Any]) -> None:
        """Adds records."""
        if isinstance(records, (str, PathLike)):
            records = load_from_file(records)
        for one in records:
            if isinstance(one, (str, PathLike)):
                self.load(one)
                continue
            inp, result = one
            if result.error_no == 0 and result.costs:
                cost = sum(result.costs) / len(result.costs)
                for key in _keys(inp.target):
                    best = self._best.get((key, inp.task.workload))
                    if best is None or cost < best[0]:
                        self._best[key, inp.task.workload] = cost, inp.config

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        if workload is None:
            return None
        if target is None:
            raise ArgumentError("the best configuration is that of a target, and there is no current one",
                                hint="with tedsl.target.Target('llvm'): call the template")
        return next((self._best[key, workload][1] for key in _keys(target) if (key, workload) in self._best), None)

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        for key in _keys(target):
            self._best[key, workload] = 0.0, cfg


def _keys(target: Target) -> tuple[str, ...]:
    """Names under which the records of a target are kept, the closest first: its model, its kind, its keys."""
    model = getattr(target, "model", None)
    named = (f"{target.kind.name} -model={model}",) if isinstance(model, str) and model != "unknown" else ()
    return (*named, target.kind.name, *target.keys)


def apply_history_best(file_name: Any) -> ApplyHistoryBest:
    """The context of the best configurations in a file of records."""
    return ApplyHistoryBest(file_name)
