"""What was measured, kept: for later runs, other programs, and machines of the same model.

`record.py` is one trial as data, `task.py` says of what, `store.py` keeps trials in a file of
SQLite, `lines.py` in lines of JSON, `ranking.py` says which is the best, `history.py` lets `topi.schedules.schedule` use it.
"""

from tedsl.errors import entries
from tedsl.tune.measure.machine import machine_model
from tedsl.tune.records.history import history
from tedsl.tune.records.lines import append_line, read_lines, write_lines
from tedsl.tune.records.ranking import fastest_first, fastest_records, fastest_records_of, last_of_each, last_records
from tedsl.tune.records.record import Record, record_of
from tedsl.tune.records.store import Records
from tedsl.tune.records.task import task_key

__all__ = ["Record", "Records", "append_line", "fastest_first", "fastest_records", "fastest_records_of", "history",
           "last_of_each", "last_records", "machine_model", "read_lines", "record_of", "task_key", "write_lines"]

entries(globals())
