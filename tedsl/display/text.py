"""A str whose repr is its text: a terminal shows it without quotes, a notebook as a block."""

from __future__ import annotations

from typing import Any

LONGEST = 200_000  # characters that a notebook shows


class Text(str):
    """A str whose repr is the text; a notebook shows it below `heading`."""

    heading: str

    def __new__(cls, text: str, heading: str = "") -> Text:
        shown = super().__new__(cls, text)
        shown.heading = heading
        return shown

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (str(self), self.heading)

    def _repr_html_(self) -> str:
        from tedsl.display.markup import element
        from tedsl.display.page import fragment  # printing does without it

        more = len(self) - LONGEST
        cut = [element("p", f"... and {more} more characters")] if more > 0 else []
        return fragment(self.heading, element("pre", str(self)[:LONGEST]), *cut)
