"""`with history(path):` the best schedules that were measured are those of `topi.schedules.schedule`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from tedsl.cache.place import warn_once
from tedsl.errors import ArgumentError, TedslError
from tedsl.lang.tensor import Tensor
from tedsl.runtime.modules.files import file_path
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.advice import advised_by
from tedsl.target.target import Target
from tedsl.tune.records.record import Record
from tedsl.tune.records.store import IN_MEMORY, Records, is_database
from tedsl.tune.records.task import task_key

JOURNAL = "journal"  # in a candidate: the journal of a schedule, as data of its `to_json`
_TRIED = 10  # records of a task: where so many do not apply, none was made of this program


@contextmanager
def history(source: Any = None) -> Iterator[Records]:
    """Context manager in which `topi.schedules.schedule` takes the best schedule that was measured for the same formulas, the
    same target and this model of machine, where there is one.

    source: a file of SQLite or of lines of JSON, or Records; None: those of the user. A record that does not apply is skipped,
    with a warning. Only records whose candidate holds a journal are used.
    """
    with _opened(source) as records:
        known: dict[tuple[str, Target], Journal | None] = {}

        def advise(outs: Sequence[Tensor], target: Target) -> Schedule | None:
            key = task_key(outs), target
            if key not in known:
                known[key] = _best_journal(records, key[0], outs, target)
            journal = known[key]
            return None if journal is None else _replayed(journal, outs)

        with advised_by(advise):
            yield records


def _opened(source: Any) -> Any:
    """A context manager of the records in `source`."""
    if isinstance(source, Records):
        return nullcontext(source)
    if source is None:
        return Records()
    path = file_path(source, "history")
    if not os.path.isfile(path):
        raise ArgumentError(f"history: there is no file {str(path)!r}", hint="Records(path).add(record) makes it")
    if is_database(path):
        return Records(path)
    records = Records(IN_MEMORY)
    records.merge(path)
    return records


def _best_journal(records: Records, task: str, outs: Sequence[Tensor], target: Target) -> Journal | None:
    ranked = records.ranked(task, target) if task else []
    for record in ranked[:_TRIED]:
        try:
            journal = journal_of(record)
            if journal is not None:
                _replayed(journal, outs)
                return journal
        except TedslError as error:
            warn_once(f"a record of {', '.join(out.name for out in outs)} is skipped, since it does not apply: {error}")
    return None


def journal_of(record: Record) -> Journal | None:
    """The journal in a record's candidate; None if it holds none. Raises ArgumentError for one that cannot be read."""
    candidate = record.candidate
    if not isinstance(candidate, dict) or JOURNAL not in candidate:
        return None
    return Journal.from_json(json.dumps(candidate[JOURNAL]))


def _replayed(journal: Journal, outs: Sequence[Tensor]) -> Schedule:
    sch = create_schedule([out.op for out in outs])
    sch.replay(journal)
    return sch
