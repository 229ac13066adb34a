"""Where a search keeps its trials: a file of SQLite, one of lines, or nowhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path

from tedsl.tune.records.lines import Lines
from tedsl.tune.records.store import IN_MEMORY, Records, is_database

_DATABASES = (".sqlite", ".sqlite3", ".db")  # the names of files that are made


def kept_in(place: str | PathLike[str] | Records | None, what: str) -> AbstractContextManager[Records | Lines | None]:
    """The records in `place`: Records, which stay open; the path of a file of SQLite or of lines, which is opened, or made, of
    SQLite where its name ends in .sqlite, .sqlite3 or .db; None: none are kept. what: the function that a message names.
    Raises ArgumentError for a file of something else.
    """
    if place is None or isinstance(place, Records):
        return nullcontext(place)
    path = Path(place)
    there = path.is_file() and path.stat().st_size > 0
    if str(place) == IN_MEMORY or (is_database(path) if there else path.suffix in _DATABASES):
        return Records(place)
    return nullcontext(Lines(path, what))
