"""The check of operators' arguments against their annotated types, made before anything is computed.

    @checked
    def lrn(data: te.Tensor, size: int, ...)        lrn(data, "x")  ->  lrn: size is 'x' where a whole number is meant

`Annotated[Any, one, or, another]` stands for arguments of several types, for which the type checker has no use.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, type_in_words

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Extents = Annotated[Any, Sequence[Any]]
Shape = Annotated[Any, te.Tensor, Sequence[Any]]
Places = Annotated[Any, te.Tensor, int, Sequence[int | None], None]
Code = Annotated[Any, str, int, te.Tensor]
Widths = Annotated[Any, int, Sequence[int]]
Axes = Annotated[Any, int, Sequence[int | Sequence[int]]]
Number = Annotated[Any, float]

_HINTS = {
    te.Tensor: ("a tensor", "declare te.placeholder(shape, dtype); arrays are passed to the built function"),
    int: ("a whole number", "write an int, or an integer expression where the operator takes symbolic extents"),
    float: ("a number", "write an int or a float"),
    str: ("a string", "write one of the names that the docstring lists, in quotes"),
    Sequence: ("a list", "write one entry for each dimension, for example [1, 2]"),
}


def checked(operator: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """`operator` with a check of its arguments, at each call, against its annotations; those of Any take everything."""
    @functools.wraps(operator)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        names, rest, hints = _declared(operator)
        given = [*zip(names, args), *[(rest, value) for value in args[len(names):]], *kwargs.items()]
        for name, value in given:
            if name in hints and not _fits(value, hints[name]):
                raise _refused(operator.__name__, name, value, hints[name])
        return operator(*args, **kwargs)

    return call


def takes_older_calls(today: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]) \
        -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorator of operators whose parameters had another order in older versions of TVM.

    today: returns the arguments by position of a call, in whichever order they are, in today's; it may add some by name.
    """
    def decorate(operator: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(operator)
        def call(*args: Any, **kwargs: Any) -> Result:
            return operator(*today(args, kwargs), **kwargs)

        return cast("Callable[Parameters, Result]", call)

    return decorate


@functools.cache
def _declared(operator: Callable[..., Any]) -> tuple[list[str], str, dict[str, Any]]:
    """The positional parameters, the variadic one, and the annotations of `operator`; read at its first call."""
    parameters = inspect.signature(operator).parameters.values()
    rest = [parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL]
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    return names, rest[0] if rest else "", get_type_hints(operator, include_extras=True)


def _choices(hint: Any) -> tuple[Any, ...]:
    """The types that an annotation allows."""
    if get_origin(hint) is Annotated:
        return tuple([choice for part in hint.__metadata__ for choice in _choices(part)])
    if get_origin(hint) in (Union, types.UnionType):
        return tuple([choice for part in get_args(hint) for choice in _choices(part)])
    return (hint,)


def _fits(value: Any, hint: Any) -> bool:
    return any(_is(value, choice) for choice in _choices(hint))


def _is(value: Any, wanted: Any) -> bool:
    if get_origin(wanted) is Sequence:
        entry, = get_args(wanted)
        return _is_listed(value) and all(_fits(element, int if entry is Any else entry) for element in value)
    if wanted is int:
        return (hasattr(value, "__index__") and not hasattr(value, "__len__")) or isinstance(value, tir.Expr)
    if wanted is float:
        return (hasattr(value, "__float__") and not hasattr(value, "__len__")) or isinstance(value, tir.Expr)
    if wanted is None or wanted is type(None):
        return value is None
    return isinstance(value, wanted) if wanted in (te.Tensor, str) else True


def _is_listed(value: Any) -> bool:
    """Whether `value` is a sequence of entries; tensors and arrays without dimensions are not."""
    return isinstance(value, Iterable) and not isinstance(value, (str, tir.Expr, te.Tensor)) and getattr(value, "ndim", 1) != 0


def _refused(operator: str, name: str, value: Any, hint: Any) -> ArgumentTypeError:
    """The ArgumentTypeError for an argument: the value that was given, and the types that are accepted."""
    kinds = [get_origin(choice) or choice for choice in _choices(hint)]
    known = [_HINTS[kind] for kind in kinds if kind in _HINTS]
    if _is_listed(value) and Sequence in kinds:
        entry = next(get_args(choice)[0] for choice in _choices(hint) if get_origin(choice) is Sequence)
        entry = int if entry is Any else entry
        place, wrong = next((place, element) for place, element in enumerate(value) if not _fits(element, entry))
        return _refused(operator, f"{name}[{place}]", wrong, entry)
    shown = _brief(value)
    return ArgumentTypeError(f"{operator}: {name} is {shown} where {' or '.join(words for words, _ in known)} is meant",
                             hint=known[0][1])


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, (tuple, list)):
        return f"{type_in_words(value)} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) < 60 else type_in_words(value)
