"""Shows differences in a terminal. Colour is used only if the output is a terminal and NO_COLOR is not set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from tedsl.display.difference import Row
from tedsl.errors import ArgumentTypeError

COLOURS = {"+": "\033[32m", "-": "\033[31m", "=": "\033[1m"}
PLAIN = "\033[0m"


def output(file: TextIO | None, hint: str = "leave file out to print") -> TextIO:
    """Returns the open file that `show` writes to: standard output unless another is given. hint: what to do otherwise."""
    if file is not None and not hasattr(file, "write"):
        raise ArgumentTypeError(f"show writes to an open file, got {file!r}", hint=hint)
    return sys.stdout if file is None else file


def wants_colour(out: TextIO) -> bool:
    """Tells whether `out` is a terminal that shows colour."""
    return hasattr(out, "isatty") and out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def unified(found: Sequence[Row]) -> Iterator[str]:
    """Iterates over the rows as lines that begin with `+`, `-` or a blank; in changed blocks removed lines precede added ones.
    """
    gone: list[str] = []
    came: list[str] = []
    for row in found:
        if row.kind in ("changed", "removed", "added"):
            gone += [row.left] if row.kind != "added" else []
            came += [row.right] if row.kind != "removed" else []
            continue
        yield from _flushed(gone, came)
        yield f"  ... {row.left}" if row.kind == "skipped" else f"  {row.right}"
    yield from _flushed(gone, came)


def _flushed(gone: list[str], came: list[str]) -> Iterator[str]:
    yield from (f"- {line}" for line in gone)
    yield from (f"+ {line}" for line in came)
    gone.clear()
    came.clear()


def painted(line: str, colour: bool) -> str:
    """Returns `line` in the colour of its first character, with control characters in names replaced."""
    safe = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
    start = COLOURS.get(safe[:1], "") if colour else ""
    return f"{start}{safe}{PLAIN}" if start else safe
