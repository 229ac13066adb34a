"""The program that a call runs: the loops in the version for its arrays, with their sizes known, and the assembly of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.llvm.debug.lines import PrintedLoops, print_loops
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.expr import Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.walk.visitor import variables
from tedsl.passes.races.known_values import Values, value
from tedsl.record import record
from tedsl.runtime.module import Module
from tedsl.runtime.signature import Signature
from tedsl.target.target import Target


@record(eq=False)
class Program:
    """What a call of `module` with `arrays` runs. func: its loops after all passes; known: the sizes that the arrays give;
    loops: the text of all functions with the lines of their statements, to which `listing`, the assembly, refers.
    """

    module: Module
    arrays: tuple[Any, ...]
    func: PrimFunc
    known: Values
    loops: PrintedLoops
    listing: str
    target: Target


def program_of(kernel: Any, arrays: Sequence[Any]) -> Program:
    """Returns the program of a call. Raises ArgumentTypeError for what is not a module of `build`, ArgumentError for a module
    that is not machine code of this machine, ModuleError for one whose loops are not known, and what a call raises.
    """
    if not isinstance(kernel, Module):
        raise ArgumentTypeError(f"why_slow takes a module that build has made, not {type_in_words(kernel)}",
                                hint="why_slow(tedsl.build(s, args), *arrays)")
    target = kernel.target
    if not isinstance(target, Target) or target.kind.name != "llvm" or not target.runs_here:
        raise ArgumentError(f"why_slow looks at machine code that runs here, and this module is for {target}",
                            hint='build it with target="llvm"; a simulator shows what kernels of devices do: docs/simulator.md')
    functions = kernel.compiled_loops()
    kernel(*arrays)
    by_name = {func.name: func for func in functions}
    signature = kernel.signature(kernel.entry_name)
    func = by_name[kernel.entry_name]
    if all(map(_is_compact, arrays)):
        func = by_name.get(kernel.entry_name + COMPACT, func)
    return Program(kernel, tuple(arrays), func, _sizes(signature, arrays), print_loops(functions),
                   str(kernel.get_source("asm")), target)


def _is_compact(array: Any) -> bool:
    flags = getattr(array, "flags", None)
    return flags is None or bool(flags.c_contiguous)


def _sizes(signature: Signature, arrays: Sequence[Any]) -> Values:
    """The variables that arguments of a call determine."""
    known: dict[Var, int] = {}
    for binding in signature.bindings:
        if binding.kind == "scalar" and isinstance(arrays[binding.param], int):
            known[binding.var] = int(arrays[binding.param])
        elif binding.kind == "shape":
            given = int(arrays[binding.param].shape[binding.dim])
            rest = 0
            if binding.expr is not None and set(variables(binding.expr)) <= {*known, binding.var}:
                rest = value(binding.expr, {**known, binding.var: 0}) or 0
            known[binding.var] = (given - rest) // binding.scale
    return known
