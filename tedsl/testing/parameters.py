"""Parameters of tests as fixtures of a module or class, for pytest, which is imported when the first is created.

    size = tedsl.testing.parameter(16, 1024)                          # tests with an argument `size` run for each
    rows, columns = tedsl.testing.parameters((1, 8), (8, 1))           # these two change together
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from tedsl.errors import ArgumentError

_NUMBERS = count()


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: dict[str, Any] | None = None) -> Any:
    """Returns a fixture with each of `values` in turn. by_dict: a dict of ids and values instead."""
    import pytest

    if by_dict is not None:
        if values or ids is not None:
            raise ArgumentError("parameter: by_dict has the values and their names", hint="leave the others out")
        values, ids = tuple(by_dict.values()), list(by_dict)

    @pytest.fixture(params=values, ids=ids)
    def value(*_cls: Any, request: Any) -> Any:
        return request.param

    return value


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Returns a fixture for each position of the tuples `value_sets`; together they take the values of one tuple after the
    other.
    """
    import pytest

    if len({len(values) for values in value_sets}) != 1:
        raise ArgumentError("parameters: there is at least one tuple of values, and all are of one length")
    name = f"_parameters_{next(_NUMBERS)}"

    @pytest.fixture(params=value_sets, ids=ids, name=name)
    def together(*_cls: Any, request: Any) -> Any:
        return request.param

    # pytest finds fixtures by the names of the module or class where they are used: so the common one must stand there too
    sys._getframe(1).f_locals[name] = together
    return [pytest.fixture(_part(name, place)) for place in range(len(value_sets[0]))]


def _part(name: str, place: int) -> Callable[..., Any]:
    """Returns a function, for pytest to collect, that has the fixture `name` as its parameter and returns item `place` of its
    value.
    """
    def part(*_cls: Any, **given: Any) -> Any:
        return given[name][place]

    function: Any = part
    function.__signature__ = inspect.Signature([
        inspect.Parameter("_cls", inspect.Parameter.VAR_POSITIONAL), inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)])
    return part


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """Declares a pytest fixture. cache_return_value: it is computed once for equal arguments, and each test gets a copy."""
    import pytest

    def make(given: Callable[..., Any]) -> Any:
        return pytest.fixture(_remembered(given) if cache_return_value else given)

    return make if func is None else make(func)


def _remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    calls: list[tuple[Any, Any]] = []  # arguments may be no keys of a dict

    @functools.wraps(function)
    def remembered(*args: Any, **options: Any) -> Any:
        for known, value in calls:
            if known == (args, options):
                return copy.deepcopy(value)
        value = function(*args, **options)
        calls.append((copy.deepcopy((args, options)), value))
        return copy.deepcopy(value)

    return remembered
