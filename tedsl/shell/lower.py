"""python -m tedsl lower FILE[:NAME]: print the loops of a schedule in a Python file."""

from __future__ import annotations

import argparse

from tedsl.driver import lower
from tedsl.shell.programs import add_place, load


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_place(parser)
    parser.add_argument("--full", action="store_true", help="partition loops as `build` does; without it the text is shorter")


def run(options: argparse.Namespace) -> int:
    """Print the loops of the program at `options.place`."""
    program = load(options.place)
    print(lower(program.inputs, program.args, simple_mode=not options.full))
    return 0
