"""Pages that show, side by side, what each step changed. A page is one file that loads nothing, and works without scripts and
in print.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tedsl.display.code import code_block, code_markup
from tedsl.display.difference import Row, count_changes, near_changes, rows
from tedsl.display.markup import Markup, element, joined
from tedsl.display.style import CSS, PAGE_CSS, SCRIPT
from tedsl.record import record

CONTEXT = 3  # equal lines around each change
MOST_LINES = 1000  # of a text that is shown in whole
MOST_REPEATED = 200  # lines: longer loops are not shown again as a whole after each step
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
KEYS = (("j", "next step"), ("k", "step before"), ("n", "next change"), ("p", "change before"), ("g", "top"))


@record
class Panel:
    """A step of a page: the text before and after it, or the reason why there is none.

    group: the heading of the list under which it stands; note: a line below the title; short: the title in the list;
    unchanged: what is said if both texts are the same.
    """

    group: str
    title: str
    before: Sequence[str]
    after: Sequence[str]
    note: str = ""
    problem: str = ""
    short: str = ""
    unchanged: str = "No change."

    @cached_property
    def rows(self) -> list[Row]:
        return rows(self.before, self.after)

    @property
    def changes(self) -> tuple[int, int]:
        """Returns the numbers of lines added and removed."""
        return count_changes(self.rows)


def document(title: str, picture: Markup, panels: Sequence[Panel], notes: Sequence[str] = ()) -> str:
    """Returns the whole page."""
    changes = [panel.changes for panel in panels]
    keys = joined(*[joined(element("kbd", key), f" {what}  ") for key, what in KEYS])
    head = element("head", element("meta", charset="utf-8"),
                   element("meta", http_equiv="Content-Security-Policy", content=POLICY),
                   element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                   element("title", title), element("style", CSS, PAGE_CSS))
    main = element("main", element("h1", title), *[element("p", note, class_="dim") for note in notes],
                   element("p", keys, class_="dim"), element("div", picture, class_="scroll"),
                   *[_section(number, panel, changed) for number, (panel, changed) in enumerate(zip(panels, changes))])
    body = element("body", element("div", _contents(panels, changes), main, class_="tedsl-page"),
                   element("script", SCRIPT), class_="tedsl")
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def fragment(title: str, *parts: Markup) -> str:
    """Returns the HTML that a notebook displays for a value."""
    shown = [element("div", part, class_="scroll") for part in parts]
    return element("div", element("style", CSS), element("h2", title), *shown, class_="tedsl")


def folded(title: str, text: str, *, is_open: bool = False) -> Markup:
    """Returns a text that is shown when its title is clicked; a very long one is cut at the end."""
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        text = "\n".join([*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more lines"])
    return element("details", element("summary", title), element("pre", text), open="open" if is_open else None)


def folded_code(title: str, text: str) -> Markup:
    """Returns a program that is shown when its title is clicked."""
    return element("details", element("summary", title), code_block(text))


def folded_panels(panels: Sequence[Panel]) -> Markup:
    """Returns the steps as a list whose items open, for notebooks."""
    return joined(*[element("details", element("summary", f"{panel.title}{_sum(panel, panel.changes)}"),
                            panel_markup(panel)) for panel in panels])


def panel_markup(panel: Panel) -> Markup:
    """Returns what a step changed, or the reason why there is nothing to see."""
    if panel.problem:
        return element("p", panel.problem, class_="problem")
    if any(panel.changes):
        return _table(panel)
    return element("p", panel.unchanged, class_="dim")


def _contents(panels: Sequence[Panel], changes: Sequence[tuple[int, int]]) -> Markup:
    """Returns the list of steps, group by group."""
    groups: dict[str, list[Markup]] = {}
    for number, (panel, changed) in enumerate(zip(panels, changes)):
        link = element("a", f"{panel.short or panel.title}{_sum(panel, changed)}", href=f"#step-{number}", title=panel.title,
                       class_=None if any(changed) or panel.problem else "still")
        groups.setdefault(panel.group, []).append(element("li", link))
    lists = [joined(element("h2", group), element("ol", *items)) for group, items in groups.items()]
    return element("nav", *lists, aria_label="steps")


def _sum(panel: Panel, changed: tuple[int, int]) -> str:
    if panel.problem:
        return "  (refused)"
    came, gone = changed
    return f"  +{came} −{gone}" if came or gone else ""


def _section(number: int, panel: Panel, changed: tuple[int, int]) -> Markup:
    parts: list[Markup] = []
    if panel.note:
        parts.append(element("p", panel.note, class_="dim"))
    parts.append(panel_markup(panel))
    if any(changed) and not panel.problem and panel.before and len(panel.after) <= MOST_REPEATED:
        parts.append(folded_code(f"All {len(panel.after)} lines after this step", "\n".join(panel.after)))
    return element("section", element("h2", element("code", panel.title)), *parts, id=f"step-{number}", tabindex="-1",
                   data_changed="yes" if any(changed) or panel.problem else "no")


def _table(panel: Panel) -> Markup:
    if not panel.before:
        return code_block("\n".join(panel.after))
    columns = element("colgroup", *[element("col", style=f"width: {w}") for w in ("1.4em", "50%", "1.4em", "50%")])
    lines = element("tbody", *map(_line, near_changes(panel.rows, CONTEXT)))
    return element("div", element("table", columns, lines, class_="loops"), class_="scroll")


def _line(row: Row) -> Markup:
    if row.kind == "skipped":
        return element("tr", element("td", f"… {row.left}", colspan=4), class_="skipped")
    gone, came = row.kind in ("changed", "removed"), row.kind in ("changed", "added")
    return element("tr", element("td", "−" if gone else "", class_="sign gone" if gone else "sign"), _code(row.left),
                   element("td", "+" if came else "", class_="sign came" if came else "sign"), _code(row.right))


def _code(line: str) -> Markup:
    """Returns a line of loops; a line that is too long continues below, indented further."""
    return element("td", code_markup(line), style=f"--in: {len(line) - len(line.lstrip()) + 4}" if line else None)
