"""Schedules and functions found in a user's Python file, by `FILE` or `FILE:name`."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import runpy
import sys
from pathlib import Path
from types import FunctionType
from typing import Any, TypeGuard

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import variables
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import PlaceholderOp
from tedsl.record import record
from tedsl.runtime.module import Module
from tedsl.schedule.handles import Schedule

PLACE = """FILE is run as a module (`if __name__ == "__main__"` does not hold). NAME is one of its functions, which is called
without arguments, or one of its variables; it gives a schedule, (schedule, args), a PrimFunc or an IRModule. Without
NAME the file leaves one of these in exactly one variable. A schedule without args takes its sizes, its inputs, its outputs."""


@record
class Program:
    """An input of `lower`: a schedule with its arguments, or functions (args: None). name: its variable in the file."""

    name: str
    inputs: Schedule | PrimFunc | IRModule
    args: list[Any] | None


def add_place(parser: argparse.ArgumentParser) -> None:
    """Declare the argument FILE[:NAME] and explain it below the help text."""
    parser.add_argument("place", metavar="FILE[:NAME]", help="a Python file, and the function or variable in it")
    parser.epilog = PLACE


def load(place: str) -> Program:
    """The program at `FILE` or `FILE:name`. Raises ArgumentError where there is none, or more than one without a name.

    What the file prints goes to standard error, so that standard output holds the loops alone.
    """
    path, name, found = _variables(place)
    with contextlib.redirect_stdout(sys.stderr):
        name = name or _only_program(path, found)
        value = _named(path, name, found)
        return _program(name, _called(value, f"{path}:{name}") if _is_function(value) else value, path)


def load_value(place: str) -> Any:
    """The function or variable at `FILE:name`, as it is. Raises ArgumentError where there is none."""
    path, name, found = _variables(place)
    if not name:
        raise ArgumentError(f"{path} is a file, and a function in it is needed", hint=_candidates(path, found))
    return _named(path, name, found)


def _variables(place: str) -> tuple[Path, str, dict[str, Any]]:
    """The path and the name that a place consists of, and the variables of the file after it has run."""
    path, name = _split(place)
    sys.path.insert(0, str(path.resolve().parent))  # as `python FILE` does: the file imports its neighbours
    with contextlib.redirect_stdout(sys.stderr):
        return path, name, _run(path)


def _named(path: Path, name: str, found: dict[str, Any]) -> Any:
    """The variable `name` of a file, or an attribute of one, as in "Class.method"."""
    first, *inner = name.split(".")
    if first not in found:
        raise ArgumentError(f"{path} has no function or variable {first!r}", hint=_candidates(path, found))
    value = found[first]
    for at, attribute in enumerate(inner):
        if not hasattr(value, attribute):
            raise ArgumentError(f"{path}: {'.'.join([first, *inner[:at]])} has no attribute {attribute!r}",
                                hint=_candidates(path, found))
        value = getattr(value, attribute)
    return value


def _run(path: Path) -> dict[str, Any]:
    """The variables of the file at `path` after it has run. Raises ArgumentError if it is not Python, or exits."""
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"{path} is not a Python file: {error}", hint="write FILE.py or FILE.py:name") from None
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except SystemExit as end:
        said = "" if end.code is None else repr(end.code)
        raise ArgumentError(f"{path} calls exit({said}) when it is run, so that nothing in it can be taken",
                            hint='put what the program does below: if __name__ == "__main__":') from None


def _called(function: FunctionType, place: str) -> object:
    """The result of `function`, called without arguments. Raises ArgumentTypeError if it requires some."""
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise ArgumentTypeError(f"{place} is called without arguments: {error}",
                                hint="give its parameters defaults, or name a function that takes none") from None
    return function()


def _split(place: str) -> tuple[Path, str]:
    file, colon, name = place.rpartition(":")
    path = Path(place) if not colon or Path(place).exists() else Path(file)
    if colon and not name and path != Path(place):
        raise ArgumentError(f"{place!r} names nothing behind the colon", hint="write FILE.py or FILE.py:name")
    if not path.is_file():
        raise ArgumentError(f"there is no file {str(path)!r}", hint="write FILE.py or FILE.py:name")
    return path, "" if str(path) == place else name


def _only_program(path: Path, names: dict[str, Any]) -> str:
    """The name of the one schedule or function of loops among the variables of a file."""
    programs = [name for name, value in names.items() if isinstance(value, (Schedule, PrimFunc, IRModule))]
    if len(programs) != 1:
        count = "no variable that holds" if not programs else f"several variables ({', '.join(programs)}) that hold"
        raise ArgumentError(f"{path} has {count} a schedule, a PrimFunc or an IRModule", hint=_candidates(path, names))
    return programs[0]


def _candidates(path: Path, names: dict[str, Any]) -> str:
    """The hint that lists the names that may follow the file's name."""
    own = [name for name, value in names.items() if not name.startswith("_")
           and (isinstance(value, (Schedule, PrimFunc, IRModule)) or (_is_function(value) and value.__module__ == path.stem))]
    return f"write {path}:NAME" + (f", where NAME is one of {', '.join(own)}" if own else "")


def _is_function(value: object) -> TypeGuard[FunctionType]:
    return isinstance(value, FunctionType)


def _program(name: str, value: object, path: Path) -> Program:
    match value:
        case Schedule():
            return Program(name, value, arguments_of(value))
        case (Schedule() as schedule, list() | tuple() as args):
            return Program(name, schedule, list(args))
        case PrimFunc() | IRModule():
            return Program(name, value, None)
    built = "; what is built already writes files itself: module.export_library" if isinstance(value, Module) else ""
    raise ArgumentTypeError(f"{path}:{name} gives {type_in_words(value)}, not a schedule or loops",
                            hint=f"return s, [A, B, C] from the function, or a PrimFunc or an IRModule{built}")


def arguments_of(schedule: Schedule) -> list[Any]:
    """Arguments that make `schedule` a whole function: sizes that no input gives, then inputs, then outputs."""
    operations = producers_first(schedule.outputs)
    inputs = [op.output(0) for op in operations if isinstance(op, PlaceholderOp)]
    outputs = [op.output(i) for op in schedule.outputs for i in range(op.num_outputs)]
    in_shapes = {extent for tensor in inputs for extent in tensor.shape}  # a call takes these from the arrays
    return [*_other_sizes(operations, in_shapes), *inputs, *outputs]


def _other_sizes(operations: list[Any], known: set[Any]) -> list[Any]:
    """Variables of the formulas that no shape of an input gives and no axis binds."""
    axes = {axis.var for op in operations for name in ("axis", "reduce_axis") for axis in getattr(op, name, ())
            if isinstance(axis, IterVar)}
    used: dict[Any, None] = {}
    for op in operations:
        for root in (*getattr(op, "body", ()), *op.shape_of(0)):
            used.update(dict.fromkeys(variables(root)))
    return [var for var in used if var not in known and var not in axes]
