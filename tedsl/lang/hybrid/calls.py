"""Calls in a hybrid script: their arguments, and the built-in functions of the language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.lang import arithmetic
from tedsl.lang import math as functions
from tedsl.lang.hybrid.names import CASTS, MATH
from tedsl.lang.hybrid.scope import Array
from tedsl.lang.hybrid.source import Source
from tedsl.lang.hybrid.values import kind_of, known_int, truth

# How many arguments a function takes, at least and at most (None: any number), and a call that shows it; others take one.
_TAKES: dict[str, tuple[int, int | None, str]] = {
    "min": (2, None, "min(x, y)"), "max": (2, None, "max(x, y)"), "ceil_div": (2, 2, "ceil_div(n, 4)"),
    "power": (2, 2, "power(x, y)"), "fmod": (2, 2, "fmod(x, y)"), "atan2": (2, 2, "atan2(y, x)"),
    "max_num_threads": (0, 1, "max_num_threads()"), "len": (1, 1, "len(a)"), "likely": (1, 1, "likely(x > 0)"),
}
_COUNTS = {(0, 1): "at most one argument", (1, 1): "one argument", (2, 2): "two arguments", (2, None): "two arguments or more"}


def arguments(source: Source, node: ast.Call, value: Callable[[ast.expr], Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of a call; `*values` and `**options` are unpacked."""
    args: list[Any] = []
    for part in node.args:
        if not isinstance(part, ast.Starred):
            args.append(value(part))
            continue
        many = value(part.value)
        if not isinstance(many, (tuple, list, range)):
            source.fail(node, f"* takes a tuple apart, this is {kind_of(many)}", hint="write the arguments one by one")
        args += many
    options: dict[str, Any] = {}
    for option in node.keywords:
        if option.arg is None and isinstance(option.value, ast.Dict):
            source.fail(node, "** takes the name of a dict around the script", hint="write the names: f(x, scale=2.0)")
        read = value(option.value)
        more = {option.arg: read} if option.arg is not None else read
        if not isinstance(more, Mapping) or not all(isinstance(name, str) for name in more):
            source.fail(node, f"** takes a dict from names to values apart, this is {kind_of(more)}",
                        hint="write the names: f(x, scale=2.0)")
        for name, given in more.items():
            if name in options:
                source.fail(node, f"the argument {name} is given twice", hint="leave one of them out")
            options[name] = given
    return args, options


def memory(source: Source, node: ast.Call, kind: str, value: Callable[[ast.expr], Any]) -> dict[str, Any]:
    """The arguments of `allocate` and `output_tensor` by name, each given once."""
    args, options = arguments(source, node, value)
    names = ("shape", "dtype", "scope") if kind == "allocate" else ("shape", "dtype")
    options.pop("name", None)  # memory is called as the variable is, in TVM too
    known = dict(zip(names, args))
    hint = f"{kind}((n, m), 'float32')"
    twice = sorted(known.keys() & options)
    if twice:
        source.fail(node, f"{kind} is given {' and '.join(twice)} twice", hint=hint)
    known |= options
    if "shape" not in known or set(known) - set(names) or len(args) > len(names):
        source.fail(node, f"{kind} takes shape and dtype" + (", and a scope" if kind == "allocate" else ""), hint=hint)
    return known


def const_range(source: Source, node: ast.Call, args: Sequence[Any]) -> range:
    """The values of an unrolled loop, `const_range(...)`."""
    bounds = [known_int(arg) for arg in args]
    if not 1 <= len(args) <= 3 or bounds[2:] == [0]:
        source.fail(node, "const_range takes the end; or the beginning, the end and a step that is not 0",
                    hint="write const_range(4), const_range(1, 4) or const_range(0, 8, 2)")
    ints = [bound for bound in bounds if bound is not None]
    if len(ints) < len(bounds):
        wrong = args[bounds.index(None)]
        source.fail(node, "the bounds of const_range are integers that are known now, not "
                    f"{wrong if isinstance(wrong, (Expr, float)) else kind_of(wrong)}",
                    hint="use range for a bound that the call decides, or write an integer")
    return range(*ints)


def in_language(name: str, captured: Mapping[str, Any]) -> bool:
    """Whether `name` refers to the built-in function of the language; False if the surrounding program binds it to something
    else.
    """
    if name not in captured:
        return True
    value = captured[name]
    module = str(getattr(value, "__module__", ""))
    return type(value).__name__ == "ufunc" or module.split(".")[0] in ("math", "numpy", "builtins", "tedsl", "topi")


def is_function(name: str) -> bool:
    """Whether the language has a built-in function `name`."""
    return name in _LANGUAGE or name in CASTS or name in MATH


def call_language(source: Source, node: ast.Call, name: str, args: list[Any], options: Mapping[str, Any]) -> Any:
    """The value of the built-in function `name` for `args`."""
    least, most, example = _TAKES.get(name, (1, 1, f"{name}(x)"))
    if options:
        source.fail(node, f"{name} takes no named arguments", hint=f"write {example}")
    for arg in args if name not in ("len", "likely") else ():
        if arg is None or isinstance(arg, (Array, str, tuple, list)) or (callable(arg) and not isinstance(arg, Expr)):
            source.fail(node, f"{name} takes numbers, not {kind_of(arg)}",
                        hint=f"read an element: {arg.name}[i]" if isinstance(arg, Array) else f"write {example}")
    if len(args) < least or (most is not None and len(args) > most):
        source.fail(node, f"{name} takes {_COUNTS[least, most]}, not {len(args)}", hint=f"write {example}")
    if name == "len":
        return _length(source, node, args[0])
    if name == "likely":
        holds = truth(source, node, args[0])
        return build.likely(holds) if isinstance(holds, Expr) else holds
    if name in CASTS:
        return build.cast(name, build.as_expr(args[0]))
    if name in _LANGUAGE:
        return _LANGUAGE[name](*args)
    if name in ("abs", "round", "power", "popcount"):
        return getattr(arithmetic if name != "round" else functions, name)(*args)
    return getattr(functions, name)(*args)


def _length(source: Source, node: ast.Call, value: Any) -> Any:
    if isinstance(value, Array) and value.buffer.shape:
        return value.buffer.shape[0]
    if not isinstance(value, (tuple, list, str, range)):
        what = f"{value.name} has no dimensions" if isinstance(value, Array) else f"{kind_of(value)} has none"
        source.fail(node, f"len takes what has a length, {what}", hint="len(a) is a.shape[0]")
    return len(value)


def _fold(now: Callable[..., Any], later: Callable[[Any, Any], Expr]) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        if not any(isinstance(arg, Expr) for arg in args):
            return now(*args)
        result = args[0]
        for arg in args[1:]:
            result = later(result, arg)
        return result

    return apply


def _ceil_div(a: Any, b: Any) -> Any:
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return -(-a // b)
    return build.ceil_div(a, b)


def _one_thread(allow_none: Any = True) -> int:
    return 1


_LANGUAGE: dict[str, Callable[..., Any]] = {
    "len": len, "min": _fold(min, build.minimum), "max": _fold(max, build.maximum), "ceil_div": _ceil_div,
    "likely": build.likely, "max_num_threads": _one_thread,
    "int": lambda x: build.cast("int32", x) if isinstance(x, Expr) else int(x),
    "float": lambda x: build.cast("float32", x) if isinstance(x, Expr) else float(x),
}
