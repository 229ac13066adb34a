"""Differences in a terminal. Colour is for people: only where the output is a terminal, and not if NO_COLOR is set."""

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
    """The open file that `show` writes to: standard output unless another is given. hint: what to do otherwise."""
    if file is not None and not hasattr(file, "write"):
        raise ArgumentTypeError(f"show writes to an open file, got {file!r}", hint=hint)
    return sys.stdout if file is None else file


def wants_colour(out: TextIO) -> bool:
    """Whether `out` is a terminal that shows colour."""
    return hasattr(out, "isatty") and out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def unified(found: Sequence[Row]) -> Iterator[str]:
    """The rows as lines that begin with `+`, `-` or a blank; changed blocks show what went before what came."""
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
    """`line` in the colour of its first character. Control characters of names never reach the terminal."""
    safe = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
    start = COLOURS.get(safe[:1], "") if colour else ""
    return f"{start}{safe}{PLAIN}" if start else safe
