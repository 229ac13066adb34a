"""Operators on tensors that hold values, made of functions of formulas: those of topi, and those of programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl import te
from tedsl.autograd.formula import Formula
from tedsl.autograd.kinds import Kind, kind_of
from tedsl.autograd.modes import MODE
from tedsl.autograd.recording import Plan, apply
from tedsl.autograd.traced import Traced
from tedsl.autograd.value import Value, result
from tedsl.errors import ArgumentTypeError, type_in_words

_SHORT = {"multiply": "Mul", "subtract": "Sub", "divide": "Div", "power": "Pow", "negative": "Neg"}


class Operation:
    """Runs `function`, which takes and returns tensors of te, on tensors that hold values.

    The formula is written and compiled once for each shape and dtype of the tensors, and each value of other arguments; its
    derivative once for each choice of tensors that need a gradient.
    """

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        if not callable(function):
            raise ArgumentTypeError(f"op: {function!r} is not a function of tensors", hint="op(topi.nn.relu)(x)")
        self.function = function
        self.name = name or _camel_case(getattr(function, "__name__", "Operation"))
        self._plans: dict[Any, Plan] = {}
        self._formulas: dict[Any, tuple[Formula, bool]] = {}
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return self._apply_any(args, kwargs)
        recording = MODE.recording
        key: list[Any] = []
        tensors = []
        for arg in args:
            if isinstance(arg, Value):
                tensors.append(arg)
                key.append(arg._kind)
                key.append(recording and arg._requires_grad)
            else:
                key.append(arg.__class__)
                key.append(arg)
        try:
            plan = self._plans.get(tuple(key))
        except TypeError:  # an argument has no hash: a list of tensors
            plan = None
        return self._apply_any(args, kwargs) if plan is None else apply(plan, tensors)

    def _apply_any(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result for arguments of any form: tensors in lists, arrays, arguments by name."""
        args, kwargs = _with_tensors(args), _with_tensors(kwargs)
        leaves: list[Any] = []
        _collect((args, kwargs), leaves)
        if any(isinstance(leaf, Traced) for leaf in leaves):
            return Traced.results(self.function(*_formulas(args), **_formulas(kwargs)))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Value)]
        if not tensors:
            raise ArgumentTypeError(f"{self.name}: no argument is a tensor", hint="make one: autograd.tensor(values)")
        recording = MODE.recording
        key = _key((args, kwargs), recording)
        if not kwargs and all(isinstance(arg, (Value, int, float, str, bool, type(None))) for arg in args):
            key = tuple([part for arg in args for part in ((arg._kind, recording and arg._requires_grad)
                                                           if isinstance(arg, Value) else (arg.__class__, arg))])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans.setdefault(key, self._planned(args, kwargs, tensors, recording))
        return apply(plan, tensors)

    def _planned(self, args: Any, kwargs: Any, tensors: Sequence[Value], recording: bool) -> Plan:
        formula, single = self._written(args, kwargs, tuple(tensor._kind for tensor in tensors))
        needs = tuple([recording and tensor._requires_grad for tensor in tensors])
        return Plan(formula, f"{self.name}Backward0", needs, single)

    def _written(self, args: Any, kwargs: Any, kinds: tuple[Kind, ...]) -> tuple[Formula, bool]:
        """The formula for arguments like these; the second tells whether the function returns one tensor, not several."""
        key = _key((args, kwargs), False)
        known = self._formulas.get(key)
        if known is None:
            inputs = [te.placeholder(kind.shape, kind.dtype, name=f"x{at}") for at, kind in enumerate(kinds)]
            waiting = iter(inputs)
            made = self.function(*_replaced(args, waiting), **_replaced(kwargs, waiting))
            single = isinstance(made, te.Tensor)
            outputs = [made] if single else list(made) if isinstance(made, (list, tuple)) else []
            if not outputs or not all(isinstance(out, te.Tensor) for out in outputs):
                raise ArgumentTypeError(f"{self.name}: the function returned {type_in_words(made)}, not tensors",
                                        hint="it gets tensors of te, and returns te.compute(...) or a list of such")
            known = Formula(self.name, inputs, outputs), single
            self._formulas[key] = known
        return known

    def __repr__(self) -> str:
        return f"<tedsl.autograd.op {self.name}>"


def op(function: Callable[..., Any], name: str = "") -> Operation:
    """The operator on tensors with values that `function`, one of tensors of te, describes: op(topi.nn.relu)(x).

    The same function gives the same operator, which keeps what it compiled. name: of its nodes in the graph.
    """
    if name:
        return Operation(function, name)
    try:
        return _operation_of(function)
    except TypeError:  # a callable object without a hash
        return Operation(function)


@functools.lru_cache(maxsize=4096)
def _operation_of(function: Callable[..., Any]) -> Operation:
    return Operation(function)


def _camel_case(name: str) -> str:
    return _SHORT.get(name) or "".join(part[:1].upper() + part[1:] for part in name.strip("<>_").split("_"))


# --- arguments in tuples, lists and dicts -----------------------------------------------------------------------------

def _collect(value: Any, into: list[Any]) -> None:
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, into)
    else:
        into.append(value)


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(value[name], function) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_mapped(part, function) for part in value] if isinstance(value, list) else \
            tuple(_mapped(part, function) for part in value)
    return function(value)


def _with_tensors(value: Any) -> Any:
    """The arguments with arrays of numpy as tensors."""
    return _mapped(value, lambda leaf: result(Value.plain, leaf, kind_of(leaf), None, 0)
                   if isinstance(leaf, numpy.ndarray) else leaf)


def _replaced(value: Any, inputs: Any) -> Any:
    return _mapped(value, lambda leaf: next(inputs) if isinstance(leaf, Value) else leaf)


def _formulas(value: Any) -> Any:
    """The arguments as tensors of te, inside of a function that is traced."""
    def formula(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            raise ArgumentTypeError("a tensor with values is used inside of a traced function",
                                    hint="pass it to the function as an argument")
        return leaf.formula if isinstance(leaf, Traced) else leaf

    return _mapped(value, formula)


def _key(value: Any, recording: bool) -> Any:
    """What the arguments have in common with all for which the same kernel is right."""
    if isinstance(value, dict):
        return dict, *[(name, _key(value[name], recording)) for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return type(value), *[_key(part, recording) for part in value]
    if isinstance(value, Value):
        return value._kind, recording and value._requires_grad
    return type(value), value
