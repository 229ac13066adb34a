"""The functions of a module as callees of one another: their symbols, and the statuses by which they report failures."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace

from tedsl.codegen.calls.graph import CallGraph
from tedsl.codegen.kernels.abi import COMPACT, FIRST_ASSERTION
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.ir.expr import Call
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import CALL_PACKED
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record
from tedsl.runtime.signature import Signature

BODY = ".body"  # after the symbol of a kernel: the same without a frame for exceptions of its own, which the caller gives


class Messages:
    """The messages of all functions of a call graph in one numbering: a status has the same meaning in each of them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def status(self, owner: str, message: str) -> int:
        """Returns the status for a failure of the function `owner` with `message`."""
        return FIRST_ASSERTION + self._numbers.setdefault((owner, message), len(self._numbers))

    def seen_from(self, name: str) -> list[str]:
        """Lists the messages as a caller of the function `name` sees them; those of other functions name their function."""
        return [message if owner == name else f"in {owner}: {message}" for owner, message in self._numbers]


@record
class Callee:
    """A function that others of its module may call. compact: the version for compact arrays, or None.

    takes_frame: it may call Python, so that its last argument is the frame of its caller for exceptions.
    """

    signature: Signature
    func: PrimFunc
    general: KernelSymbol
    compact: KernelSymbol | None
    takes_frame: bool


@record
class ModuleCalls:
    """The calls among the functions of a module.

    callees: the functions that are called, by name; their versions for compact arrays by that name with COMPACT behind it.
    connected: those that call others or are called. python: those that may call Python, directly or through others.
    """

    callees: Mapping[str, Callee] = field(default_factory=dict)
    connected: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    messages: Messages = field(default_factory=Messages)


def plain_name(func: PrimFunc) -> str:
    """Returns the name of the function of which `func` is a version."""
    return func.name.removesuffix(COMPACT)


def module_calls(graph: CallGraph, messages: Messages,
                 kernels: Sequence[tuple[Signature, PrimFunc, KernelSymbol, KernelSymbol | None]]) -> ModuleCalls:
    """Returns the calls in `graph` with the data that code generation needs.

    kernels: signature, function and symbols of each function of the module.
    """
    own = graph.functions
    python = graph.reached({name for name, func in own.items() if calls_python(func.body, own.keys() - {name})})
    callees = {}
    for signature, func, general, compact in kernels:
        if func.name in graph.calling:
            takes_frame = func.name in python
            if takes_frame:
                general = replace(general, symbol=general.symbol + BODY)
                compact = None if compact is None else replace(compact, symbol=compact.symbol + BODY)
            callees[func.name] = Callee(signature, func, general, compact, takes_frame)
            if compact is not None:
                callees[func.name + COMPACT] = Callee(signature, func, compact, None, takes_frame)
    return ModuleCalls(callees, frozenset(graph.connected()), frozenset(python), messages)


def calls_python(root: Node, own: Container[str] = ()) -> bool:
    """Tells whether `root` contains a call of a Python function. own: names of functions of the module, which are none."""
    return contains(root, CALL_PACKED) and any(
        isinstance(n, Call) and n.op is CALL_PACKED and getattr(n.args[0], "value", "") not in own for n in post_order(root))
