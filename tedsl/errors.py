"""Every error that tedsl raises. A message says what was requested, where, why it is not possible, what the present state is,
and what to try.

Mistakes of users are `TedslError`s; they also derive from the built-in class that fits, so that
`except ValueError` written for another library keeps working. `InternalError` is a bug of tedsl.

The traceback of a `TedslError` shows the lines of the user's program: `entry`, on the functions that programs call, removes the
frames of tedsl from it, and notebooks do so in any case. The environment variable TEDSL_TRACEBACK=full keeps them all.
An `InternalError` and every other exception keeps its frames.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
R = TypeVar("R")
PACKAGES = ("tedsl", "topi")
NOWHERE = f"{__file__}/nowhere"  # no folder: where Python finds what is not there, see `tedsl/absent.py`
_FOLDER = os.path.dirname(os.path.dirname(__file__))
OURS = tuple(f"{_FOLDER}/{package}/" for package in PACKAGES)  # how the files of tedsl begin


def entry(function: Callable[P, R], name: str = "") -> Callable[P, R]:
    """Decorator of functions that programs call: tracebacks of the errors that they raise lack the frames of tedsl."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # pytest and IPython leave this frame out
        try:
            return function(*args, **kwargs)
        except TedslError as refusal:
            raise shortened(refusal) from refusal.__cause__  # TEDSL_TRACEBACK=full shows the frames inside of tedsl
        except TypeError:
            from inspect import signature  # few programs ask

            misfit = arguments_that_misfit(getattr(call, _CALLED), signature(function), args, kwargs)
            if misfit is None or sys._getframe(1).f_code.co_filename.startswith(OURS):  # not by the call, or by a bug of ours
                raise
            raise misfit from None

    setattr(call, _CALLED, name or function.__qualname__.removesuffix(".__init__"))
    return call


_CALLED = "called by programs"  # the attribute of an entry that says its name


def entries(names: dict[str, Any], *, instead: Mapping[str, str] | None = None, later: Mapping[str, str] | None = None,
            absent: Mapping[str, str] | None = None) -> None:
    """Makes entries of what a module of names has: of its functions, and of the public methods of its classes.

    names: the variables of the module; those in `__all__`, or without it its functions. instead: what to write for names that
    programs look for there and that it does not have; they and others are refused with names that are near. later: names that
    few programs use, each with the `module` or `module:name` that is loaded when it is first asked for. absent: names of TVM
    that nothing here is like, each with the sentence that says what to do; where they are imported stand-ins take their places.
    """
    module = str(names["__name__"])
    listed = names.get("__all__") or [name for name, value in names.items() if not name.startswith("_")
                                      and type(value) is FunctionType and value.__module__.partition(".")[0] in PACKAGES]
    for name in listed:
        if later is None or name not in later:
            own = getattr(names[name], "__name__", name)
            names[name] = public(names[name], module, own if own in names else name)

    def missing(name: str) -> Any:
        if later is None or name not in later:
            raise missing_name(module, name, listed, instead or {}, absent or {})
        home, _, own = later[name].partition(":")
        value = import_module(home)
        names[name] = public(getattr(value, own), module, name) if own else value
        return names[name]

    names.setdefault("__getattr__", missing)
    if absent:
        names["__absent__"] = absent
        names.setdefault("__path__", []).append(NOWHERE)


def public(value: Any, module: str, name: str) -> Any:
    """Returns `value`, which programs find as `name` in `module`, so that calls of it are entries; what is neither a function
    nor a class, as it is. The methods of a class are replaced where they are.
    """
    called = f"{module.removeprefix('tedsl.')}.{name}"  # of several names, the shortest path
    if type(value) is FunctionType:
        value = value if hasattr(value, _CALLED) else _entry_of(value)
        known: str = getattr(value, _CALLED)
        if "." not in known or called.count(".") < known.count("."):
            setattr(value, _CALLED, called)
    elif isinstance(value, type) and not issubclass(value, BaseException):
        for cls in value.__mro__:
            if cls.__module__.partition(".")[0] in PACKAGES:
                with_entries(cls)
    return value


@functools.cache
def _entry_of(function: FunctionType) -> Any:
    """Returns the entry of a function of a module; it stands there instead of the function, where pickle looks for it."""
    made = entry(function)
    home = sys.modules[function.__module__]
    if getattr(home, function.__name__, None) is function:
        setattr(home, function.__name__, made)
    return made


def with_entries(cls: type[R]) -> type[R]:
    """Returns the class with its public methods replaced by entries, but for those that it lists in `checked_methods`."""
    checked = getattr(cls, "checked_methods", ())
    for name, value in list(vars(cls).items()):
        function = getattr(value, "__func__", value)
        public_name = not name.startswith("_") or name in ("__init__", "__call__")
        if type(function) is FunctionType and public_name and name not in checked and not hasattr(function, _CALLED):
            made = entry(function)
            setattr(cls, name, type(value)(made) if isinstance(value, (classmethod, staticmethod)) else made)
    return cls


