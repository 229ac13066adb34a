"""Builds HTML and SVG elements as text. Content is escaped, unless it is Markup."""

from __future__ import annotations

from typing import TypeAlias

VOID = frozenset(("br", "hr", "img", "link", "meta", "path", "rect", "line", "circle", "col"))  # elements without content

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Markup(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | int | None"


def escaped(text: object) -> Markup:
    """Returns `text` for any place of a page: markup and quotes as entities, characters that no page may hold replaced."""
    if isinstance(text, Markup):
        return text
    safe = "".join(c if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f" and not "\ud800" <= c <= "\udfff")
                   else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return Markup(safe.translate(_ESCAPED))


def element(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Returns `<name ...>children</name>`. Of the attributes `class_` is `class`, and `_` in names is `-`; None is left out."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
                    for key, value in attributes.items() if value is not None)
    if name in VOID:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Returns the children one after the other."""
    return Markup("".join([escaped(child) for child in children if child is not None]))
