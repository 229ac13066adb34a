"""Tuning: what the searches for schedules have in common.

measure/ builds and runs candidates in processes of their own. records/ keeps what was measured, and uses the best of it:

    with tedsl.tune.history("trials.sqlite"):
        s = topi.schedules.schedule(C)

The package is called, too: `tedsl.tune(task, seconds=60)` searches, as `tedsl.tune.search(task, seconds=60)` does, the name by
which type checkers know it. The search stands in `tedsl/tuning/`, above the searches that it chooses from.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tedsl.errors import arguments_that_misfit, entries

if TYPE_CHECKING:
    from tedsl.tune.measure.budget import within
    from tedsl.tune.measure.check import Checker
    from tedsl.tune.measure.measurer import Measurer
    from tedsl.tune.measure.options import BuildOption, RunOption
    from tedsl.tune.measure.outcome import Candidate, Failure, Outcome
    from tedsl.tune.records.history import history
    from tedsl.tune.records.record import Record, record_of
    from tedsl.tune.records.store import Records
    from tedsl.tune.records.task import task_key

__all__ = ["BuildOption", "Candidate", "Checker", "Failure", "Measurer", "Outcome", "Record", "Records", "RunOption", "history",
           "record_of", "search", "task_key", "within"]

entries(globals(), later={
    "BuildOption": "tedsl.tune.measure.options:BuildOption", "Candidate": "tedsl.tune.measure.outcome:Candidate",
    "Checker": "tedsl.tune.measure.check:Checker", "Failure": "tedsl.tune.measure.outcome:Failure",
    "Measurer": "tedsl.tune.measure.measurer:Measurer", "Outcome": "tedsl.tune.measure.outcome:Outcome",
    "Record": "tedsl.tune.records.record:Record", "Records": "tedsl.tune.records.store:Records",
    "RunOption": "tedsl.tune.measure.options:RunOption", "history": "tedsl.tune.records.history:history",
    "record_of": "tedsl.tune.records.record:record_of", "task_key": "tedsl.tune.records.task:task_key",
    "search": "tedsl.tuning.searching:tune", "within": "tedsl.tune.measure.budget:within"})


class _Package(ModuleType):
    """The module class of `tedsl.tune`, whose call is a search."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            return self.search(*args, **options)
        except TypeError:
            from inspect import signature  # few programs ask

            misfit = arguments_that_misfit("tune", signature(self.search), args, options)
            if misfit is None:
                raise
            raise misfit from None


sys.modules[__name__].__class__ = _Package
