"""Kernels of networks: taken from the cache on disk by their text, else scheduled and compiled, equal ones once.

What the cache has needs no formula and no schedule: its key is made of the text of the kernel, of the target and of all that
compiled code depends on. Operators that programs registered are known by their formulas alone, so kernels with these are
found by their schedules, as any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from tedsl.cache.store import current_store
from tedsl.cache.workers import share
from tedsl.codegen.recall import recall, remember
from tedsl.driver import build, build_in_parts
from tedsl.graph.byoc.codegens import external_module
from tedsl.graph.network.costs import operations
from tedsl.graph.network.hoist import divided
from tedsl.graph.network.kernels import ExternalSource, KernelSource
from tedsl.graph.operators import is_of_topi
from tedsl.ir.walk.identity import identity
from tedsl.passes.context import PassContext, current_options
from tedsl.runtime.module import Module
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.versions import machine, versions
from tedsl.schedule.record.advice import is_advised
from tedsl.target.target import Target
from topi.schedules import schedule

_MANY = 4  # kernels that are worth more than one process
_WHAT = "kernel of a network"


def build_kernels(sources: Iterable[KernelSource], target: Target) -> dict[KernelSource, RuntimeModule]:
    """The module of each source, equal ones once. Functions of one other compiler share a module."""
    wanted = dict.fromkeys(sources)
    others = _from_others([source for source in wanted if isinstance(source, ExternalSource)])
    found = {source: _recalled(source, target) for source in wanted if source not in others}
    made = _compiled([source for source, module in found.items() if module is None], target)
    return {**{source: module or made[source] for source, module in found.items()}, **others}


def _from_others(sources: list[ExternalSource]) -> dict[KernelSource, RuntimeModule]:
    """The modules of other compilers. The names in one are different: functions for several sizes of a batch are in several."""
    groups: list[dict[str, ExternalSource]] = []
    for source in sources:
        group = next((one for one in groups if source.name not in one
                      and next(iter(one.values())).compiler == source.compiler), None)
        if group is None:
            groups.append(group := {})
        group[source.name] = source
    found: dict[KernelSource, RuntimeModule] = {}
    for group in groups:
        compiler = next(iter(group.values())).compiler
        module = external_module(compiler, [source.graph for source in group.values()])
        found |= dict.fromkeys(group.values(), module)
    return found


def _compiled(sources: list[KernelSource], target: Target) -> dict[KernelSource, Module]:
    """The modules of sources that the cache does not have. Through the cache, all cores compile; without it, this process."""
    kept = [source for source in sources if _key(source, target) is not None]
    made: dict[KernelSource, Module] = {}
    if len(kept) >= _MANY:
        kept.sort(key=operations, reverse=True)  # the longest first, so that no core has the last one for itself

        def work(number: int) -> None:
            made[kept[number]] = compile_kernel(kept[number], target)

        share(len(kept), work)
    made |= {source: module for source in kept if source not in made and (module := _recalled(source, target)) is not None}
    return {source: made.get(source) or compile_kernel(source, target) for source in sources}


def compile_kernel(source: KernelSource, target: Target) -> Module:
    """Schedules and compiles a kernel, and notes it in the cache."""
    inputs, outputs = source.tensors
    args = [*inputs, *outputs]
    with options_of(source):
        made = schedule(outputs, target)
        if source.fixed:
            module = build_in_parts(made, args, target, source.name, lambda func: divided(func, source.fixed))
        else:
            module = build(made, args, target, name=source.name)
    key = _key(source, target)
    if key is not None:
        remember(key, module)
    return module


def _recalled(source: KernelSource, target: Target) -> Module | None:
    key = _key(source, target)
    if key is None:
        return None
    with options_of(source):
        config = current_options()
        return recall(key, target, config, config.selection.opt_level == 0)


def options_of(source: KernelSource) -> AbstractContextManager[object]:
    """The options under which a kernel is built: those of the program; arrays may overlap if it writes over what it reads."""
    if not source.in_place:
        return nullcontext()
    now = PassContext.current()
    return PassContext(now.opt_level, now.required_pass, now.disabled_pass, config={**now.config, "tir.noalias": False})


def _key(source: KernelSource, target: Target) -> str | None:
    """The key of a kernel in the cache on disk; None if it has none, as where records of measurements advise on schedules."""
    if current_store() is None or is_advised() or not target.runs_here:
        return None
    if not all(is_of_topi(node.operator) for node in source.graph.nodes):
        return None
    environment = versions()
    return None if environment is None else identity((environment, machine(target), _WHAT, source.key, current_options()))
