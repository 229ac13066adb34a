"""python -m tedsl lower FILE[:NAME]: print the loops of a schedule in a Python file.

In the notation of docs/reading_the_loops.md that reads like Python, in colour on a terminal; with --tvm in TVM's.
"""

from __future__ import annotations

import argparse

from tedsl.driver import lower
from tedsl.shell.programs import add_place, load


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_place(parser)
    parser.add_argument("--tvm", action="store_true", help="write the loops as TVM does: primfn(...)")
    parser.add_argument("--full", action="store_true", help="partition loops as `build` does; without it the text is shorter")


def run(options: argparse.Namespace) -> int:
    """Print the loops of the program at `options.place`."""
    program = load(options.place)
    loops = lower(program.inputs, program.args, simple_mode=not options.full)
    if options.tvm:
        print(loops)
    else:
        loops.show()
    return 0
