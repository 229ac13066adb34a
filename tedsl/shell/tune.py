"""python -m tedsl tune FILE:NAME: search for the best schedule of a template.

Each trial is written to the file of --out as it ends, in the form that tedsl.autotvm.apply_history_best reads: a search that is
run again with the same file goes on where it has ended, also after Ctrl-C or a crash. --plot draws the search as SVG.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.shell.programs import load_value
from tedsl.tuning import tune
from tedsl.tuning.progress import without_end
from tedsl.tuning.result import picture_file


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("place", metavar="FILE:NAME", help="a Python file, and a task, a template or a function in it that "
                        "returns a schedule and its arguments")
    parser.add_argument("--args", default="[]", metavar="JSON", help='arguments of the function, as in \'[512, "float32"]\'')
    parser.add_argument("--seconds", type=float, default=60.0, help="the budget (60)")
    parser.add_argument("--trials", type=int, help="at most so many candidates")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which candidates are tried (0)")
    parser.add_argument("--target", help="the notation of a target; by default this machine")
    parser.add_argument("--out", metavar="FILE", help="trials are written here; those that it has are not repeated")
    parser.add_argument("--plot", metavar="FILE", help="draw the search, as SVG: a name that ends in .svg")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace) -> int:
    """Search, and print the best, its decisions, and what the best have in common."""
    picture = None if options.plot is None else picture_file("tune", options.plot)  # before the search, which takes long
    with without_end():
        found = tune(load_value(options.place), options.seconds, args=_arguments(options.args), target=options.target,
                     trials=options.trials, seed=options.seed, records=options.out, progress=not options.quiet)
    print(f"{found!r}\n{json.dumps(found.config)}\n{found.explain_best()}")
    if picture is not None:
        found.plot().save(picture)
    return 0


def _arguments(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise ArgumentError(f"tune: --args is a list of JSON, not {text!r}", hint="--args '[512, 512]'")
    return values
