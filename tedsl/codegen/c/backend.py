"""Compiles lowered functions into a module of C: its text at once, its machine code when it is first called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tedsl.codegen.c.dialect import dialect_of
from tedsl.codegen.c.emit import emit_module
from tedsl.codegen.c.kernel import CFunction, c_function
from tedsl.codegen.c.running.files import refuse_image
from tedsl.codegen.c.running.program import Program, SourceCall
from tedsl.codegen.c.text.header import header_text
from tedsl.codegen.c.text.module_text import OwnFunction
from tedsl.codegen.c.text.names import is_identifier
from tedsl.codegen.calls.callees import ModuleCalls
from tedsl.codegen.calls.check import check_calls
from tedsl.codegen.calls.graph import BY_NAME, CallGraph
from tedsl.codegen.kernels import abi
from tedsl.codegen.kernels.abi import assertion_messages, own_status
from tedsl.codegen.kernels.fitting import check_fitting
from tedsl.codegen.kernels.kernel import Kernel, make_kernel, with_calls
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir.expr import Call, Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.text import text as loops_text
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.config import PassConfig
from tedsl.runtime.module import Module
from tedsl.target.target import Target

COMPACT = "_compact"  # after the name of a function: its version for compact arrays


class CBackend:
    """The backend of targets of kind `c`."""

    def compile(self, funcs: Sequence[PrimFunc], target: Target, config: PassConfig, *, quick: bool = False) -> Module:
        _check_names([func.name for func in funcs])
        for func in funcs:
            check_fitting(func)
            _check_own_name(func)
        graph = CallGraph({func.name: func for func in funcs})
        check_calls(graph)
        calls, kernels = with_calls(graph, [make_kernel(func, target, config) for func in funcs])
        return module_of(kernels, target, calls, quick=quick)


def module_of(kernels: Sequence[Kernel], target: Target, calls: ModuleCalls | None = None, *, quick: bool = False) -> Module:
    """Returns the module of `kernels`, which are lowered for `target`. calls: those among them."""
    functions = [function for kernel in kernels for function in versions(kernel)]
    called = {} if calls is None else {name: OwnFunction(_symbol(name), callee) for name, callee in calls.callees.items()}
    source = emit_module(functions, dialect_of(target), called)
    program = Program(source, functions, target, quick)
    checked = {kernel.general.name: _call(kernel, program) for kernel in kernels}
    sources: dict[str, Callable[[], str]] = {
        "c": lambda: source,
        "h": lambda: header_text(functions, source),
        "tir": lambda: loops_text(IRModule({k.general.name: k.general for k in kernels})),
    }
    return Module(checked, checked, sources, target, image=refuse_image)


def versions(kernel: Kernel) -> list[CFunction]:
    """Returns the functions of a kernel in C: that for compact arrays first, if there is one."""
    name = c_name(kernel.general.name)
    general = c_function(name, kernel.general, kernel.signature, _statuses(kernel, kernel.general))
    if kernel.compact is None:
        return [general]
    return [c_function(name + COMPACT, kernel.compact, kernel.signature, _statuses(kernel, kernel.compact)), general]


def _statuses(kernel: Kernel, func: PrimFunc) -> Callable[[str], int]:
    """Returns the function that gives the status of each message of `func`, a version of `kernel`."""
    if kernel.shared is not None:
        return functools.partial(kernel.shared.status, kernel.general.name)
    before = 0 if func is kernel.general else len(assertion_messages(kernel.general))
    return lambda message: before + own_status(func)(message)


def _symbol(name: str) -> str:
    """Returns the name in C of a function that is called by `name`."""
    return c_name(name.removesuffix(abi.COMPACT)) + (COMPACT if name.endswith(abi.COMPACT) else "")


def _call(kernel: Kernel, program: Program) -> SourceCall:
    name, compact = c_name(kernel.general.name), ""
    scalars: tuple[Var, ...] = ()
    if kernel.compact is not None:
        compact = name + COMPACT
        scalars = kernel.symbol(kernel.compact).scalars
    return SourceCall(kernel.signature, program, name, compact, scalars, kernel.messages)


def _check_own_name(func: PrimFunc) -> None:
    """Refuses a function that calls another one of its own name, which C does not have."""
    for node in post_order(func.body):
        if isinstance(node, Call) and node.op in BY_NAME and getattr(node.args[0], "value", "") == func.name:
            raise LoweringError(f"{func.name} calls a function of its own name, and in C that is itself",
                                hint="give the function of the module another name")


def c_name(name: str) -> str:
    """Returns the name in C of the function `name`: its own, but for main, which means something else in C."""
    return "main_kernel" if name == "main" else name


def _check_names(names: Sequence[str]) -> None:
    """Refuses names of functions that C cannot have, or that clash with each other."""
    for name in names:
        if not is_identifier(c_name(name)):
            raise ArgumentError(f"a function in C cannot be named {name!r}: a name has letters, digits and single underscores, "
                                "and is neither a word of C or C++ nor one of their library",
                                hint='build(..., name="fused_add")')
        if name + COMPACT in names or (name == "main_kernel" and "main" in names):
            raise ArgumentError(f"one module in C cannot hold {name!r} beside {name + COMPACT!r} or 'main': versions for "
                                "compact arrays and the function main have such names", hint="rename one of them")