def arguments_that_misfit(called: str, signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) \
        -> ArgumentTypeError | None:
    """Returns the error for arguments that `signature` does not take; None if it takes them.

    called: what is called, in the words of programs. A first parameter self or cls is not one of programs.
    """
    from inspect import Parameter

    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        parameters, args = parameters[1:], args[1:]
    shown = signature.replace(parameters=[one.replace(annotation=Parameter.empty) for one in parameters],
                              return_annotation=Parameter.empty)
    hint = f"it is called as {called}{shown}"
    in_order = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    by_name = [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
    kinds = {one.kind for one in parameters}
    given = {*kwargs, *(one.name for one in in_order[:len(args)])}
    missing = [one.name for one in parameters if one.default is one.empty and one.name not in given
               and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    unknown = [name for name in kwargs if name not in by_name and Parameter.VAR_KEYWORD not in kinds]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], by_name)
        return ArgumentTypeError(f"{called}: there is no argument named {unknown[0]!r}",
                                 hint=f"did you mean {' or '.join(near)}? {hint}" if near else hint)
    if len(args) > len(in_order) and Parameter.VAR_POSITIONAL not in kinds:
        most = f"at most {len(in_order)} argument{'s' * (len(in_order) != 1)}" if in_order else "no arguments"
        return ArgumentTypeError(f"{called} takes {most}{' by position' * bool(in_order)}, and got {len(args)}", hint=hint)
    twice = [one.name for one in in_order[:len(args)] if one.name in kwargs]
    if twice:
        return ArgumentTypeError(f"{called}: the argument {twice[0]!r} is given twice, by position and by name", hint=hint)
    if missing:
        *first, last = map(repr, missing)
        subject = f"the arguments {', '.join(first)} and {last} are" if first else f"the argument {last} is"
        return ArgumentTypeError(f"{called}: {subject} missing", hint=hint)
    return None


