"""A text that shows itself as it is: in a terminal without quotes, in a notebook as a block."""

from __future__ import annotations

from tedsl.display.markup import element
from tedsl.display.page import fragment


class Text(str):
    """A str whose repr is the text; a notebook shows it below `heading`."""

    heading: str

    def __new__(cls, text: str, heading: str = "") -> Text:
        made = super().__new__(cls, text)
        made.heading = heading
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return fragment(self.heading, element("pre", str(self)))
