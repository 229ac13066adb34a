"""python -m tedsl migrate FILE...: programs of TVM become programs of tedsl.

Imports and the spellings of older versions are rewritten, in scripts (.py) and notebooks (.ipynb); comments and layout stay.
A line is printed for each name that tedsl does not have. Needs libcst: pip install tedsl[migrate].
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from tedsl.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="scripts and notebooks, which are rewritten in place")
    parser.add_argument("--diff", action="store_true", help="print the changes and write nothing")


def run(options: argparse.Namespace) -> int:
    """Rewrite each file; return 1 if something is left to be changed by hand."""
    if find_spec("libcst") is None:
        raise ArgumentError("migrate: rewriting programs needs the package libcst, which is not installed",
                            hint="pip install tedsl[migrate], or import tedsl.compat.v06 as tvm")
    from tedsl.compat.migrate import migrate_file

    count = 0
    for made in map(migrate_file, options.files):
        if options.diff:
            print(made.diff(), end="")
        elif made.is_changed:
            made.path.write_text(made.after, encoding="utf-8")
            print(f"{made.path}: rewritten")
        else:
            print(f"{made.path}: nothing to change")
        for note in made.notes:
            print(f"{made.path}: {note}")
        count += len(made.notes)
    return 1 if count else 0
