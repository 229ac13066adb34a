"""The commands of `python -m tedsl` in one table, and the parser made of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from tedsl.errors import TedslError
from tedsl.record import record
from tedsl.version import VERSION

DESCRIPTION = "tedsl: tensor expressions, schedules and a compiler to machine code, in Python."


@record
class Command:
    """A sub-command. Its module, imported only when the command is asked for, has `configure(parser)` and `run(options)`."""

    help: str
    module: str


COMMANDS = {
    "info": Command("versions, target, vector width, threads and environment variables", "tedsl.shell.info"),
    "machine": Command("measure the processor that schedules choose their tiles by", "tedsl.shell.machine"),
    "lower": Command("print the loops of a schedule in a Python file", "tedsl.shell.lower"),
    "trace": Command("show what each directive and each pass changed", "tedsl.shell.trace"),
    "wheel": Command("make a wheel of kernels that needs no tedsl", "tedsl.shell.wheel"),
    "cache": Command("show or clear the compiled kernels that are kept on disk", "tedsl.shell.cache"),
    "flops": Command("what a network in a file of ONNX has to do: operations, parameters, bytes", "tedsl.shell.flops"),
    "migrate": Command("rewrite programs of TVM for tedsl: imports, and spellings of older versions", "tedsl.shell.migrate"),
    "tune": Command("search for the best schedule of a template in a Python file", "tedsl.shell.tune"),
    "fuzz": Command("run random programs under random schedules", "tedsl.fuzz.command"),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; return the exit status: 0, 1 for a failure, 2 for wrong arguments."""
    options = _parser(arguments).parse_args(arguments)
    try:
        return int(options.run(options))
    except TedslError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stdout = None
        return 0


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands; the arguments of one are declared only if `arguments` name it."""
    parser = argparse.ArgumentParser(prog="python -m tedsl", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tedsl {VERSION}")
    choices = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        chosen = choices.add_parser(name, help=command.help, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in arguments:
            module = import_module(command.module)
            chosen.description = module.__doc__
            chosen.set_defaults(run=module.run)
            module.configure(chosen)
    return parser
