"""Programs as data: nodes of the IR as JSON values and back, for files and for keys of caches.

`to_data` writes every node once, after those that it refers to: sharing is preserved, and depth is not limited.
`from_data` creates the nodes by their constructors, which check their arguments: damaged data is an error, never a wrong
program. Two programs have the same data if they agree in everything, names included.

    [3]             the node number 3            ["t", a, b]         a tuple
    ["d", "int8"]   a dtype                      ["m", k, v, ...]    a mapping
    ["o", "tir.exp"]  an operator                ["f", "0x1.8p+1"]   a float, in hexadecimal
    ["s", dtype], ["p", dtype, scope]            the types of variables
    null, true, 3, "text"                        themselves

What `save_json` also writes, tensors and their operations, schedules, arrays, has a method `__parts__`, which returns its kind
and the arguments with which the function of that kind in `MAKERS` makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from tedsl.errors import ArgumentError, TedslError
from tedsl.ir.container import Array
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Var
from tedsl.ir.func import IRModule
from tedsl.ir.iters import Range
from tedsl.ir.node import SCOPE, FrozenDict, Node
from tedsl.ir.ops import Op
from tedsl.ir.types import PointerType, PrimType

# What makes the things that are no nodes, by their kind.
MAKERS = {
    "PlaceholderOp": "tedsl.lang.operation:PlaceholderOp", "ComputeOp": "tedsl.lang.operation:ComputeOp",
    "ScanOp": "tedsl.lang.scan.operation:ScanOp", "ExternOp": "tedsl.lang.extern:ExternOp",
    "HybridOp": "tedsl.lang.hybrid.operation:HybridOp", "Tensor": "tedsl.lang.tensor:Tensor",
    "Schedule": "tedsl.schedule.handles:of_parts", "NDArray": "tedsl.runtime.array:of_parts",
    "EnvFunc": "tedsl.compat.reflection:env_func", "DictAttrs": "tedsl.compat.reflection:dict_attrs",
    "TestAttrs": "tedsl.compat.reflection:attrs_for_tests",
}


def to_data(value: Any, *, things: bool = False) -> dict[str, Any]:
    """Returns `value` (a node, or tuples, mappings and constants that hold nodes) as a JSON value.

    things: also of what has `__parts__`. Raises ArgumentError if it holds anything else: an AttrStmt about an operation.
    """
    numbers: dict[int, int] = {}  # by id: equality of expressions is lazy
    nodes: list[Any] = []
    kept: list[Any] = []  # ids stay valid
    stack: list[tuple[Any, bool]] = [(node, False) for node in reversed(list(_nodes_in(value, things)))]
    while stack:
        node, ready = stack.pop()
        if id(node) in numbers:
            continue
        kind, *parts = (_kind_of(node), *_fields_of(node)) if isinstance(node, Node) else node.__parts__()
        if ready:
            nodes.append([kind, *(_encoded(part, numbers) for part in parts)])
            numbers[id(node)] = len(nodes) - 1
        else:
            kept.append(parts)
            stack.append((node, True))
            stack.extend([(inner, False) for part in reversed(parts) for inner in reversed(list(_nodes_in(part, things)))])
    return {"nodes": nodes, "value": _encoded(value, numbers)}


def save_json(node: Any) -> str:
    """Returns an expression, a statement, a function, a module, a tensor, an operation, a schedule, an array, or a list or dict
    of such, as JSON text, which `load_json` reads.
    """
    functions = FrozenDict(dict(node.items())) if isinstance(node, IRModule) else None
    return json.dumps({"module": functions is not None, **to_data(node if functions is None else functions, things=True)})


def load_json(json_str: str) -> Any:
    """Returns what `save_json` wrote as text. Raises ArgumentError for text that it did not write."""
    try:
        data = json.loads(json_str)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"load_json: this is no text of save_json: {error}") from None
    value = from_data(data)
    return IRModule(dict(value)) if data.get("module") else Array(value) if type(value) is tuple else value


def from_data(data: Any) -> Any:
    """Returns the value that `to_data` wrote as `data`. Raises ArgumentError for data that it did not write."""
    try:
        nodes: list[Any] = []
        for record in data["nodes"]:
            nodes.append(_made(record[0], [_decoded(part, nodes) for part in record[1:]]))
        return _decoded(data["value"], nodes)
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError, TedslError) as error:
        raise ArgumentError(f"this is not data of a program: {error}") from error


def _kind_of(node: Node) -> str:
    """The name of the class of a node by which it is found again; a LoweredFunc of TVM 0.6 is written as the PrimFunc it is."""
    return next((cls.__name__ for cls in type(node).__mro__ if SCOPE.get(cls.__name__) is cls), type(node).__name__)


def _fields_of(node: Node) -> list[Any]:
    """The arguments with which the constructor of the node's class creates an equal node."""
    if isinstance(node, Var):
        annotation = node.type_annotation
        return [node.name, annotation if isinstance(annotation, PointerType) else node.dtype]
    return [getattr(node, name) for name in node.init_fields]


