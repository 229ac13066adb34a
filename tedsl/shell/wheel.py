"""python -m tedsl wheel FILE[:NAME] ... -o kernels-1.0.whl: make a wheel of kernels that needs no tedsl where it is installed.

Each NAME becomes a function of the package. The wheel holds the kernels for several processors; the import of the package takes
the best that fits the machine.
"""

from __future__ import annotations

import argparse
from typing import Any

from tedsl.driver import build, lower
from tedsl.runtime.module import Module
from tedsl.runtime.modules.files import write_module
from tedsl.shell.programs import PLACE, Program, load

LEVELS = "x86-64-v2,x86-64-v3,x86-64-v4"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("places", metavar="FILE[:NAME]", nargs="+", help="a Python file, and the function or variable in it")
    parser.add_argument("-o", "--output", required=True, metavar="WHEEL", help="the file, as kernels-1.0.whl: name and version")
    parser.add_argument("--levels", default=LEVELS, metavar="CPU,...",
                        help=f"processors to compile for, as -mcpu names them; default {LEVELS}")
    parser.add_argument("--target", metavar="TARGET", help="one target instead of the levels")
    parser.epilog = PLACE


def run(options: argparse.Namespace) -> int:
    """Write the wheel of the programs at `options.places`, and print its path."""
    programs = [load(place) for place in options.places]
    targets = [options.target] if options.target else [f"llvm -mcpu={cpu}" for cpu in options.levels.split(",") if cpu]
    modules = [_module(programs, target) for target in targets]
    print(write_module(modules[0], options.output, "whl", {"levels": modules[1:]}))
    return 0


def _module(programs: list[Program], target: str) -> Module:
    functions: list[Any] = [program.inputs if program.args is None else
                            lower(program.inputs, program.args, name=program.name) for program in programs]
    return build(functions, target=target)
