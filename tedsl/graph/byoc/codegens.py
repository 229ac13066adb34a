"""The compilers of parts of graphs, by name: those here, those that programs register, and entry points of `tedsl.codegens`.

A codegen is a function of graphs, each with a name of its own, that returns a module with a function for each:

    def mine(functions: Sequence[Graph]) -> RuntimeModule: ...

    mine.supports = lambda node: node.operator in ("add", "multiply")        # optional: what graph.annotate takes for it

The functions of the module take an array for each input and then one for each output, which they write.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node
from tedsl.plugins import CODEGENS, load_plugin, plugin_names
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.symbols import provider

Codegen: TypeAlias = Callable[[Sequence[Graph]], RuntimeModule]

_OURS = {"ccompiler": "tedsl.graph.byoc.ccompiler.codegen:codegen",
         "examplejson": "tedsl.graph.byoc.examplejson.codegen:codegen"}
_REGISTERED: dict[str, Codegen] = {}


def register_codegen(name: str, function: Codegen | None = None, override: bool = False) -> Any:
    """Makes `function` the codegen of graphs whose compiler is `name`; also a decorator.

    override: replace one that a program registered. Raises ArgumentError if there is one of that name.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"register_codegen: {name!r} cannot be the name of a compiler", hint="write an identifier")
    if function is None:
        return lambda decorated: register_codegen(name, decorated, override)
    if not callable(function):
        raise ArgumentTypeError(f"register_codegen: {function!r} is not a function of graphs")
    if name in codegen_names() and not (override and name in _REGISTERED):
        hint = "override=True replaces one that was registered" if name in _REGISTERED else "choose another name"
        raise ArgumentError(f"register_codegen: there is a codegen {name!r}", hint=hint)
    _REGISTERED[name] = function
    return function


def codegen_names() -> list[str]:
    """The names of all codegens, sorted."""
    return sorted({*_OURS, *_REGISTERED, *plugin_names(CODEGENS)})


def codegen_named(name: str) -> Codegen:
    """The codegen called `name`. Raises GraphError, with the names of those that there are, if there is none."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    found = provider(_OURS[name]) if name in _OURS else load_plugin(CODEGENS, name)
    if found is None:
        near = difflib.get_close_matches(str(name), codegen_names(), 1)
        raise GraphError(f"there is no codegen {name!r}; there are {', '.join(codegen_names())}",
                         hint=f"did you mean {near[0]!r}?" if near else "register_codegen adds one, as do packages with "
                              "an entry point of tedsl.codegens")
    if not callable(found):
        raise ArgumentTypeError(f"the codegen {name!r} of an installed package is {found!r}, which is not a function of graphs")
    return found


def supported_by(name: str) -> Callable[[Node], bool]:
    """What a codegen says that it takes. Raises GraphError if it says nothing."""
    supports: Callable[[Node], bool] | None = getattr(codegen_named(name), "supports", None)
    if supports is None:
        raise GraphError(f"the codegen {name!r} does not say which nodes it takes",
                         hint=f'name their operators: annotate(g, "{name}", ["add", "nn.relu"])')
    return supports


def external_module(compiler: str, functions: Sequence[Graph]) -> RuntimeModule:
    """The module that a codegen makes of graphs. Raises GraphError if it lacks a function."""
    module = codegen_named(compiler)(tuple(functions))
    if not isinstance(module, RuntimeModule):
        raise GraphError(f"the codegen {compiler!r} returned {module!r}, which is not a module",
                         hint="see tedsl.runtime.RuntimeModule: type_key, get_function, get_source, save_to_bytes")
    for function in functions:
        try:
            module.get_function(function.name)
        except AttributeError:
            raise GraphError(f"the codegen {compiler!r} made a module without the function {function.name}",
                             hint="the module has a function for each graph, by its name") from None
    return module
