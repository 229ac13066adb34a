"""Wrapping of long lines: after commas and before operators, outside of brackets if possible."""

from __future__ import annotations

import re
import textwrap

WIDTH = 110
FURTHER_IN = 8  # columns of what goes on, twice those of a block
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[({]|[\])}]| ')
_BEFORE = re.compile(r" ([-+*/%|&^<>=!]+|and|or|where|if|else|for) ")
_LOOSE = {"where": 0, ",": 1, "=": 1, "if": 2, "else": 2, "for": 2, "or": 3, "and": 4, "+": 6, "-": 6}  # others: 5


def wrapped(line: str) -> list[str]:
    """`line` as lines of at most WIDTH columns; longer only where nothing can be broken."""
    if len(line) <= WIDTH:
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    if line.startswith("#", indent):
        further = " " * indent + "#   "
        return textwrap.wrap(line, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
    lines: list[str] = []
    begin, room = indent, WIDTH - indent
    pauses = _pauses(line, indent)
    position = 0
    while len(line) - begin > room:
        while position < len(pauses) and pauses[position][0] <= begin:
            position += 1
        best = _best(pauses, position, begin, room)
        if best is None:
            break
        lines.append(" " * (FURTHER_IN * bool(lines) + indent) + line[begin:best])
        begin = best + 1
        room = WIDTH - indent - FURTHER_IN
    return [*lines, " " * (FURTHER_IN * bool(lines) + indent) + line[begin:]]


def _pauses(line: str, start: int) -> list[tuple[int, tuple[int, int]]]:
    """The blanks where a line may be broken, each with the number of brackets around it and the precedence there."""
    pauses, depth = [], 0
    for token in _TOKEN.finditer(line, start):
        text, at = token[0], token.start()
        if text in ("[", "(", "{"):
            depth += 1
        elif text in ("]", ")", "}"):
            depth -= 1
        elif text == " ":
            word = line[at - 1] if line[at - 1] in (",", "=") else None
            following = _BEFORE.match(line, at)
            if word is None and following is not None and following[1] not in ("=", "+="):
                word = following[1]
            if word is not None:
                pauses.append((at, (depth, _LOOSE.get(word, 5))))
    return pauses


def _best(pauses: list[tuple[int, tuple[int, int]]], first: int, begin: int, room: int) -> int | None:
    """The best place to break: among those within `room`, the one with the fewest brackets, the lowest precedence, the last.

    Places in the first third of the line count only if there is no other; if none is within `room`, the first one beyond.
    """
    best: tuple[bool, tuple[int, int], int] | None = None
    for number in range(first, len(pauses)):
        at, rank = pauses[number]
        if at - begin > room:
            break
        if best is None or (at - begin < room // 3, rank, -at) < best:
            best = at - begin < room // 3, rank, -at
    if best is not None:
        return -best[2]
    return pauses[first][0] if first < len(pauses) else None
