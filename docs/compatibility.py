"""Writes the tables of names in docs/compatibility.md, from tests/names/v08, which tests/names compares with the code.

    python docs/compatibility.py            writes them
    python docs/compatibility.py --check    fails if they are not what the data say
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.names.table import Name, names

PAGE = pathlib.Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- names: begin -->\n", "<!-- names: end -->\n"


def tables() -> str:
    """A row for each place with its numbers, then for each note the names that it is about."""
    rows = ["| in TVM v0.8 | names | the same here | differ | not planned |", "|---|---|---|---|---|"]
    rooms = dict.fromkeys(room_of(name) for name in names())
    for room in rooms:
        rows.append(f"| `{room}` | {numbers([name for name in names() if room_of(name) == room])} |")
    rows.append(f"| all | {numbers(names())} |")
    differ, missing = notes("differs", "What differs in parameters"), notes("not planned", "What is not planned")
    return "\n".join([*rows, "", *differ, "", *missing])


def room_of(name: Name) -> str:
    """The module that a name is counted with: of members and of modules inside, the one around."""
    parts = name.place.split(".")
    return ".".join(parts[:2 if parts[0] in ("topi", "contrib") or name.place == "tir.transform" else 1]) or "tvm"


def numbers(listed: Sequence[Name]) -> str:
    """How many names there are, and how many with each kind of note."""
    with_note = [sum(name.note == note for name in listed) for note in ("", "differs", "not planned")]
    return " | ".join(map(str, [len(listed), *with_note]))


def notes(note: str, title: str) -> list[str]:
    """A list of the names with a note, those with the same words together."""
    about: dict[str, list[Name]] = {}
    for name in names():
        if name.note == note:
            about.setdefault(name.words, []).append(name)
    return [f"### {title}", "", *(f"- {', '.join(f'`{name}`' for name in found)}: {words}" for words, found in about.items())]


def page() -> str:
    """The page with the tables of the data in their place."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != page():
            sys.exit("docs/compatibility.md is not what tests/names/v08 says: run python docs/compatibility.py")
    else:
        PAGE.write_text(page())
