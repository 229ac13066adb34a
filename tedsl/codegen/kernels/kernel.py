"""A function in the versions that are compiled, after the passes that fit it to its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tedsl.codegen.calls.callees import Messages, ModuleCalls, module_calls
from tedsl.codegen.calls.graph import CallGraph
from tedsl.codegen.kernels.abi import COMPACT, assertion_messages, kernel_arguments, kernel_name
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.ir.expr import IntImm
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import CALL_EXTERN, CALL_PACKED
from tedsl.ir.stmt import For, ForKind, Stmt, While
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import statements
from tedsl.passes.assume_compact import assume_compact
from tedsl.passes.config import PassConfig
from tedsl.passes.default import target_pipeline
from tedsl.record import record
from tedsl.runtime.signature import Signature, signature_of
from tedsl.target.target import Target

_LONG = 1 << 16  # iterations after which a kernel counts as long whatever the size of its arrays


@record
class Kernel:
    """A function in the versions that are compiled: a general one, and one for compact arrays where that differs."""

    signature: Signature
    general: PrimFunc
    compact: PrimFunc | None
    shared: Messages | None = None  # of the functions of the module that it calls, or that call it

    @property
    def messages(self) -> list[str]:
        """Lists the distinct assertion messages of all versions, those of the general version first; or `shared`."""
        if self.shared is not None:
            return self.shared.seen_from(self.general.name)
        return [message for func in self.versions() for message in assertion_messages(func)]

    @property
    def runs_long(self) -> bool:
        """Tells whether the GIL is released in every call; where functions call each other, one may call Python for another."""
        return self.shared is not None or runs_long(self.general)

    def versions(self) -> list[PrimFunc]:
        return [self.general] if self.compact is None else [self.general, self.compact]

    def symbol(self, func: PrimFunc) -> KernelSymbol:
        pointers = len(list(self.signature.tensors()))
        before = 0 if func is self.general or self.shared is not None else len(assertion_messages(self.general))
        return KernelSymbol(kernel_name(func), tuple(kernel_arguments(func)[pointers:]), before, self.signature.result)


def make_kernel(func: PrimFunc, target: Target, config: PassConfig) -> Kernel:
    """Returns the Kernel of `func` after the passes that fit it to the machine of `target`, with its version for compact
    arrays.
    """
    signature = signature_of(func)
    pipeline = target_pipeline(target, config)
    general = pipeline(func)
    assumed = assume_compact(func)
    compact = None
    if assumed is not func:
        compact = pipeline(assumed.with_attr("global_symbol", func.name + COMPACT))
    return Kernel(signature, general, compact)


def with_calls(graph: CallGraph, kernels: Sequence[Kernel]) -> tuple[ModuleCalls, list[Kernel]]:
    """Returns the calls among the functions, and the kernels; those that call each other share their messages."""
    connected, messages = graph.connected(), Messages()
    kernels = [replace(k, shared=messages) if k.general.name in connected else k for k in kernels]
    return module_calls(graph, messages, [
        (k.signature, k.general, k.symbol(k.general), None if k.compact is None else k.symbol(k.compact)) for k in kernels
    ]), kernels


def runs_long(func: PrimFunc) -> bool:
    """Tells whether the kernel always releases the GIL: it may wait, call Python, or loop long even on small arrays."""
    if contains(func.body, While, CALL_PACKED, CALL_EXTERN):
        return True
    if any(isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL for stmt in statements(func.body)):
        return True
    return _iterations(func.body) >= _LONG


def _iterations(node: Stmt) -> int:
    """Returns the largest number of iterations of a loop nest in `node`; loops of symbolic extent count as 1."""
    inner = max((_iterations(child) for child in node.child_nodes() if isinstance(child, Stmt)), default=1)
    if isinstance(node, For):
        return inner * (node.extent.value if isinstance(node.extent, IntImm) else 1)
    return inner
