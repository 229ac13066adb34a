"""Functions of numpy called with tensors: np.exp(x) and np.sum(x, axis=0) are the operators and methods of tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from tedsl.autograd import functional
from tedsl.autograd.arguments import rebuilt
from tedsl.errors import ArgumentTypeError

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow,
    "matmul": operator.matmul, "negative": operator.neg, "positive": operator.pos, "absolute": operator.abs,
    "fabs": operator.abs, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}
_REDUCTION = ("axis", "keepdims")
_METHODS = {  # by the name of the function: the parameters of numpy that the method takes
    "sum": _REDUCTION, "mean": _REDUCTION, "var": _REDUCTION, "max": _REDUCTION, "min": _REDUCTION, "prod": _REDUCTION,
    "argmax": _REDUCTION, "argmin": _REDUCTION, "cumsum": ("axis",), "reshape": ("shape",), "transpose": ("axes",),
    "squeeze": ("axis",), "expand_dims": ("axis",), "broadcast_to": ("shape",), "clip": ("a_min", "a_max"),
}
_RENAMED = {"newshape": "shape"}  # parameters of numpy before 2.1
_ALIASES = {"amax": "max", "amin": "min", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
            "arccosh": "acosh", "arctanh": "atanh"}


def of_elements(ufunc: Any, method: str, own: Any, operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """`ufunc(*operands)`, one of which is the tensor `own`, as the operator of that name. Raises ArgumentTypeError for other
    methods and options of numpy, and for functions without an operator.
    """
    name = _ALIASES.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__" or options:
        how = f"by {method}" if method != "__call__" else f"with {', '.join(options)}"
        raise ArgumentTypeError(f"numpy.{ufunc.__name__} does not take tensors {how}",
                                hint="operators of tensors give new ones: y = a + x, not a += x for an array a")
    tensors = [one if isinstance(one, type(own)) else own._operand(one) for one in operands]
    if name in _OPERATORS:
        return _OPERATORS[name](*tensors)
    if hasattr(type(own), name):
        return getattr(tensors[0], name)(*tensors[1:])
    try:
        function = getattr(functional, name)
    except AttributeError:
        raise ArgumentTypeError(f"numpy.{name} has no operator of tensors",
                                hint=f"np.{name}(x.detach().numpy()) is not recorded") from None
    return function(*tensors)


def of_arrays(function: Any, own: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """`function(*arguments)` of numpy, with tensors of the class of `own`: the method of that name where there is one and the
    first argument is a tensor; else the function of their arrays.
    """
    name = _ALIASES.get(function.__name__, function.__name__)
    if name in _METHODS and function.__module__ == "numpy" and arguments and isinstance(arguments[0], type(own)):
        return _method(name, signature(function).bind(*arguments, **options).arguments)
    plain = rebuilt((arguments, options), lambda one: one.__array__() if isinstance(one, type(own)) else one)
    return function(*plain[0], **plain[1])


def _method(name: str, given: Mapping[str, Any]) -> Any:
    """The method `name` of the first of the arguments `given`."""
    (_, tensor), *rest = given.items()
    others = [(_RENAMED.get(parameter, parameter), value) for parameter, value in rest]
    refused = [parameter for parameter, _ in others if parameter not in _METHODS[name]]
    if refused:
        raise ArgumentTypeError(f"numpy.{name} does not take tensors with {', '.join(refused)}",
                                hint=f"x.{name}({', '.join(_METHODS[name])})")
    if _METHODS[name] is _REDUCTION:
        return getattr(tensor, name)(**dict(others))
    return getattr(tensor, name)(*[value for _, value in others if value is not None])
