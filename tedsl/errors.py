"""Every error that tedsl raises. A message says what was asked, where, why not, what is there now, what to try.

Mistakes of users are `TedslError`s; they also derive from the built-in class that fits, so that
`except ValueError` written for another library keeps working. `InternalError` is a bug of ours.

The traceback of a `TedslError` shows the lines of the user's program: `entry`, on the functions that programs call, takes the
frames of tedsl out of it, and notebooks show it so in any case. The environment variable TEDSL_TRACEBACK=full keeps them all.
An `InternalError` and every other exception keeps its frames.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
OURS = tuple(str(Path(__file__).parents[1] / package) + "/" for package in ("tedsl", "topi"))  # how the files of tedsl begin


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """`function` as programs call it: what it refuses has a traceback without the frames of tedsl that it went through."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # pytest and IPython leave this frame out
        try:
            return function(*args, **kwargs)
        except TedslError as refusal:
            raise shortened(refusal) from refusal.__cause__  # TEDSL_TRACEBACK=full shows the frames inside of tedsl

    return call


def shortened(refusal: TedslError) -> TedslError:
    """`refusal` and what caused it, with tracebacks of the frames outside of tedsl alone unless TEDSL_TRACEBACK=full."""
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
    """The frames of `trace` that run files of others."""
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
        """What IPython shows: its own form, without the frames of tedsl also where no `entry` stood between."""
        shell: Any = sys.modules["IPython"].get_ipython()
        formatter = shell.InteractiveTB
        shortened(self)
        return list(formatter.structured_traceback(type(self), self, self.__traceback__, tb_offset=formatter.tb_offset))


class DTypeError(TedslError, TypeError):
    """A value of a dtype that does not fit where it is used."""


class ExpressionError(TedslError, ValueError):
    """An expression that Python allows to be written and that cannot mean what it says."""


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

    about: what of the schedule it speaks of, or a loop: who knows the journal finds the directive behind it.
    """

    def __init__(self, problem: str, *, hint: str = "", about: object = None) -> None:
        TedslError.__init__(self, problem, hint=hint)
        self.about = about

    def blame(self, directive: str) -> None:
        """Adds the directive that it comes from, with its line, to the message."""
        TedslError.__init__(self, f"{self.problem}\n  from: {directive}", hint=self.hint)


class AccessError(TedslError, IndexError):
    """What `build(..., checked=True)` found while a kernel ran: an access outside of its tensor, a read of what was never
    written, iterations of a parallel loop that meet."""


class ArgumentError(TedslError, ValueError):
    """An argument of a public function or of a kernel that does not fit."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong type, or too few or too many of them."""


class OptionError(TedslError, AttributeError):
    """An unknown name: an option, a function of a module, an attribute. The message lists the known ones."""


class ModuleError(TedslError, ValueError):
    """A file of compiled functions that cannot be written or loaded: damaged, foreign, newer, or for another machine."""


class AbsentModuleError(TedslError, ImportError):
    """A module of TVM that tedsl does not have."""


def type_in_words(value: object) -> str:
    """Returns the name of the type of `value` after its article: "an int", "a Tensor", "an IRModule"."""
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    """Returns the name of a type after its indefinite article, which names that begin with an abbreviation choose as it is
    spoken: "an NDArray", "a GPU"."""
    abbreviated = name[:2].isupper() or name.startswith("nd")
    vowel = name[:1].upper() in ("AEFHILMNORSX" if abbreviated else "AEIO")
    return f"an {name}" if vowel else f"a {name}"


def missing_attribute(owner: str, name: str, known: Iterable[str], instead: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that a value does not have; of a private name, Python's.

    owner: what the value is, "a stage". known: its attributes. instead: what to write for names that belong elsewhere.
    """
    from difflib import get_close_matches  # few programs ask

    if name.startswith("_"):
        return AttributeError(name)
    public = [one for one in known if not one.startswith("_")]
    if name in instead:
        return OptionError(f"{owner} has no {name}", hint=f"did you mean {instead[name]}?")
    near = get_close_matches(name, [*public, *instead])
    hint = f"did you mean {' or '.join(instead.get(one, one) for one in near)}?" if near else f"it has {', '.join(public)}"
    return OptionError(f"{owner} has no {name}", hint=hint)


class InternalError(RuntimeError):
    """A broken invariant inside tedsl: please report it. No input should lead here."""
