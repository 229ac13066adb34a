"""python -m tedsl trace FILE[:NAME]: show what each directive and each pass changed in the loops of a schedule.

In colour on a terminal; with --html as one page that needs no network, steps side by side.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tedsl.errors import ArgumentTypeError
from tedsl.schedule.handles import Schedule
from tedsl.shell.programs import add_place, load
from tedsl.tracing import trace


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_place(parser)
    parser.add_argument("--html", metavar="PAGE", type=Path, help="write the trace to this file as a page")
    parser.add_argument("--target", help='the target whose machine passes are shown, as "llvm -mcpu=core-avx2"; this machine')


def run(options: argparse.Namespace) -> int:
    """Print the trace of the schedule at `options.place`, or write its page."""
    program = load(options.place)
    if not isinstance(program.inputs, Schedule) or program.args is None:
        raise ArgumentTypeError(f"{options.place} holds loops already; a trace begins with a schedule",
                                hint=f"python -m tedsl lower {options.place} prints the loops")
    steps = trace(program.inputs, program.args, target=options.target)
    if options.html is None:
        steps.show()
    else:
        steps.save(options.html)
        print(f"{len(steps.steps)} steps written to {options.html}")
    return 0
