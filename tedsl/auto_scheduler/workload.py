"""Workloads: functions that return the tensors of a program, by name, and keys that say which with which arguments."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.dtype import DType
from tedsl.lang.declare import placeholder
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.tensor import Tensor

Workload = Callable[..., Sequence[Tensor]]
WORKLOADS: dict[str, Workload] = {}
TENSORS: dict[str, list[Tensor]] = {}  # by the keys of workloads that no function makes


def register_workload(func_name: str | Workload, f: Workload | None = None, override: bool = False) -> Any:
    """Decorator: a function that returns the placeholders and results of a program becomes a workload, under its own name or
    `func_name`.

    Raises ArgumentError for a name that another function has, unless it overrides it.
    """
    if callable(func_name):
        return register_workload(func_name.__name__, func_name, override)
    if not isinstance(func_name, str):
        raise ArgumentTypeError(f"register_workload: a name is a str, not {type_in_words(func_name)}")

    def register(function: Workload) -> Workload:
        known = WORKLOADS.get(func_name)
        if known is not None and known is not function and not override and not _same(known, function):
            raise ArgumentError(f"register_workload: there is a workload {func_name!r} already",
                                hint="choose another name, or say override=True")
        WORKLOADS[func_name] = function
        return function

    return register if f is None else register(f)


def _same(one: Workload, other: Workload) -> bool:
    """Whether both are what one line of a program defines, run twice."""
    return getattr(one, "__module__", 1) == getattr(other, "__module__", 2) and \
        getattr(one, "__qualname__", 1) == getattr(other, "__qualname__", 2)


def register_workload_tensors(workload_key: str, tensors: Sequence[Tensor], override: bool = True) -> str:
    """Makes tensors, placeholders and results, a workload under a key of their own, `ComputeDAG(tensors).workload_key()` or any
    other text, which it returns. Raises ArgumentError for a key that others have, if it may not override them.
    """
    if not isinstance(workload_key, str):
        raise ArgumentTypeError(f"register_workload_tensors takes a key and tensors, not {type_in_words(workload_key)} first",
                                hint="register_workload_tensors(ComputeDAG(tensors).workload_key(), tensors)")
    if workload_key in TENSORS and not override:
        raise ArgumentError(f"register_workload_tensors: there is a workload {workload_key!r} already",
                            hint="choose another key, or say override=True")
    TENSORS[workload_key] = tensors_of(tensors, "of register_workload_tensors")
    return workload_key


def make_workload_key(func: str | Workload, args: Any) -> str:
    """The key of a workload with these arguments: numbers, texts, lists of them, and tensors, which stand for placeholders."""
    name = func if isinstance(func, str) else next((name for name, one in WORKLOADS.items() if one is func), None)
    if name is None or name not in WORKLOADS:
        raise ArgumentError(f"make_workload_key: {func if isinstance(func, str) else getattr(func, '__name__', func)} is no "
                            "workload", hint="write @auto_scheduler.register_workload above it")
    given = args if isinstance(args, (list, tuple)) else [args]
    try:
        return json.dumps([name, *map(_to_json, given)])
    except TypeError as error:
        raise ArgumentTypeError(f"make_workload_key: {error}", hint="arguments are numbers, texts, lists of them, tensors") \
            from None


def _to_json(value: Any) -> Any:
    if isinstance(value, Tensor):
        return {"tensor": [[int(extent) for extent in value.shape], str(value.dtype), value.name]}
    if isinstance(value, (list, tuple)):
        return list(map(_to_json, value))
    return str(value) if isinstance(value, DType) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        shape, dtype, name = value["tensor"]
        return placeholder(tuple(shape), dtype, name)
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


def workload_key_to_tensors(workload_key: str) -> list[Tensor]:
    """The placeholders and results of the workload with this key. Raises ArgumentError if it is none."""
    if isinstance(workload_key, str) and workload_key in TENSORS:
        return TENSORS[workload_key]
    try:
        name, *args = json.loads(workload_key)
        given = list(map(_from_json, args))
    except (ValueError, TypeError, KeyError):
        raise ArgumentError(f"workload_key_to_tensors: {workload_key!r} is not a key of a workload",
                            hint="auto_scheduler.make_workload_key(func, args)") from None
    if name not in WORKLOADS:
        raise ArgumentError(f"there is no workload {name!r}", hint=f"there are {', '.join(WORKLOADS) or 'none'}")
    return made_by(WORKLOADS[name], given, name)


def made_by(workload: Workload, args: Sequence[Any], name: str) -> list[Tensor]:
    """The tensors that a workload returns for these arguments; ArgumentTypeError unless it takes them and returns tensors."""
    try:
        inspect.signature(workload).bind(*args)
    except TypeError as error:
        raise ArgumentTypeError(f"the workload {name} is called with {len(args)} arguments: {error}",
                                hint=f"SearchTask(func={name}, args=(...)) gives one for each of its parameters") from None
    return tensors_of(workload(*args), name)


def tensors_of(made: Any, name: str) -> list[Tensor]:
    """What a workload returned, as a list; ArgumentTypeError unless it is tensors."""
    listed = list(made) if isinstance(made, (list, tuple)) else [made]
    if not listed or not all(isinstance(one, Tensor) for one in listed):
        raise ArgumentTypeError(f"the workload {name} returned {type_in_words(made)}, and not the tensors of a program",
                                hint="end it with: return [A, B, C]")
    order = producers_first([one.op for one in listed])
    states = {state for op in order if isinstance(op, ScanOp) for state in op.state_placeholder}
    missing = [tensor.name for op in order for tensor in [op.output(0)]
               if isinstance(op, PlaceholderOp) and tensor not in states and tensor not in listed]
    if missing:
        raise ArgumentError(f"the workload {name} returned a result without its placeholders: {', '.join(missing)} "
                            f"{'is' if len(missing) == 1 else 'are'} not in the list",
                            hint=f"end it with: return [{', '.join([*missing, *(one.name for one in listed)])}]")
    return listed
