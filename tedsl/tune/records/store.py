"""Records in a file of SQLite: written one by one, each at once and whole, by any number of processes."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tedsl.amounts import check_count
from tedsl.cache.place import FOLDER, cache_folder
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.runtime.modules.files import file_path
from tedsl.target.current import as_target
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.measure.outcome import Candidate, candidates_in
from tedsl.tune.records.lines import read_lines, write_lines
from tedsl.tune.records.ranking import candidate_of, fastest_first, fastest_records
from tedsl.tune.records.record import Record, records_in

NAME = "trials.sqlite"
IN_MEMORY = ":memory:"
_HEADER = b"SQLite format 3\0"
_FORMAT = 1  # of the tables; a reader refuses a larger one
_PATIENCE = 30.0  # seconds for which another process may hold the file
_TABLES = f"""
create table if not exists trials (
    number integer primary key, task text not null, target text not null, machine text not null, tools text not null,
    cost real, record text not null unique);
create index if not exists best on trials (task, target, machine, tools, cost);
pragma user_version = {_FORMAT};
"""


_OF_PARENTS: list[sqlite3.Connection] = []


class Records:
    """The trials in the file `path` of SQLite, which is made if it is not there; None: trials.sqlite in the folder of the
    cache; ":memory:": none, for this process alone. A context manager, which closes the file.
    """

    def __init__(self, path: Any = None) -> None:
        self.path = _place() if path is None else str(file_path(path, "Records"))
        _check_kind(self.path)
        self._lock = threading.RLock()
        with _told(self.path):
            self._open()
            (of,) = self._connection.execute("pragma user_version").fetchone()
            if of == 0:
                self._check_tables()
                self._connection.executescript(_TABLES)
        if of > _FORMAT:
            raise ArgumentError(f"{self.path} has version {of} of the tables of trials, and version {_FORMAT} is read here",
                                hint="read it with the version of tedsl that wrote it: records.write_lines(path)")

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __len__(self) -> int:
        return int(self._rows("select count(*) from trials")[0][0])

    def __iter__(self) -> Iterator[Record]:
        """All records, in the order in which they were added."""
        for (text,) in self._rows("select record from trials order by number"):
            yield Record.from_json(text)

    def __repr__(self) -> str:
        return f"<Records of {len(self)} trials of {len(self.tasks())} tasks in {self.path}>"

    def tasks(self) -> list[str]:
        """The keys of the tasks, sorted."""
        return [task for (task,) in self._rows("select distinct task from trials order by task")]

    def add(self, record: Record) -> bool:
        """Adds a record, at once; returns whether it was not there before."""
        return self._add(records_in([record], "Records.add")) == 1

    def ranked(self, task: str, target: Any = None, machine: str | None = None, tools: str | None = None) -> list[Record]:
        """The records of a task that have times, best first: the last one of each candidate (see `ranking.py`).

        For `target` (None: the current one), on machines of the model `machine` (None: this one), by `tools` (None: those
        here): times of others say nothing here.
        """
        if not isinstance(task, str):
            raise ArgumentTypeError(f"ranked: task is the key of a task, not {task!r}", hint="tune.task_key(outs)")
        chosen = as_target(target)
        key = (task, str(chosen), machine_model(chosen) if machine is None else machine,
               tool_versions() if tools is None else tools)
        rows = self._rows("select record from trials where task = ? and target = ? and machine = ? and tools = ? "
                          "order by number", key)
        return fastest_records(Record.from_json(text) for (text,) in rows)

    def best(self, task: str, target: Any = None, machine: str | None = None, tools: str | None = None) -> Record | None:
        """The first of `ranked`; None if there is none."""
        ranked = self.ranked(task, target, machine, tools)
        return ranked[0] if ranked else None

    def untried(self, candidates: Iterable[Candidate], task: str, target: Any = None) -> Iterator[Candidate]:
        """The candidates of which there is no record, of a trial of this task for `target` on this model of machine by these
        tools: a search that was ended goes on.
        """
        chosen = as_target(target)
        rows = self._rows("select record from trials where task = ? and target = ? and machine = ? and tools = ?",
                          (task, str(chosen), machine_model(chosen), tool_versions()))
        tried = {_sorted(Record.from_json(text).candidate) for (text,) in rows}
        return (candidate for candidate in candidates_in(candidates, "untried", ["to_json"])
                if _sorted(candidate.to_json()) not in tried)

    def merge(self, *sources: Any) -> int:
        """Adds the records of files, of SQLite or lines of JSON, and of other Records; those that are here are not added
        again. Returns how many were added.
        """
        added = 0
        for source in sources:
            if isinstance(source, Records):
                added += self._add(source)
            elif is_database(file_path(source, "merge")):
                with Records(source) as other:
                    added += self._add(other)
            else:
                added += self._add(read_lines(source))
        return added

    def prune(self, keep: int = 10, other_tools: bool = False) -> int:
        """Removes all but the best `keep` records of each task, target, machine and tools, by the order of `ranked`; and those
        of other tools than those here, unless `other_tools`. Returns how many were removed.
        """
        check_count("prune", "keep", keep, 0)
        before = len(self)
        with self._transaction():
            if not other_tools:
                self._connection.execute("delete from trials where tools <> ?", (tool_versions(),))
            rows = [(number, Record.from_json(text))
                    for number, text in self._connection.execute("select number, record from trials order by number")]
            kept: dict[tuple[str, ...], list[int]] = {}
            for number, one in fastest_first(rows, lambda row: candidate_of(row[1]), lambda row: row[1].outcome):
                kept.setdefault((one.task, one.target, one.machine, one.tools), []).append(number)
            left = {number for numbers in kept.values() for number in numbers[:keep]}
            self._connection.executemany("delete from trials where number = ?",
                                         [(number,) for number, _ in rows if number not in left])
        return before - len(self)

    def write_lines(self, path: Any) -> None:
        """Writes all records to a file of lines of JSON, in place of the one there may be."""
        write_lines(path, self)

    # --- the file -------------------------------------------------------------------------------------------------------

    def _add(self, records: Iterable[Record]) -> int:
        rows = [(one.task, one.target, one.machine, one.tools, None if one.cost == math.inf else one.cost, one.to_json())
                for one in records]
        with self._transaction():
            before = self._connection.total_changes
            self._connection.executemany(
                "insert or ignore into trials (task, target, machine, tools, cost, record) values (?, ?, ?, ?, ?, ?)", rows)
            return self._connection.total_changes - before

    def _check_tables(self) -> None:
        """Raises ArgumentError for the tables of another program."""
        others = [name for (name,) in self._connection.execute("select name from sqlite_master where type = 'table'")]
        if others:
            self._connection.close()
            raise ArgumentError(f"{self.path} holds the tables {', '.join(others[:3])} of another program, and no records",
                                hint="give the path of a new file")

    def _open(self) -> None:
        self._connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        self._process = os.getpid()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Context manager in which this thread alone uses the connection, which is one of this process."""
        with _told(self.path), self._lock:
            if self._process != os.getpid() and self.path != IN_MEMORY:
                _OF_PARENTS.append(self._connection)  # closing it would touch the file of the process that has forked this one
                self._open()
            yield

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._in_use():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Context manager of changes that are made all or none."""
        with self._in_use():
            self._connection.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")


def _sorted(candidate: object) -> str:
    return json.dumps(candidate, sort_keys=True)


def is_database(path: Path) -> bool:
    """Tells whether a file is one of SQLite; ArgumentError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror or error}") from error


def _check_kind(path: str) -> None:
    if path != IN_MEMORY and os.path.isfile(path) and os.path.getsize(path) and not is_database(Path(path)):
        raise ArgumentError(f"{path} is not a file of SQLite",
                            hint="lines of JSON are read by Records(':memory:').merge(path), or by tedsl.tune.history(path)")


def _place() -> str:
    folder = cache_folder()
    if not folder:
        raise ArgumentError(f"Records: there is no folder for caches, as {FOLDER} says",
                            hint="give a path: Records('trials.sqlite')")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise TedslError(f"Records: {folder} cannot be made: {error.strerror or error}", hint="give a path") from error
    return os.path.join(folder, NAME)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Context manager in which errors of SQLite are errors of tedsl that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise TedslError(f"the records in {path} cannot be used: {error}") from error
