"""Coloured programs in Python's notation: in a terminal, and as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tedsl.display.markup import Markup, element, joined

PLAIN = "\033[0m"
COLOURS = {"comment": "\033[2m", "string": "\033[32m", "number": "\033[36m", "keyword": "\033[1;35m", "kind": "\033[34m"}
KEYWORDS = ("def", "for", "in", "if", "elif", "else", "while", "and", "or", "not", "where", "assert", "pass", "let",
            "True", "False")
KINDS = ("range", "parallel", "vectorized", "unrolled", "threads", "virtual_threads", "allocate", "likely")
_TOKEN = re.compile(
    r"(?P<comment>#.*)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<word>[^\W\d](?:\w|\.(?=\w))*)"
    r"|(?P<number>\d+(?:\.\d*)?(?:e[-+]?\d+)?)")


def tokens(line: str) -> Iterator[tuple[str, str]]:
    """Iterates over the parts of a line with their kinds: "comment", "string", "number", "keyword", "kind" (of a loop) or "".
    """
    begin = 0
    for token in _TOKEN.finditer(line):
        kind, text = str(token.lastgroup), token[0]
        if kind == "word":
            kind = "keyword" if text in KEYWORDS else "kind" if text in KINDS else ""
        if kind:
            if token.start() > begin:
                yield "", line[begin:token.start()]
            yield kind, text
            begin = token.end()
    if begin < len(line):
        yield "", line[begin:]


def painted_code(text: str, colour: bool) -> str:
    """Returns `text` for a terminal, with control characters in names replaced. colour: with escape codes for colours."""
    safe = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    if not colour:
        return safe
    return "\n".join("".join(f"{COLOURS[kind]}{part}{PLAIN}" if kind else part for kind, part in tokens(line))
                     for line in safe.split("\n"))


def code_markup(text: str) -> Markup:
    """Returns `text` with an element around each part that has a kind."""
    lines = [joined(*[element("span", part, class_=kind) if kind else part for kind, part in tokens(line)])
             for line in text.split("\n")]
    return Markup("\n".join(lines))


def code_block(text: str) -> Markup:
    """Returns `text` as a block element."""
    return element("pre", code_markup(text), class_="code")
