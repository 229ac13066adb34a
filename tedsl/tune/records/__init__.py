"""What was measured, kept: for later runs, other programs, and machines of the same model.

`record.py` is one trial as data, `task.py` says of what, `store.py` keeps trials in a file of
SQLite, `lines.py` in lines of JSON, `history.py` lets `topi.schedules.schedule` use the best.
"""

from tedsl.errors import entries
from tedsl.tune.measure.machine import machine_model
from tedsl.tune.records.history import history
from tedsl.tune.records.lines import append_line, read_lines, write_lines
from tedsl.tune.records.record import Record, record_of
from tedsl.tune.records.store import Records
from tedsl.tune.records.task import task_key

__all__ = ["Record", "Records", "append_line", "history", "machine_model", "read_lines", "record_of", "task_key", "write_lines"]

entries(globals())
