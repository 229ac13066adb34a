"""How a directive is applied: its method says what it does; the decorator checks the call, records it, and undoes a failure.

    @directive
    def vectorize(self, var: IterVar) -> None:
        vectorize(self.state, var)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tedsl.errors import arguments_that_misfit, entry
from tedsl.record import record
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.term import Term, text_of
from tedsl.schedule.record.writing import Writer
from tedsl.schedule.state import ScheduleState, StageState


@record
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


@record
class Parameter:
    """A parameter of a directive. takes_rest: it takes all further arguments. by_name: the journal writes it by its name."""

    name: str
    default: Any
    takes_rest: bool
    by_name: bool


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
    parameters = tuple(signature.parameters.values())[1:]
    taken = [Parameter(one.name, one.default, takes_rest=one.kind is one.VAR_POSITIONAL,
                       by_name=one.kind is one.KEYWORD_ONLY or one.name in by_name) for one in parameters]
    in_order = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    names = {one.name for one in taken}
    required = {one.name for one in taken if one.default is inspect.Parameter.empty}
    plain = all(one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in parameters)
    name = name or method.__name__

    def bound(self: H, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Owner) -> dict[str, Any]:
        """The arguments of a call by the names of the parameters; refuses those that do not fit."""
        given = dict(zip(in_order, args)) | kwargs
        if plain and len(args) <= len(in_order) and len(given) == len(kwargs) + len(args) and given.keys() >= required \
                and given.keys() <= names:
            return given
        try:
            return signature.bind(self, *args, **kwargs).arguments
        except TypeError as error:
            raise arguments_that_misfit(f"{text_of(owner.term)}.{name}", signature, (self, *args), kwargs) or error from None

    @functools.wraps(method)
    def apply(self: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
        owner = self._owner(name, args)
        recorder = owner.schedule.recorder
        positional, named = _arguments(bound(self, args, kwargs, owner), taken, owner, name)
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


def _arguments(given: Mapping[str, Any], parameters: Sequence[Parameter], owner: Owner, name: str) \
        -> tuple[tuple[Term, ...], tuple[tuple[str, Term], ...]]:
    """The arguments `given` for `parameters` in the language of journals: those that are written by position, and by name."""
    writer = Writer(owner.schedule, name, [owner.stage] if owner.stage is not None else [])
    positional: list[Term] = []
    named: list[tuple[str, Term]] = []
    for parameter in parameters:
        if parameter.name not in given:
            continue
        value = given[parameter.name]
        if parameter.takes_rest:
            positional += map(writer.term, value)
            continue
        term = writer.term(value)
        if type(term) is type(parameter.default) and term == parameter.default:
            continue
        if parameter.by_name:
            named.append((parameter.name, term))
        else:
            positional.append(term)
    return tuple(positional), tuple(named)


def _made(result: Any) -> Iterator[Any]:
    """The objects in the result of a directive that the journal names; for a handle, its state."""
    for one in result if isinstance(result, (list, tuple)) else () if result is None else (result,):
        yield getattr(one, "state", one)
