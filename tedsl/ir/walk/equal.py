"""Structural equality: two programs that differ only in the names of variables and buffers are equal.

Variables correspond one to one: bound ones by their binders, free ones to themselves (with `map_free_vars`, to the variable
in the same position at their first occurrence).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeAlias

from tedsl.errors import DifferenceError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import Op
from tedsl.ir.stmt import BIND_SCOPE, AttrStmt

Path: TypeAlias = "tuple[Path, str] | None"  # from the inside out: a text would grow with the square of the depth
Difference: TypeAlias = tuple[Path, Any, Any, bool]  # where, two things to compare, whether variables are bound here
NAMES: dict[type, tuple[str, ...]] = {Buffer: ("name",)}  # fields that do not count
_COMPARED: dict[type, list[tuple[str, str, bool]]] = {}


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two programs are structurally equal. map_free_vars: free variables may correspond to others, one to one."""
    return _difference(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises DifferenceError, which names the first difference, unless two programs are structurally equal."""
    difference = _difference(lhs, rhs, map_free_vars)
    if difference is not None:
        path, left, right = difference
        raise DifferenceError(f"the programs differ at {_place(path)}:\n  {_show(left)}\nis not\n  {_show(right)}\n"
                             f"in\n{lhs}\nand\n{rhs}")


def _show(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})" if isinstance(value, Node) else repr(value)


def _place(path: Path) -> str:
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps)).lstrip(".") or "the root"


def _difference(a: Any, b: Any, map_free_vars: bool) -> tuple[Path, Any, Any] | None:
    """The first difference of `a` and `b` in printing order: its path and both values there; None if they are equal."""
    to_b: dict[Node, Node] = {}
    to_a: dict[Node, Node] = {}
    done: set[tuple[int, int]] = set()
    stack: list[Difference] = [(None, a, b, False)]
    while stack:
        path, x, y, binds = stack.pop()
        if isinstance(x, (Var, Buffer)) and isinstance(y, (Var, Buffer)) and (x in to_b or y in to_a):
            if to_b.get(x) is not y or to_a.get(y) is not x:
                return path, x, y
            continue
        if isinstance(x, Var) and isinstance(y, Var):
            if x.dtype is not y.dtype or x.type_annotation != y.type_annotation or not (binds or map_free_vars or x is y):
                return path, x, y
            to_b[x], to_a[y] = y, x
        elif isinstance(x, Node) and isinstance(y, Node):
            if type(x) is not type(y):
                return path, x, y
            if isinstance(x, Buffer):
                to_b[x], to_a[y] = y, x
            elif (id(x), id(y)) in done:
                continue
            done.add((id(x), id(y)))
            stack.extend(reversed(list(_parts(path, x, y, binds))))
        elif isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
            if len(x) != len(y):
                return path, x, y
            stack.extend([((path, f"[{i}]"), x[i], y[i], binds) for i in reversed(range(len(x)))])
        elif _is_mapping(x) and _is_mapping(y):
            if len(x) != len(y) or not all(k in y for k in x):
                return path, x, y
            stack.extend(reversed(list(_entries(path, x, y))))
        elif not _same_value(x, y):
            return path, x, y
    return None


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _parts(path: Path, x: Any, y: Any, binds: bool) -> Iterator[Difference]:
    """The pairs of fields to compare, binders first, as others refer to them. Buffers of parameters bind shape variables."""
    if isinstance(x, PrimFunc):
        buffers = [[f.buffer_map.get(p) for p in f.params] for f in (x, y)]
        yield (path, ".params"), x.params, y.params, True
        yield (path, ".buffer_map"), buffers[0], buffers[1], True
    made_here = isinstance(x, AttrStmt) and x.attr_key == BIND_SCOPE
    if made_here:
        yield (path, ".node"), x.node, y.node, y.attr_key == BIND_SCOPE  # the first buffer is made here
    inherited = binds and isinstance(x, Buffer)
    for name, step, is_binder in _COMPARED.get(type(x)) or _compared(type(x)):
        if not made_here or name != "node":
            yield (path, step), getattr(x, name), getattr(y, name), is_binder or inherited


def _compared(cls: type[Any]) -> list[tuple[str, str, bool]]:
    """The fields of a class of nodes that count, binders first: the name, the step of a path, whether it is a binder."""
    ignored = ("params", "buffer_map") if issubclass(cls, PrimFunc) else NAMES.get(cls, ())
    names = sorted((f.name for f in fields(cls) if f.name not in ignored), key=lambda name: name not in cls.binders)
    made = _COMPARED[cls] = [(name, f".{name}", name in cls.binders) for name in names]
    return made


def _entries(path: Path, x: Any, y: Any) -> Iterator[Difference]:
    for key, value in x.items():
        yield (path, f"[{key!r}]"), value, y[key], False


def _same_value(x: Any, y: Any) -> bool:
    if isinstance(x, IRModule) and isinstance(y, IRModule):
        return list(x) == list(y) and all(structural_equal(x[name], y[name]) for name in x)
    if type(x) is float and type(y) is float:
        return struct.pack("<d", x) == struct.pack("<d", y)  # -0.0 is not 0.0, NaN is NaN
    if isinstance(x, Node) or isinstance(y, Node):
        return x is y or _is_number(x, y) or _is_number(y, x)
    if hasattr(x, "numpy") and hasattr(y, "numpy"):  # arrays: attributes, and constants of programs
        a, b = x.numpy(), y.numpy()
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return type(x) is type(y) and bool(x == y)


def _is_number(x: Any, y: Any) -> bool:
    """Whether `y` is a number of Python, and `x` the constant that it becomes in a program."""
    return isinstance(x, IntImm) and isinstance(y, (bool, int)) and x.value == y and x.dtype is build.const(y).dtype


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that is equal for structurally equal programs, in every process. Variables are numbered by first appearance."""
    if isinstance(node, IRModule):
        return _mix(*[_mix(_text_hash(name), structural_hash(func)) for name, func in node.items()])
    numbers: dict[Any, int] = {}
    hashes: dict[int, int] = {}
    stack: list[tuple[Any, bool]] = [(node, False)]
    keep: list[Any] = []  # ids stay valid
    while stack:
        value, ready = stack.pop()
        if id(value) in hashes and not isinstance(value, Var):
            continue
        if isinstance(value, Var):
            hashes[id(value)] = _mix(3, _text_hash(str(value.dtype)), numbers.setdefault(value, len(numbers)))
            keep.append(value)
        elif not ready:
            stack.append((value, True))
            stack.extend([(child, False) for child in reversed(_children(value))])
            keep.append(value)
        else:
            hashes[id(value)] = _mix(_text_hash(type(value).__name__), _leaf_hash(value),
                                     *[hashes[id(child)] for child in _children(value)])
    return hashes[id(node)]


def _children(value: Any) -> list[Any]:
    """The parts of `value` that enter its hash: child nodes and constants."""
    if isinstance(value, Node):
        children: list[Any] = []
        for f in fields(type(value)):  # type: ignore[arg-type]
            part = getattr(value, f.name)
            if f.name in NAMES.get(type(value), ()):
                continue
            if isinstance(part, (Node, tuple)):
                children.append(part)
        return children
    return [part for part in value if isinstance(part, (Node, tuple))] if isinstance(value, tuple) else []


def _leaf_hash(value: Any) -> int:
    if not isinstance(value, Node):
        return len(value) if isinstance(value, tuple) else 0
    if isinstance(value, Buffer):
        return 0
    constants = [getattr(value, f.name) for f in fields(type(value))]  # type: ignore[arg-type]
    return _mix(*[_text_hash(repr(c)) for c in constants if isinstance(c, (str, int, float, Op))])


@lru_cache(maxsize=4096)
def _text_hash(text: str) -> int:
    """The FNV-1a hash of a text; Python's own hash of strings differs between processes."""
    result = 0xCBF29CE484222325
    for byte in text.encode():
        result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def _mix(*parts: int) -> int:
    result = 0x9E3779B97F4A7C15
    for part in parts:
        result = ((result ^ part) * 0xBF58476D1CE4E5B9 + 1) & 0xFFFFFFFFFFFFFFFF
        result ^= result >> 29
    return result
