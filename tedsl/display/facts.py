"""The display of a value in a notebook: its title above a table of its properties."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.display.markup import Markup, element, joined
from tedsl.display.page import fragment


def facts_page(title: str, facts: Mapping[str, object], *parts: Markup) -> str:
    """Returns HTML of `title`, of one row for each of `facts` that is not empty, and of `parts` below them."""
    rows = [element("tr", element("th", name), element("td", str(value))) for name, value in facts.items() if str(value)]
    return fragment(title, element("table", element("tbody", *rows), class_="facts"), joined(*parts))
