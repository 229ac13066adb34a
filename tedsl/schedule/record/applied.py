"""How a directive is applied: its method says what it does; the decorator checks the call, records it, and undoes a failure.

    @directive
    def vectorize(self, var: IterVar) -> None:
        vectorize(self.state, var)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tedsl.errors import arguments_that_misfit, entry
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.term import Term, text_of
from tedsl.schedule.record.writing import Writer
from tedsl.schedule.state import ScheduleState, StageState


@dataclass(frozen=True)
class Owner:
    """The object that a directive is called on: its term in the language of journals, its stage, if it has one, and the
    schedule.
    """

    term: Term
    schedule: ScheduleState
    stage: StageState | None = None


class Directed(Protocol):
    """A handle that has directives: a schedule, a stage, a version, a group of stages."""

    def _owner(self, directive: str, args: Sequence[Any]) -> Owner:
        """This handle as the owner of `directive`; refuses a handle that undo removed, or that has no such directive."""


H = TypeVar("H", bound=Directed)
P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[H, P], R]


@overload
def directive(method: Callable[Concatenate[H, P], R], /) -> Callable[Concatenate[H, P], R]: ...
@overload
def directive(*, name: str = "", by_name: Sequence[str] = ()) \
        -> Callable[[Callable[Concatenate[H, P], R]], Callable[Concatenate[H, P], R]]: ...
def directive(method: Any = None, /, *, name: str = "", by_name: Sequence[str] = ()) -> Any:
    """Turns a method into a directive: each call is checked and recorded; when it fails, the schedule is left unchanged.

    The record holds the name, the arguments that differ from their defaults, and the results: the loops, tensors, versions or
    groups that the method returns. name: of the directive, if it is not that of the method. by_name: the arguments that the
    journal writes by name, in addition to keyword-only ones.
    """
    if method is None:
        return functools.partial(_directive, name=name, by_name=by_name)
    return _directive(method, name=name, by_name=by_name)


def _directive(method: Callable[Concatenate[H, P], R], *, name: str, by_name: Sequence[str]) -> Callable[Concatenate[H, P], R]:
    signature = inspect.signature(method)
    name = name or method.__name__

    @functools.wraps(method)
    def apply(self: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
        owner = self._owner(name, args)
        recorder = owner.schedule.recorder
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise arguments_that_misfit(f"{text_of(owner.term)}.{name}", signature, (self, *args), kwargs) or error from None
        positional, named = _arguments(given, owner, name, by_name)
        try:
            result = method(self, *args, **kwargs)
            made = list(_made(result)) if result is not self else []
            stage = owner.stage.name if owner.stage is not None else ""
            several = bool(made) and isinstance(result, (list, tuple))
            recorder.record(owner.schedule, Directive(name, stage, owner.term, positional, named, several=several), made)
        except BaseException:
            recorder.return_to(owner.schedule)
            raise
        return result

    return entry(apply)


def _arguments(given: inspect.BoundArguments, owner: Owner, name: str, by_name: Sequence[str]) \
        -> tuple[tuple[Term, ...], tuple[tuple[str, Term], ...]]:
    """The arguments of a call in the language of journals: those that are written by position, and by name."""
    writer = Writer(owner.schedule, name, [owner.stage] if owner.stage is not None else [])
    positional: list[Term] = []
    named: list[tuple[str, Term]] = []
    for key, value in list(given.arguments.items())[1:]:
        parameter = given.signature.parameters[key]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += map(writer.term, value)
            continue
        term = writer.term(value)
        if type(term) is type(parameter.default) and term == parameter.default:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY or key in by_name:
            named.append((key, term))
        else:
            positional.append(term)
    return tuple(positional), tuple(named)


def _made(result: Any) -> Iterator[Any]:
    """The objects in the result of a directive that the journal names; for a handle, its state."""
    for one in result if isinstance(result, (list, tuple)) else () if result is None else (result,):
        yield getattr(one, "state", one)
