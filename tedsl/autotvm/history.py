"""The context of the best configurations among records."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from tedsl.autotvm.record import Pair, fastest_pairs, load_from_buffer, load_from_file, pairs_in
from tedsl.autotvm.task.dispatcher import DispatchContext, Workload
from tedsl.autotvm.task.space import ConfigSpace
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.target.target import Target


class ApplyHistoryBest(DispatchContext):
    """The best configuration of each workload among records: the path of a file, paths, an open file, or pairs of input and
    result."""

    def __init__(self, records: Any) -> None:
        super().__init__()
        self._pairs: dict[tuple[str, Workload], list[Pair]] = {}
        self._best: dict[tuple[str, Workload], ConfigSpace | None] = {}
        if records is not None:
            self.load(records)

    def load(self, records: Any) -> None:
        """Adds records."""
        if isinstance(records, (str, PathLike)):
            records = load_from_file(records)
        elif hasattr(records, "read"):
            records = load_from_buffer(records)
        if not isinstance(records, Iterable):
            raise ArgumentTypeError("apply_history_best takes the path of a file, an open file, or pairs, not "
                                    f"{type_in_words(records)}", hint='autotvm.apply_history_best("matmul.log")')
        for one in records:
            if isinstance(one, (str, PathLike)):
                self.load(one)
                continue
            pairs_in([one], "apply_history_best")
            for key in _keys(one[0].target):
                self._pairs.setdefault((key, one[0].task.workload), []).append(one)
                self._best.pop((key, one[0].task.workload), None)

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        if workload is None:
            return None
        if target is None:
            raise ArgumentError("the best configuration is that of a target, and there is no current one",
                                hint="with tedsl.target.Target('llvm'): call the template")
        return next((best for key in _keys(target) if (best := self._best_of(key, workload)) is not None), None)

    def dismiss(self, target: Target | None, workload: Workload | None, config: object) -> bool:
        found = False
        for key in _keys(target) if target is not None and workload is not None else ():
            pairs = self._pairs.get((key, workload or ()), [])
            left = [pair for pair in pairs if pair[0].config is not config]
            if len(left) < len(pairs):
                found, self._pairs[key, workload or ()] = True, left
                self._best.pop((key, workload or ()), None)
        return found or super().dismiss(target, workload, config)

    def _best_of(self, key: str, workload: Workload) -> ConfigSpace | None:
        """The configuration of the best record under a key; None if there is none with times."""
        if (key, workload) not in self._best:
            ranked = fastest_pairs(self._pairs.get((key, workload), ()))
            self._best[key, workload] = ranked[0][0].config if ranked else None
        return self._best[key, workload]

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        for key in _keys(target):
            self._best[key, workload] = cfg


def _keys(target: Target) -> tuple[str, ...]:
    """Names under which the records of a target are kept, the closest first: its model, its kind, its keys."""
    model = getattr(target, "model", None)
    named = (f"{target.kind.name} -model={model}",) if isinstance(model, str) and model != "unknown" else ()
    return (*named, target.kind.name, *target.keys)


def apply_history_best(file_name: Any) -> ApplyHistoryBest:
    """The context of the best configurations in a file of records."""
    return ApplyHistoryBest(file_name)
