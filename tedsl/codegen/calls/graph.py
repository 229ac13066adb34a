"""The call graph of a module. Recursion is refused, since it could exhaust the stack."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.errors import LoweringError
from tedsl.ir.expr import Call, StringImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.functions import C_MATH, FUNCTIONS
from tedsl.ir.node import Node
from tedsl.ir.ops import CALL_EXTERN, CALL_PACKED, CALL_PURE_EXTERN
from tedsl.ir.stmt import AttrStmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.symbols import extern_address

BY_NAME = (CALL_EXTERN, CALL_PURE_EXTERN, CALL_PACKED)
DEEPEST = 64  # functions that call each other in a row: each may hold 64 KiB of arrays on the stack


def callee(node: Node, caller: PrimFunc, functions: Mapping[str, PrimFunc]) -> PrimFunc | None:
    """Returns the function of the module that `node` in `caller` calls; None if it is not a call of such a function.

    A function that wraps a C or Python function of its own name calls that one.
    """
    if not isinstance(node, Call) or node.op not in BY_NAME or not isinstance(node.args[0], StringImm):
        return None
    name = node.args[0].value
    return None if name == caller.name and _is_outside_too(node, name, caller) else functions.get(name)


def _is_outside_too(call: Call, name: str, caller: PrimFunc) -> bool:
    if call.op is CALL_PACKED:
        return name in FUNCTIONS
    imports = (s.attr_key.startswith("pragma_import_") for s in post_order(caller.body) if isinstance(s, AttrStmt))
    return name in C_MATH or any(imports) or bool(extern_address(name))


class CallGraph:
    """The calls among the functions of a module. `called` maps the name of each to the names of those that it calls.

    Raises LoweringError for functions that call themselves, directly or through others, and for chains of more than DEEPEST.
    """

    def __init__(self, functions: Mapping[str, PrimFunc]) -> None:
        self.functions = functions
        self.called: dict[str, tuple[str, ...]] = dict.fromkeys(functions, ())
        if len(functions) > 1 or any(_calls_by_name(func) for func in functions.values()):
            self.called = {name: _called(func, functions) for name, func in functions.items()}
        self.calling = {name for names in self.called.values() for name in names}  # those that another function calls
        self._order = self._ordered()

    def _ordered(self) -> list[str]:
        """Returns the names in an order in which each function comes after those that it calls."""
        depth: dict[str, int] = {}
        path: list[str] = []
        stack = [(name, False) for name in reversed(self.called)]
        while stack:
            name, done = stack.pop()
            if done:
                path.pop()
                depth[name] = 1 + max((depth[inner] for inner in self.called[name]), default=0)
                if depth[name] > DEEPEST:
                    raise LoweringError(f"{name} begins a chain of {depth[name]} functions that call each other; {DEEPEST} fit "
                                        "the stack", hint="put the work of several of them into one function")
            elif name in path:
                around = " → ".join([*path[path.index(name):], name])
                raise LoweringError(f"{name} calls itself: {around}; functions of a module are not recursive, for nothing "
                                    "bounds the stack that they would take", hint="write a loop; if a function of C or Python "
                                    "of this name is meant, give the function of the module another one")
            elif name not in depth:
                path.append(name)
                stack += [(name, True), *((inner, False) for inner in reversed(self.called[name]))]
        return list(depth)

    def reached(self, marked: set[str]) -> set[str]:
        """Returns the names `marked` and those of all functions that call one of them, directly or through others."""
        found = set(marked)
        for name in self._order:
            if not found.isdisjoint(self.called[name]):
                found.add(name)
        return found

    def connected(self) -> set[str]:
        """Returns the names of the functions that call another one of the module, or are called by one."""
        return self.calling | {name for name, names in self.called.items() if names}


def _calls_by_name(func: PrimFunc) -> bool:
    return contains(func.body, *BY_NAME)


def _called(func: PrimFunc, functions: Mapping[str, PrimFunc]) -> tuple[str, ...]:
    found = (callee(node, func, functions) for node in post_order(func.body))
    return tuple(dict.fromkeys(called.name for called in found if called is not None))
