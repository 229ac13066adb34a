"""Tuning: what the searches for schedules have in common.

measure/ builds and runs candidates in processes of their own. records/ keeps what was measured, and uses the best of it:

    with tedsl.tune.history("trials.sqlite"):
        s = topi.schedules.schedule(C)
"""

from typing import TYPE_CHECKING

from tedsl.errors import entries

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
           "record_of", "task_key", "within"]

entries(globals(), later={
    "BuildOption": "tedsl.tune.measure.options:BuildOption", "Candidate": "tedsl.tune.measure.outcome:Candidate",
    "Checker": "tedsl.tune.measure.check:Checker", "Failure": "tedsl.tune.measure.outcome:Failure",
    "Measurer": "tedsl.tune.measure.measurer:Measurer", "Outcome": "tedsl.tune.measure.outcome:Outcome",
    "Record": "tedsl.tune.records.record:Record", "Records": "tedsl.tune.records.store:Records",
    "RunOption": "tedsl.tune.measure.options:RunOption", "history": "tedsl.tune.records.history:history",
    "record_of": "tedsl.tune.records.record:record_of", "task_key": "tedsl.tune.records.task:task_key",
    "within": "tedsl.tune.measure.budget:within"})
