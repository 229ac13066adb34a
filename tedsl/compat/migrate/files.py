"""Scripts and notebooks on disk."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from tedsl.compat.migrate.names import Note
from tedsl.compat.migrate.rewrite import migrate
from tedsl.errors import ArgumentError
from tedsl.record import record

_CELL = "# --- cell {} ---"  # stands between the cells of a notebook, which are one program
_HIDDEN = "# --- not Python: "  # stands before a line for the notebook's shell


@record
class Migrated:
    """A file before and after. notes: what is to be changed by hand; lines of a notebook count from the first cell of code."""

    path: Path
    before: str
    after: str
    notes: tuple[Note, ...]

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """The changes, as `diff -u` shows them."""
        before, after = [text.splitlines(keepends=True) for text in (self.before, self.after)]
        return "".join(difflib.unified_diff(before, after, str(self.path), str(self.path)))


def migrate_file(path: str | Path) -> Migrated:
    """Returns a script (.py) or a notebook (.ipynb) as one of tedsl; nothing is written.

    Raises ArgumentError for a file that cannot be read, or is neither.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"migrate: {path} cannot be read: {error}") from None
    try:
        after, notes = _migrate_notebook(text) if path.suffix == ".ipynb" else migrate(text)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    return Migrated(path, text, after, notes)


def _migrate_notebook(text: str) -> tuple[str, tuple[Note, ...]]:
    """The cells of code are one program, as what a cell imports is known to later ones."""
    try:
        notebook: Any = json.loads(text)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"migrate: it is no notebook: {error}") from None
    program = "".join(f"{_CELL.format(at)}\n{_hidden(source)}\n" for at, source in enumerate(sources))
    after, notes = migrate(program)
    for at, cell in enumerate(cells):
        begin = after.index(f"{_CELL.format(at)}\n") + len(_CELL.format(at)) + 1
        end = after.index(_CELL.format(at + 1)) if at + 1 < len(cells) else len(after)
        source = _shown(after[begin:end - 1])
        if source != sources[at]:
            cell["source"] = source.splitlines(keepends=True) if isinstance(cell["source"], list) else source
    if all("".join(cell["source"]) == source for cell, source in zip(cells, sources)):
        return text, notes
    indent = next((len(line) - len(line.lstrip(" ")) for line in text.splitlines()[1:2]), 1)
    return json.dumps(notebook, indent=indent or None, ensure_ascii=False) + text[len(text.rstrip()):], notes


def _hidden(source: str) -> str:
    """The code of a cell with lines for the shell as comments; all of a cell that begins with %% is one."""
    lines = source.split("\n")
    everything = source.lstrip().startswith("%%")
    return "\n".join([f"{_HIDDEN}{line}" if everything or line.lstrip().startswith(("%", "!")) else line for line in lines])


def _shown(source: str) -> str:
    return source.replace(_HIDDEN, "")
