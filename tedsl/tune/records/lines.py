"""Records as lines of JSON: a file to which every trial adds a line, at once, so that a program that is killed leaves all of
its trials but the running one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tedsl.cache.place import warn_once
from tedsl.errors import ArgumentError, TedslError
from tedsl.runtime.modules.files import file_path, replace_file
from tedsl.tune.records.record import Record, records_in

T = TypeVar("T")


class Lines:
    """The records in a file of lines, which is made if it is not there. Raises ArgumentError for a file of something else.
    what: the function that a message names.
    """

    def __init__(self, path: Any, what: str) -> None:
        self.path = require_lines(path, what)

    def __iter__(self) -> Iterator[Record]:
        return read_lines(self.path) if self.path.exists() else iter(())

    def add(self, record: Record) -> None:
        """Adds a record, at once."""
        append_line(self.path, record)


def require_lines(path: Any, what: str) -> Path:
    """The path of a file to which lines may be added: one that is not there, an empty one, or one of lines of which at least
    one is an object of JSON, be it unfinished. Raises ArgumentError for another, such as a program: it would be spoilt; and
    where there is no folder for it, before there is anything to write.
    """
    file = file_path(path, what)
    if not file.absolute().parent.is_dir():
        raise ArgumentError(f"{what}: {file} cannot be written: there is no folder {file.parent}", hint="make the folder first")
    if file.exists() and not file.is_file():
        raise ArgumentError(f"{what}: {file} cannot be written: it is no file")
    if file.exists():
        lines = [line for line in _content(file).split(b"\n") if line.strip()]
        if lines and not any(map(_is_object, lines)) and not (len(lines) == 1 and lines[0].startswith(b'{"')):
            raise ArgumentError(f"{what}: {file} holds something else than records, which lines of records would spoil",
                                hint="give the path of a new file, or of one of records")
    return file


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def append_line(path: Any, record: Record) -> None:
    """Adds a record to the file, in one write. A line that a program which was killed has left unfinished is closed first."""
    (one,) = records_in([record], "append_line")
    append_text(path, one.to_json())


def append_text(path: Any, text: str, what: str = "append_line") -> None:
    """Adds lines to the file, as `append_line` does. what: the function that a message names."""
    line = text.encode() + b"\n"
    file = file_path(path, what)
    try:
        handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            os.write(handle, b"\n" * torn + line)
        finally:
            os.close(handle)
    except OSError as error:
        raise TedslError(f"{what}: {file} cannot be written: {error.strerror or error}") from error


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
    return lines_of(path, of_line, "read_lines")


def lines_of(path: Any, of_line: Callable[[str], T], what: str) -> Iterator[T]:
    """What `of_line` reads in the lines of a file that are not empty. Those for which it raises ArgumentError, and those that
    are no text, are skipped, with a warning that names the first. what: the function that a message names.
    """
    file = file_path(path, what)
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
