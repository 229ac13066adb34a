"""Records as lines of JSON: a file to which every trial adds a line, at once, so that a program that is killed leaves all of
its trials but the running one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tedsl.cache.place import warn_once
from tedsl.errors import ArgumentError, TedslError
from tedsl.runtime.modules.files import file_path, replace_file
from tedsl.tune.records.record import Record, records_in


def append_line(path: Any, record: Record) -> None:
    """Adds a record to the file, in one write. A line that a program which was killed has left unfinished is closed first."""
    (one,) = records_in([record], "append_line")
    append_text(path, one.to_json())


def append_text(path: Any, text: str) -> None:
    """Adds a line to the file, as `append_line` does."""
    line = text.encode() + b"\n"
    file = file_path(path, "append_line")
    try:
        handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            os.write(handle, b"\n" * torn + line)
        finally:
            os.close(handle)
    except OSError as error:
        raise TedslError(f"append_line: {file} cannot be written: {error.strerror or error}") from error


def write_lines(path: Any, records: Iterable[Record]) -> None:
    """Writes a file of these records, in place of the one there may be."""
    file = file_path(path, "write_lines")
    try:
        replace_file(file, b"".join([record.to_json().encode() + b"\n" for record in records_in(records, "write_lines")]))
    except OSError as error:
        raise TedslError(f"write_lines: {file} cannot be written: {error.strerror or error}") from error


def read_lines(path: Any, of_line: Callable[[str], Record] = Record.from_json) -> Iterator[Record]:
    """The records of a file, in order. Lines that are none are skipped, with a warning that names the first. of_line: reads a
    line, and raises ArgumentError for what is none.
    """
    file = file_path(path, "read_lines")
    wrong: list[str] = []
    for number, line in enumerate(_content(file).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield of_line(line.decode())
        except (ArgumentError, UnicodeError) as error:
            wrong.append(f"line {number} of {file.name} is skipped: {error}")
    if wrong:
        warn_once(wrong[0] + (f"; and {len(wrong) - 1} others" if len(wrong) > 1 else ""))


def _content(file: Path) -> bytes:
    if file.exists() and not file.is_file():
        raise ArgumentError(f"the records in {file} cannot be read: it is no file")
    try:
        return file.read_bytes()
    except OSError as error:
        raise ArgumentError(f"the records in {file} cannot be read: {error.strerror or error}") from error
