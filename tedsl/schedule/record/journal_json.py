"""A journal as JSON: written to files, and read without trust in their content."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.ir.source_line import SourceLine
from tedsl.schedule.record.directive import OF_SCHEDULES, OF_STAGES, Directive
from tedsl.schedule.record.grammar import read_directive, refused

FORMAT = "tedsl journal"
VERSION = 1
LARGEST = 10_000_000  # characters
LAST_LINE = 2**31
KEYS = {"directive": str, "stage": str, "text": str, "file": str, "line": int}


def json_of(directives: Iterable[Directive], objects: Mapping[str, Any], loose: Collection[str], indent: int | None) -> str:
    """A journal as JSON; ArgumentError if a directive has an argument that exists in this process only.

    objects, loose: see Journal.
    """
    records = []
    for directive in directives:
        _check_arguments(directive, objects, loose)
        records.append(_record(directive))
    return json.dumps({"format": FORMAT, "version": VERSION, "directives": records}, indent=indent)


def _record(directive: Directive) -> dict[str, Any]:
    record: dict[str, Any] = {"directive": directive.name, "stage": directive.stage, "text": directive.text}
    if directive.where is not None:
        record |= {"file": directive.where.file, "line": directive.where.line}
    return record


def _check_arguments(directive: Directive, objects: Mapping[str, Any], loose: Collection[str]) -> None:
    """Refuses arguments that cannot be found again by name: all objects except variables of the shapes."""
    for name in sorted(directive.names_used()):
        thing = objects.get(name)
        if name in loose:
            raise ArgumentError(f"{directive.origin} cannot be written as JSON: {name} is a variable that is in no shape, "
                                "formula or statement of the schedule: nothing there tells which is meant",
                                hint="within the process, s.replay(journal) applies it")
        if thing is not None and not (isinstance(thing, Var) and thing.name == name):
            raise ArgumentError(f"{directive.origin} cannot be written as JSON: {name} is an object of this process "
                                f"({type(thing).__name__})",
                                hint="within the process, s.replay(journal) applies it")


def read_json(text: str | bytes) -> list[Directive]:
    """The directives of a journal that `json_of` wrote; ArgumentError for any other text. Nothing in it is run as Python."""
    if not isinstance(text, (str, bytes)):
        raise ArgumentTypeError(f"from_json reads a str, not {type(text).__name__}")
    if len(text) > LARGEST:
        raise ArgumentError(f"from_json: {len(text)} characters, and at most {LARGEST} are read")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(f"it is not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _broken(f'it is not an object with "format": "{FORMAT}"')
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise _broken(f"it is of version {reprlib.repr(version)}, and version {VERSION} is read here")
    records = data.get("directives")
    if not isinstance(records, list):
        raise _broken('"directives" is not a list')
    return [_directive(number, record) for number, record in enumerate(records, 1)]


def _directive(number: int, record: Any) -> Directive:
    if not isinstance(record, dict):
        raise _broken(f"directive {number} is not an object")
    for key, value in record.items():
        if key not in KEYS:
            raise _broken(f"directive {number} has an entry {reprlib.repr(key)}; the entries are {', '.join(KEYS)}")
        if type(value) is not KEYS[key]:
            raise _broken(f'directive {number}: "{key}" is of type {type(value).__name__}, not {KEYS[key].__name__}')
        if isinstance(value, str) and not _is_text(value):
            raise _broken(f'directive {number}: "{key}" is not text: it has half of a surrogate pair')
    missing = [key for key in ("directive", "stage", "text") if key not in record]
    if missing:
        raise _broken(f"directive {number} has no {missing[0]!r}")
    where = SourceLine(record["file"], record["line"]) if "file" in record and "line" in record else None
    if where is not None and not 0 <= where.line < LAST_LINE:
        raise _broken(f"directive {number}: no file has a line {where.line}")
    directive = read_directive(record["text"], record["stage"], where)
    known = OF_SCHEDULES if directive.on_schedule else OF_STAGES
    if directive.name not in known:
        raise refused(directive.text, f"there is no directive {directive.name}; there are {', '.join(sorted(known))}")
    if directive.name != record["directive"]:
        raise refused(directive.text, f"it is called {record['directive']!r} there and calls {directive.name}")
    return directive


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _broken(problem: str) -> ArgumentError:
    return ArgumentError(f"this is not a journal: {problem}", hint="te.Journal.from_json reads what journal.to_json() wrote")
