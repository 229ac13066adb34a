"""Evaluation of the terms of a directive on a schedule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tedsl.errors import ArgumentError, TedslError
from tedsl.schedule.record.directive import Directive
from tedsl.schedule.record.grammar import refused
from tedsl.schedule.record.term import (
    FORMS,
    NUMBERS,
    SCHEDULE,
    Apply,
    Defined,
    Function,
    Meaningless,
    Name,
    Series,
    Term,
    is_sound,
    text_of,
)


class Evaluator:
    """Evaluates the terms of `directive`.

    schedule: the value of `s`. lookup: returns the value of any other name. define: called with each name that a term defines,
    and its value. own: the parameters of the function around the terms; they hide all other names.
    """

    def __init__(self, directive: Directive, schedule: Any, lookup: Callable[[str], Any], define: Callable[[str, Any], None],
                 own: Mapping[str, Any] | None = None) -> None:
        self.directive, self.schedule, self.lookup, self.define = directive, schedule, lookup, define
        self.own: Mapping[str, Any] = own or {}

    def __call__(self, term: Term) -> Any:
        match term:
            case Name(text=name) if name in self.own:
                return self.own[name]
            case Name(text=name):
                return self.schedule if term == SCHEDULE else self.lookup(name)
            case Series(parts=parts):
                values = [self(part) for part in parts]
                return values if term.is_list else tuple(values)
            case Defined(name=name, value=value):
                defined = self(value)
                self.define(name, defined)
                return defined
            case Function():
                return _Called(self, term)
            case Apply(op="item", parts=(Name(text="s"), key)) if "s" not in self.own:
                return self.schedule[self(key)]
            case Apply():
                return self._applied(term)
        return term

    def _applied(self, term: Apply) -> Any:
        form = FORMS[term.op]
        values = [self(part) for part in term.parts]
        for part, value in zip(term.parts, values):
            if form.numeric and not isinstance(value, NUMBERS):
                raise self.refused(part, "is not a number")
        try:
            result = form.meaning(*values)
        except TedslError:
            raise
        except Meaningless as problem:
            raise self.refused(term.parts[0], str(problem), problem.hint) from None
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise self.refused(term, f"has no value: {error}") from None
        if isinstance(result, int) and not is_sound(result):
            raise self.refused(term, "is an integer of more than 64 bits")
        return result

    def refused(self, term: Term, problem: str, hint: str = "") -> ArgumentError:
        return refused(self.directive.text, f"{text_of(term)} {problem}", hint)


class _Called:
    """A function of a journal as a Python callable."""

    def __init__(self, around: Evaluator, function: Function) -> None:
        self.around, self.function = around, function
        self.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
                                                for name in function.parameters])

    def __call__(self, *given: Any) -> Any:
        at = self.around
        own = {**at.own, **dict(zip(self.function.parameters, given))}
        return Evaluator(at.directive, at.schedule, at.lookup, at.define, own)(self.function.result)