def _nodes_in(value: Any, things: bool) -> Iterator[Any]:
    """Yields the nodes that are direct parts of `value`, and other things with parts."""
    if isinstance(value, Node) or (things and hasattr(value, "__parts__")):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _nodes_in(item, things)
    elif isinstance(value, (dict, FrozenDict)):
        for key, item in value.items():
            yield from _nodes_in(key, things)
            yield from _nodes_in(item, things)


def _encoded(value: Any, numbers: Mapping[int, int]) -> Any:
    if id(value) in numbers:
        return [numbers[id(value)]]
    match value:
        case Node():
            return [numbers[id(value)]]
        case DType():
            return ["d", str(value)]
        case None | bool() | str():
            return value
        case int():
            return int(value)  # members of enums, too: the constructor knows which enum it is
        case float():
            return ["f", value.hex()]
        case tuple() | list():
            return ["t", *(_encoded(item, numbers) for item in value)]
        case Op():
            return ["o", value.name]
        case PointerType():
            return ["p", str(value.element_type), value.storage_scope]
        case PrimType():
            return ["s", str(value)]
        case dict() | FrozenDict():
            return ["m", *(_encoded(part, numbers) for item in value.items() for part in item)]
    raise ArgumentError(f"{type(value).__name__} {value!r} cannot be written as data: it is not a part of a lowered program")


def _decoded(part: Any, nodes: list[Any]) -> Any:
    if not isinstance(part, list):
        return part
    match part:
        case [int() as number] if 0 <= number < len(nodes):
            return nodes[number]
        case ["d", str() as name]:
            return dtype(name)
        case ["f", str() as digits]:
            return float.fromhex(digits)
        case ["t", *items]:
            return tuple([_decoded(item, nodes) for item in items])
        case ["o", str() as name]:
            return Op.get(name)
        case ["p", str() as element, str() as scope]:
            return PointerType(PrimType(dtype(element)), scope)
        case ["s", str() as name]:
            return PrimType(dtype(name))
        case ["m", *items] if len(items) % 2 == 0:
            parts = [_decoded(item, nodes) for item in items]
            return FrozenDict(dict(zip(parts[::2], parts[1::2])))
    raise ArgumentError(f"{part!r} stands for nothing")


def _made(name: Any, arguments: list[Any]) -> Any:
    """A node of the class called `name`, created from its constructor's `arguments`, or what `MAKERS` makes of them."""
    if name in MAKERS:
        home, _, maker = MAKERS[name].partition(":")
        return getattr(import_module(home), maker)(*arguments)
    cls = SCOPE.get(name)
    if not isinstance(cls, type) or not issubclass(cls, Node) or len(arguments) != len(cls.init_fields) or not cls.init_fields:
        raise ArgumentError(f"there is no node {name!r} of {len(arguments)} fields")
    if cls is Range:
        return Range.from_min_extent(*arguments)
    return cls(*arguments)
