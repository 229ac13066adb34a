"""The public names of TVM v0.8 as data (`v08/*.txt`), and what each of them is here.

A file has sections, `[te.Stage]` for the members of `tvm.te.Stage`, with a line for each name: `name(parameters)` for what is
called, `class Name(parameters)` or `class Name` for classes, `name` for all else. Behind a ` | ` stands what is not as there:

    differs: words        the name exists, its parameters are others
    not planned: words    the name does not exist; words say why, or what to use

A note behind the title of a section holds for all its names. `span` is no parameter here: it is left out of the comparison.
`since.txt` says in which release each name came to be.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tedsl
from tedsl.absent import StandIn
from tedsl.errors import TedslError
from tests.stand_ins import without_stand_ins

FILES = Path(__file__).parent / "v08"
NOTES = ("differs", "not planned")
NEEDED = object()  # in place of the default of a parameter that has none


@dataclasses.dataclass(frozen=True)
class Name:
    """A public name of TVM: where it is (a path of attributes from the root), its parameters as text, and what differs."""

    place: str
    name: str
    is_class: bool
    parameters: str | None
    note: str = ""
    words: str = ""

    @property
    def path(self) -> str:
        return f"{self.place}.{self.name}".lstrip(".")

    def __str__(self) -> str:
        return self.path


@cache
def names() -> tuple[Name, ...]:
    """All names, by file and line."""
    return tuple(name for file in sorted(FILES.glob("*.txt")) for name in read(file.read_text()))


def read(text: str) -> Iterator[Name]:
    """The names of one file."""
    place = shared = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        said, _, note = line.partition(" | ")
        if said.startswith("["):
            place, shared = said[1:-1], note
            continue
        is_class, called = said.startswith("class "), said.removeprefix("class ").strip()
        name, bracket, parameters = called.partition("(")
        kind, _, words = (note or shared).partition(": ")
        if kind and (kind not in NOTES or not words):
            raise ValueError(f"{line!r}: a note is one of {NOTES}, and words")
        yield Name(place, name.strip(), is_class, parameters[:-1] if bracket else None, kind, words)


OLDEST = "0.6"


@cache
def releases() -> dict[str, str]:
    """What `since.txt` lists: names, and places with `.*`, with their releases."""
    listed: dict[str, str] = {}
    release = ""
    for line in FILES.with_name("since.txt").read_text().splitlines():
        if line.endswith(":"):
            release = line[:-1]
        elif line and not line.startswith("#"):
            for path in line.split():
                if path in listed:
                    raise ValueError(f"{path} is listed twice, under {listed[path]} and {release}")
                listed[path] = release
    return listed


def since(name: Name) -> str:
    """The first of the releases 0.6, 0.7 and 0.8 that has this name."""
    return releases().get(name.path) or releases().get(f"{name.place}.*") or OLDEST


@cache
def beyond() -> dict[str, dict[str, list[str]]]:
    """What `beyond.txt` lists: of each kind, "later" and "own", names by their place."""
    listed: dict[str, dict[str, list[str]]] = {}
    kind = place = ""
    for line in FILES.with_name("beyond.txt").read_text().splitlines():
        if line.endswith(":") and " " not in line:
            kind = line[:-1]
        elif line and not line.startswith("#"):
            if line.startswith("["):
                place, _, line = line[1:].partition("] ")
            listed.setdefault(kind, {}).setdefault(place, []).extend(line.split())
    return listed


def find(path: str) -> Any:
    """What a path of names is here: a module where one can be imported, else an attribute; AttributeError if it is nothing."""
    found: Any = tedsl
    walked = "tedsl"
    for part in filter(None, path.split(".")):
        walked += "." + part
        try:
            found = module(walked)
        except ImportError:
            found = attribute(found, part)
    return found


def module(path: str) -> Any:
    """The module at a path; ImportError where there is none, or a stand-in."""
    with without_stand_ins():
        found = importlib.import_module(path)
        if isinstance(found, StandIn):
            raise ImportError(path)
        return found


def attribute(owner: Any, name: str) -> Any:
    """An attribute; AttributeError where there is none, whatever the error of asking for it is."""
    try:
        return getattr(owner, name)
    except TedslError as refusal:
        raise AttributeError(str(refusal)) from None


def difference(name: Name) -> str:
    """In which way a name that exists is not as in TVM, "" if in none. AttributeError if it does not exist."""
    place = find(name.place)
    try:
        found = attribute(place, name.name)
    except AttributeError:
        if name.parameters is None and is_field(place, name):
            return ""
        if hasattr(place, name.name) or name.is_class or not exists_as_module(name.path):
            raise
        found = find(name.path)
    if name.is_class and not isinstance(found, type):
        return "is no class"
    if name.parameters is None:
        return ""
    if not callable(found):
        return "cannot be called"
    return differing_parameters(name.parameters, found, in_class=isinstance(place, type))


def exists_as_module(path: str) -> bool:
    try:
        module(f"tedsl.{path}")
    except ImportError:
        return False
    return True


def is_field(place: Any, name: Name) -> bool:
    """Whether objects of a class have this attribute, by annotations and slots of the class, or in a sample."""
    if not isinstance(place, type):
        return False
    declared = {field for base in place.__mro__ for field in (*inspect.get_annotations(base), *getattr(base, "__slots__", ()))}
    return name.name in declared or (name.place in SAMPLES and hasattr(SAMPLES[name.place](), name.name))


# Objects of classes whose attributes are made when they are.
SAMPLES: dict[str, Callable[[], Any]] = {
    "target.Target": lambda: tedsl.target.Target("llvm"),
    "arith.IntervalSet": lambda: tedsl.arith.IntervalSet(0, 3),
    "arith.IntGroupBounds": lambda: tedsl.arith.IntGroupBounds(1, [0], [], [3]),
}


def differing_parameters(there: str, found: Any, in_class: bool) -> str:
    """In which way the parameters of `found` are not those of TVM, which `there` lists."""
    try:
        here = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return "has no signature"
    if here and in_class and here[0].name in ("self", "cls", "stage", "schedule"):
        here = here[1:]
    listed = list(parameters(there))
    rest_here = next((one for one in here if one.kind is one.VAR_POSITIONAL), None)
    positions = [one for one in here if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    keywords = {one.name: one for one in here if one.kind is not one.VAR_POSITIONAL}
    open_ended = any(one.kind is one.VAR_KEYWORD for one in here)
    for at, (name, default, kind) in enumerate(listed):
        if kind is inspect.Parameter.VAR_POSITIONAL:
            if rest_here is None:
                return f"does not take *{name}"
            continue
        if kind is inspect.Parameter.VAR_KEYWORD:
            if not open_ended:
                return f"does not take **{name}"
            continue
        own = keywords.get(name)
        if own is None:
            return f"has no parameter {name}"
        if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and (at >= len(positions) or positions[at] is not own):
            return f"has {name} at another place"
        if default is not NEEDED and not same_default(own.default, default):
            return f"has {own.default!r} as the default of {name}, not {default!r}"
    known = {name for name, _, _ in listed}
    needed = [one.name for one in here if one.default is one.empty and one.name not in known
              and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return f"needs {', '.join(needed)} too" if needed else ""


def same_default(here: Any, there: Any) -> bool:
    """Whether two defaults mean the same; TVM's None for a dict or a list is an empty one here."""
    return repr(here) == repr(there) or (there is None and here is not None and hasattr(here, "__len__") and len(here) == 0)


@cache
def parameters(text: str) -> tuple[tuple[str, Any, Any], ...]:
    """The parameters of a list of them as text: name, default, kind. `cpu(0)` as a default is None here: the processor."""
    definition = ast.parse(f"def f({text.replace('cpu(0)', 'None')}): pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments, kinds = definition.args, inspect.Parameter
    found: list[tuple[str, Any, Any]] = []
    without = len(arguments.args) - len(arguments.defaults)
    for at, argument in enumerate(arguments.args):
        default = NEEDED if at < without else ast.literal_eval(arguments.defaults[at - without])
        found.append((argument.arg, default, kinds.POSITIONAL_OR_KEYWORD))
    if arguments.vararg:
        found.append((arguments.vararg.arg, NEEDED, kinds.VAR_POSITIONAL))
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((argument.arg, NEEDED if value is None else ast.literal_eval(value), kinds.KEYWORD_ONLY))
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, NEEDED, kinds.VAR_KEYWORD))
    return tuple(one for one in found if one[0] != "span")