def shortened(refusal: TedslError) -> TedslError:
    """`refusal` and its causes, with tracebacks that contain no frames of tedsl, unless TEDSL_TRACEBACK=full."""
    if os.environ.get("TEDSL_TRACEBACK", "").strip().lower() == "full":
        return refusal
    error: BaseException | None = refusal
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # an error may be its own cause, directly or through others
        seen.add(id(error))
        error.__traceback__ = _outside(error.__traceback__)
        error = error.__cause__
    return refusal


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of tedsl."""
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OURS):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


class TedslError(RuntimeError):
    """Base of all errors addressed to the user; `hint` is the next thing to try."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        RuntimeError.__init__(self, f"{problem}\n  hint: {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint

    def _render_traceback_(self) -> list[str]:
        """The traceback as IPython shows it, without the frames of tedsl, also where the error did not pass through `entry`."""
        shell: Any = sys.modules["IPython"].get_ipython()
        formatter = shell.InteractiveTB
        shortened(self)
        return list(formatter.structured_traceback(type(self), self, self.__traceback__, tb_offset=formatter.tb_offset))


class DTypeError(TedslError, TypeError):
    """A value whose dtype does not fit where it is used."""


class ExpressionError(TedslError, ValueError):
    """An expression that is legal Python but has no meaning in the language."""


class ShapeError(TedslError, ValueError):
    """Shapes, ranks or indices that do not fit together."""


class ScheduleError(TedslError, ValueError):
    """A scheduling directive that cannot be applied. The schedule is unchanged."""

    def __init__(self, directive: str, stage: str, problem: str, *, loops: Sequence[str], hint: str = "") -> None:
        now = ", ".join(loops) if loops else "(none)"
        TedslError.__init__(self, f"{directive} on stage {stage}: {problem}\n  loops now: {now}", hint=hint)
        self.directive = directive
        self.stage = stage
        self.reason = problem
        self.loops = tuple(loops)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker of multiprocessing sends it: made again from its text, not by __init__, which takes other arguments.
        return RuntimeError.__new__, (type(self), *self.args), self.__dict__


class LoweringError(TedslError):
    """The program is well-formed but cannot be turned into loops or machine code.

    about: the part of the schedule, or the loop, that it refers to, by which the journal finds the directive behind it.
    """

    def __init__(self, problem: str, *, hint: str = "", about: object = None) -> None:
        TedslError.__init__(self, problem, hint=hint)
        self.about = about

    def blame(self, directive: str) -> None:
        """Adds the directive that caused it, with its line, to the message."""
        TedslError.__init__(self, f"{self.problem}\n  from: {directive}", hint=self.hint)


class AccessError(TedslError, IndexError):
    """An error that `build(..., checked=True)` found while a kernel ran: an access out of bounds, a read of an element that was
    never written, or iterations of a parallel loop that touch one element.
    """


class ArgumentError(TedslError, ValueError):
    """An argument of a public function or of a kernel that does not fit."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong type, or too few or too many of them."""


class AllocationError(ArgumentError, MemoryError):
    """An array that is larger than the memory there is."""


class OptionError(TedslError, AttributeError):
    """An unknown name: an option, a function of a module, an attribute. The message lists the known ones."""


class MissingFunctionError(OptionError, ValueError):
    """No function is registered under a name. A ValueError, as in TVM."""


class DifferenceError(TedslError, AssertionError, ValueError):
    """Two programs that should be structurally equal are not. The message names the first difference."""


class ModuleError(TedslError, ValueError):
    """A file of compiled functions that cannot be written or loaded: damaged, foreign, newer, or for another machine."""


class GraphError(TedslError, ValueError):
    """A network that cannot be built, rewritten or run as was asked. The message names the node or the line of the text."""


class PlanError(TedslError, ValueError):
    """A plan of actors that cannot run. The message names the task or the register."""


class ActorError(TedslError):
    """A run of actors that ended with a failure. The message names the actor and the batch; the cause is chained."""


class DeviceError(TedslError):
    """A device that is not there, or that did not do what it was asked."""


class UnknownNameError(TedslError, ImportError):
    """An unknown name that a program imports from a module. The message lists the known ones that are near."""


class AbsentModuleError(TedslError, ModuleNotFoundError):
    """A use of a module of TVM, or of a name of one, that tedsl does not have; such an import gives a stand-in."""


def type_in_words(value: object) -> str:
    """Returns the name of the type of `value` after its article: "an int", "a Tensor", "an IRModule"."""
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    """Returns the name of a type with its indefinite article, "a" or "an" as the name is pronounced: "an NDArray", "a GPU"."""
    abbreviated = name[:2].isupper() or name.startswith("nd")
    vowel = name[:1].upper() in ("AEFHILMNORSX" if abbreviated else "AEIO")
    return f"an {name}" if vowel else f"a {name}"


def missing_attribute(owner: str, name: str, holder: object, instead: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that a value does not have; for a private name, that of Python.

    owner: a description of the value, "a stage". holder: the value, or its class. instead: the text to write for names that
    belong elsewhere.
    """
    if name.startswith("_") or sys._getframe(2).f_code.co_filename.startswith(OURS):
        return AttributeError(name)
    return OptionError(f"{owner} has no {name}", hint=_other_name(name, dir(holder), instead))


def missing_name(module: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None,
                 absent: Mapping[str, str] | None = None) -> AttributeError | UnknownNameError:
    """The error for a name that a module does not have, in the frame of a program an ImportError where that imports it; see
    `missing_attribute`.
    """
    problem = f"module {module!r} has no attribute {name!r}"
    asks = sys._getframe(2)
    if name.startswith("_") or asked_by_import(2) or asks.f_code.co_filename.startswith(OURS):
        return AttributeError(problem)
    hint = (absent or {}).get(name) or _other_name(name, known, instead or {})
    if _imports_a_name(asks) and f"{module}.{name}" not in sys.modules:  # where it is, Python takes that
        return UnknownNameError(f"cannot import name {name!r} from {module!r}", hint=hint)
    return OptionError(problem, hint=hint)


def asked_by_import(above: int = 1) -> bool:
    """Whether the caller's caller is Python's import, which looks for a name before it looks for a module.

    above: how many calls lie between the one who asks and the function that wants to know.
    """
    return sys._getframe(above + 1).f_code.co_filename.startswith("<frozen importlib")


def _imports_a_name(frame: FrameType) -> bool:
    """Whether a frame asks for a name by `from module import name`, not for an attribute."""
    from opcode import opmap  # few programs ask

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


_LISTED = 40  # names that a hint lists
_NEAREST = 8  # names of more that it chooses


def did_you_mean(name: str, known: Iterable[str], all_of_them: str) -> str:
    """The hint for an unknown name: those that are near, or the words `all_of_them` before all."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names)
    return f"did you mean {' or '.join(near)}?" if near else f"{all_of_them} {', '.join(names)}"


def _other_name(name: str, known: Iterable[str], instead: Mapping[str, str]) -> str:
    """The hint for an unknown name: those that are near, or all."""
    from difflib import get_close_matches  # few programs ask

    if name in instead:
        return f"did you mean {instead[name]}?"
    public = [one for one in known if not one.startswith("_")]
    near = get_close_matches(name, [*public, *instead])
    if near:
        return f"did you mean {' or '.join(instead.get(one, one) for one in near)}?"
    if len(public) <= _LISTED:
        return f"it has {', '.join(public)}"
    nearest = get_close_matches(name, public, _NEAREST, 0.0)
    return f"of its {len(public)} names the nearest are {', '.join(nearest)}; dir() lists all"


class InternalError(RuntimeError):
    """A broken invariant inside tedsl: please report it. No input should cause one."""
