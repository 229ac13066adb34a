"""Rewriting with functions given by the user, called before and after the children of each node."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, OptionError, did_you_mean, type_in_words
from tedsl.ir.expr import BufferLoad, Load
from tedsl.ir.node import SCOPE, Node
from tedsl.ir.source_line import user_level
from tedsl.ir.stmt import BufferStore, Store
from tedsl.ir.walk.contents import contains

Step = Callable[[Any], Any]
_FLAT = {"BufferStore": "tir.Store(o.buffer_var, o.value, o.index)", "BufferLoad": "tir.Load(o.dtype, o.buffer_var, o.index)"}


def ir_transform(stmt: Any, preorder: Step | None, postorder: Step | None, only_enable: Iterable[str] | None = None) -> Any:
    """`stmt` with nodes replaced by the results of `preorder` (called before the children are visited) or `postorder` (after).

    A result of None keeps the node; a result of preorder is not visited. only_enable: names of node classes, such as
    "tir.For"; both functions are called for these only, and names of no class are refused. A node that occurs several
    times is visited once.
    """
    if not isinstance(stmt, Node):
        raise ArgumentTypeError(f"ir_transform goes through a statement or an expression, not {type_in_words(stmt)}",
                                hint='the body of a function: mod["main"].body')
    enabled = None if only_enable is None else _enabled(stmt, only_enable)
    done: dict[Node, Any] = {}
    opened: set[Node] = set()
    stack: list[Node] = [stmt]
    while stack:
        node = stack[-1]
        mine = enabled is None or type(node).__name__ in enabled
        if node in done:
            stack.pop()
        elif node in opened:
            stack.pop()
            made = node.map_children(done.__getitem__)
            replaced = _node(postorder(made)) if postorder is not None and mine else None
            done[node] = made if replaced is None else replaced
        else:
            opened.add(node)
            early = _node(preorder(node)) if preorder is not None and mine else None
            if early is None:
                stack.extend(reversed(node.child_nodes()))
            else:
                done[node] = early
    return done[stmt]


def _node(replaced: Any) -> Any:
    """What a function of the user gives for a node; refused where that is no node, but for numbers, which are constants."""
    if isinstance(replaced, (Node, bool, int, float)) or replaced is None:
        return replaced
    raise ArgumentTypeError(f"ir_transform: the function gives {type_in_words(replaced)} for a node",
                            hint="it gives a statement or an expression, or None, which keeps the node")


def _enabled(stmt: Node, names: Iterable[str]) -> set[str]:
    """The names of classes that `names` mean; a warning where accesses to buffers are meant and `stmt` has flat ones alone."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentTypeError(f"only_enable is a list of names of node classes, not {names!r}",
                                hint=f"[{names!r}]" if isinstance(names, str) else '["tir.For"]')
    enabled = {str(name).split(".")[-1]: name for name in names}
    for short, name in enabled.items():
        if not _is_class_of_nodes(short):
            known = sorted(filter(_is_class_of_nodes, tuple(SCOPE)))
            raise OptionError(f"ir_transform: there are no nodes called {name!r}", hint=did_you_mean(short, known, "there are"))
    is_flat = contains(stmt, Store, Load) and not contains(stmt, BufferStore, BufferLoad)
    if is_flat and enabled and enabled.keys() <= _FLAT.keys():
        warnings.warn(_of_flat_memory(list(enabled)), UserWarning, stacklevel=user_level())
    return set(enabled)


def _of_flat_memory(names: Sequence[str]) -> str:
    flat = " and ".join(name.replace("Buffer", "tir.") for name in names)
    return (f"ir_transform: the statement has no {' and no '.join(names)}: nothing changes. Lowered modules hold {flat}, of "
            "flat memory, with o.buffer_var and o.index in the place of o.buffer and o.indices\n  "
            f"hint: {' and '.join(_FLAT[name] for name in names)}")


def _is_class_of_nodes(name: str) -> bool:
    cls = SCOPE.get(name)
    return isinstance(cls, type) and issubclass(cls, Node) and "init_fields" in vars(cls)
