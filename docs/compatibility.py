"""Writes the tables of names in docs/compatibility.md, and docs/names.md, from tests/names/v08, which tests/names compares with
the code.

    python docs/compatibility.py            writes them
    python docs/compatibility.py --check    fails if they are not what the data say
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from tests.names.table import Name, beyond, names, since

PAGE = pathlib.Path(__file__).with_suffix(".md")
LIST = PAGE.with_name("names.md")
BEGIN, END = "<!-- names: begin -->\n", "<!-- names: end -->\n"


def tables() -> str:
    """A row for each place with its numbers, then for each note the names that it is about."""
    rows = ["| in TVM v0.8 | names | the same here | differ | not planned | since 0.6 | 0.7 | 0.8 |",
            "|---|---|---|---|---|---|---|---|"]
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
    """How many names there are, how many with each kind of note, and how many of each release; those of which it is only known
    that 0.8 has them count as of 0.8.
    """
    with_note = [sum(name.note == note for name in listed) for note in ("", "differs", "not planned")]
    of = [sum(since(name).startswith(release) for name in listed) for release in ("0.6", "0.7", "0.8")]
    return " | ".join(map(str, [len(listed), *with_note, *of]))


def notes(note: str, title: str) -> list[str]:
    """A list of the names with a note, those with the same words together."""
    about: dict[str, list[Name]] = {}
    for name in names():
        if name.note == note:
            about.setdefault(name.words, []).append(name)
    return [f"### {title}", "", *(f"- {', '.join(f'`{name}`' for name in found)}: {words}" for words, found in about.items())]


def listing() -> str:
    """docs/names.md: every name with its release and what it is here, by module; those of one place that are alike together."""
    lines = ["# Every name of TVM v0.8", "",
             "In which release each public name of TVM came to be, of 0.6, 0.7 and 0.8, and what it is in tedsl. A name",
             'of 0.6 may have another path there: "What is called otherwise" in `docs/compatibility.md`. The data are in',
             "`tests/names`.", ""]
    for room in dict.fromkeys(room_of(name) for name in names()):
        rows: dict[tuple[str, str, str], list[str]] = {}
        for name in names():
            if room_of(name) == room:
                here = f"{name.note}: {name.words}" if name.note else "the same"
                rows.setdefault((name.place, since(name), here), []).append(f"`{name.name}`")
        lines += [f"## {room}", "", "| of | names | since | here |", "|---|---|---|---|"]
        lines += [f"| `{place or 'tvm'}` | {', '.join(found)} | {release} | {here} |"
                  for (place, release, here), found in rows.items()]
        lines.append("")
    lines += ["## Names that v0.8 does not have", "",
              "Those of TVM 0.9 to 0.19, or that v0.8 has in another module, and those of tedsl alone.", "",
              "| of | names | from |", "|---|---|---|"]
    for kind, origin in (("later", "TVM"), ("own", "tedsl")):
        lines += [f"| `{place}` | {', '.join(f'`{name}`' for name in found)} | {origin} |"
                  for place, found in beyond()[kind].items()]
    return "\n".join([*lines, ""])


def page() -> str:
    """The page with the tables of the data in their place."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != page() or LIST.read_text() != listing():
            sys.exit("the pages of names are not what tests/names says: run python docs/compatibility.py")
    else:
        PAGE.write_text(page())
        LIST.write_text(listing())
