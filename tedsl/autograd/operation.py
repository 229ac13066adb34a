"""Operators on tensors that hold values, made of functions of formulas: those of topi, and those of programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl import te
from tedsl.autograd.arguments import flattened, key_of, rebuilt
from tedsl.autograd.formula import Formula
from tedsl.autograd.kinds import Kind, kind_of
from tedsl.autograd.modes import MODE
from tedsl.autograd.recording import Plan, apply
from tedsl.autograd.traced import Traced, formula_of
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
            return self._apply_any(args, kwargs, None)
        recording = MODE.recording
        parts: list[Any] = []
        tensors = []
        for arg in args:
            if isinstance(arg, Value):
                tensors.append(arg)
                parts += (arg._kind, recording and arg._requires_grad)
            else:
                parts += (arg.__class__, arg)
        key = tuple(parts)
        try:
            plan = self._plans.get(key)
        except TypeError:  # an argument has no hash, as a list of tensors
            return self._apply_any(args, kwargs, None)
        return self._apply_any(args, kwargs, key) if plan is None else apply(plan, tensors)

    def _apply_any(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        """The result for arguments of any form: tensors in lists, arrays, arguments by name. key: that of `__call__`."""
        args, kwargs = rebuilt(args, _as_tensor), rebuilt(kwargs, _as_tensor)
        leaves = flattened((args, kwargs))
        if any(isinstance(leaf, Traced) for leaf in leaves):
            return Traced.results(self.function(*rebuilt(args, formula_of), **rebuilt(kwargs, formula_of)))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Value)]
        if not tensors:
            raise ArgumentTypeError(f"{self.name}: no argument is a tensor", hint="make one: autograd.tensor(values)")
        recording = MODE.recording
        if key is None or len(tensors) != sum(isinstance(arg, Value) for arg in args):
            key = key_of((args, kwargs), recording)
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
        key = key_of((args, kwargs), False)
        known = self._formulas.get(key)
        if known is None:
            inputs = [te.placeholder(kind.shape, kind.dtype, name=f"x{at}") for at, kind in enumerate(kinds)]
            waiting = iter(inputs)
            given = rebuilt((args, kwargs), lambda leaf: next(waiting) if isinstance(leaf, Value) else leaf)
            made = self.function(*given[0], **given[1])
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


def _as_tensor(leaf: Any) -> Any:
    """An array of numpy as a tensor; anything else as it is."""
    return result(Value.plain, leaf, kind_of(leaf), None, 0) if isinstance(leaf, numpy.ndarray) else leaf
