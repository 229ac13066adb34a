"""python -m tedsl migrate FILE...: programs of TVM become programs of tedsl.

Imports and the spellings of older versions are rewritten, in scripts (.py) and notebooks (.ipynb); comments and layout stay.
A line is printed for each name that tedsl does not have. Needs libcst: pip install tedsl[migrate].
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from tedsl.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="scripts and notebooks, which are rewritten in place")
    parser.add_argument("--diff", action="store_true", help="print the changes and write nothing")


def run(options: argparse.Namespace) -> int:
    """Rewrite each file; return 1 if one could not be, or something is left to be changed by hand."""
    if find_spec("libcst") is None:
        raise ArgumentError("migrate: rewriting programs needs the package libcst, which is not installed",
                            hint="pip install tedsl[migrate], or import tedsl.compat.v06 as tvm")
    return 1 if [file for file in options.files if not _is_whole(file, options.diff)] else 0


def _is_whole(file: str, diff: bool) -> bool:
    """Rewrites a file, or prints what would change; whether nothing is left. A file that cannot be rewritten is reported."""
    from tedsl.compat.migrate import migrate_file

    try:
        made = migrate_file(file)
        if made.is_changed and not diff:
            _write(made.path, made.after)
    except ArgumentError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return False
    if diff:
        print(made.diff(), end="")
    else:
        print(f"{made.path}: {'rewritten' if made.is_changed else 'nothing to change'}")
    for note in made.notes:
        print(f"{made.path}: {note}")
    return not made.notes


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"migrate: {path} cannot be written: {error}") from None
