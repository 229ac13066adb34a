"""A journal as JSON: written for files, read with suspicion."""

from __future__ import annotations

import json
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.expr import Var
from tedsl.ir.source_line import SourceLine
from tedsl.schedule.journal import Directive, Journal
from tedsl.schedule.record.grammar import parse, refused
from tedsl.schedule.record.names import names_used
from tedsl.schedule.record.replay import directives_of

FORMAT = "tedsl journal"
VERSION = 1
LARGEST = 10_000_000  # characters
KEYS = {"directive": str, "stage": str, "text": str, "file": str, "line": int}


def written(journal: Journal, indent: int | None) -> str:
    """`journal` as JSON; ArgumentError if a directive has an argument that only this process knows."""
    for directive in journal:
        _check_arguments(directive, journal)
    made = {"format": FORMAT, "version": VERSION, "directives": [_record(directive) for directive in journal]}
    return json.dumps(made, indent=indent)


def _record(directive: Directive) -> dict[str, Any]:
    record: dict[str, Any] = {"directive": directive.name, "stage": directive.stage, "text": directive.text}
    if directive.where is not None:
        record |= {"file": directive.where.file, "line": directive.where.line}
    return record


def _check_arguments(directive: Directive, journal: Journal) -> None:
    """A variable of the shapes is found again by its name; other objects are not."""
    for name in sorted(names_used(parse(directive.text).call)):
        thing = journal.objects.get(name)
        if name in journal.loose:
            raise ArgumentError(f"{directive.origin} cannot be written as JSON: {name} is a variable that is in no shape, "
                                "formula or statement of the schedule: nothing there tells which is meant",
                                hint="within the process, s.replay(journal) applies it")
        if thing is not None and not (isinstance(thing, Var) and thing.name == name):
            raise ArgumentError(f"{directive.origin} cannot be written as JSON: {name} is an object of this process "
                                f"({type(thing).__name__})",
                                hint="within the process, s.replay(journal) applies it")


def read(text: str | bytes) -> Journal:
    """The journal that `written` wrote, each text checked."""
    if not isinstance(text, (str, bytes)):
        raise ArgumentTypeError(f"from_json reads a str, not {type(text).__name__}")
    if len(text) > LARGEST:
        raise ArgumentError(f"from_json: {len(text)} characters, and at most {LARGEST} are read")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(f"it is no JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _broken(f'it is not an object with "format": "{FORMAT}"')
    if data.get("version") != VERSION or isinstance(data["version"], bool):
        raise _broken(f"it is of version {data.get('version')!r}, and version {VERSION} is read here")
    records = data.get("directives")
    if not isinstance(records, list):
        raise _broken('"directives" is not a list')
    return Journal([_directive(number, record) for number, record in enumerate(records, 1)])


def _directive(number: int, record: Any) -> Directive:
    if not isinstance(record, dict):
        raise _broken(f"directive {number} is not an object")
    for key, value in record.items():
        if key not in KEYS:
            raise _broken(f"directive {number} has an entry {key!r}; the entries are {', '.join(KEYS)}")
        if not isinstance(value, KEYS[key]) or isinstance(value, bool):
            raise _broken(f'directive {number}: "{key}" is of type {type(value).__name__}, not {KEYS[key].__name__}')
    missing = [key for key in ("directive", "stage", "text") if key not in record]
    if missing:
        raise _broken(f"directive {number} has no {missing[0]!r}")
    _check_text(record["directive"], record["text"])
    where = SourceLine(record["file"], record["line"]) if "file" in record and "line" in record else None
    return Directive(record["directive"], record["stage"], record["text"], where)


def _check_text(name: str, text: str) -> None:
    from tedsl.schedule.handles import Schedule  # these read journals, and so stand above
    from tedsl.schedule.stage import Stage

    call = parse(text)
    known = directives_of(Schedule if call.on_schedule else Stage)
    if call.name not in known:
        raise refused(text, f"there is no directive {call.name}; there are {', '.join(sorted(known))}")
    if call.name != name:
        raise refused(text, f"it is called {name!r} there and calls {call.name}")


def _broken(problem: str) -> ArgumentError:
    return ArgumentError(f"this is no journal: {problem}", hint="te.Journal.from_json reads what journal.to_json() wrote")
