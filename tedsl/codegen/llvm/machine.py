"""Drives LLVM: one TargetMachine per target, the lists of passes, objects and assembly."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tedsl.codegen.llvm.effort import LEAN, directed, effort_of
from tedsl.codegen.llvm.linking.elf import undefined_symbols
from tedsl.errors import ArgumentError, InternalError
from tedsl.runtime.fork import guarded_lock
from tedsl.target import Target
from tedsl.target.host import llvm_binding

_lock = guarded_lock()  # LLVM's TargetMachines are not for several threads at once
llvm_lock = _lock
_LEFT_OUT = re.compile(f"^(attributes #.*) optnone(.*) {LEAN}", re.MULTILINE)
_HELPER = re.compile("__aeabi_u?(l|i)div(mod)?|__aeabi_(u?l2[fd]|[fd]2u?lz|l(cmp|mul|lsl|lsr|asr))|__u?(div|mod)(mod)?di[34]|"
                     "__(float(un)?di[sd]f|fix(uns)?[sd]fdi)")
_SOFT_FLOAT = re.compile("__aeabi_[fd](add|sub|rsub|mul|div|neg|cmp[a-z]+|2[a-z]+)|__aeabi_(ui|i|ul|l)2[fd]|"
                         "__(add|sub|mul|div)[sd]f3")
_LIBC = frozenset(("memset", "memcpy", "memmove"))  # LLVM writes calls of them for loops that fill or copy


@lru_cache(maxsize=1)
def _binding() -> Any:
    """Returns llvmlite's binding, initialised for all architectures that it was built with."""
    llvm = llvm_binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@lru_cache(maxsize=64)
def target_machine(target: Target, effort: int = 3) -> Any:
    """Returns the TargetMachine of `target`, created once; `effort` from 0 (compiles six times as fast) to 3.

    The caller holds the lock of this file's functions.
    """
    llvm = _binding()
    try:
        llvm_target = llvm.Target.from_triple(target.triple)
    except RuntimeError:
        raise ArgumentError(f"LLVM cannot generate code for the triple {target.triple!r}",
                            hint="write -mtriple=x86_64-linux-gnu or -mtriple=aarch64-linux-gnu") from None
    machine = llvm_target.create_target_machine(cpu=target.cpu, features=target.feature_string, opt=effort, reloc="pic",
                                                codemodel="default")
    if str(machine.target_data).startswith("E"):
        raise ArgumentError(f"{target.triple} is big-endian, and code is made for little-endian processors",
                            hint="powerpc64le and mipsel are little-endian; get_source of target=\"c\" is C for any compiler")
    return machine


def optimize(text: str, target: Target, *, vectorize: bool, unroll: bool = False,
             link: Callable[[Any], None] | None = None) -> Any:
    """Verifies and optimises the module in `text`: with LLVM's loop vectorizer, or by a short list of passes (and its
    unroller), which functions that are too large for the former get in any case.

    link: links imported code into the module first.
    """
    llvm = _binding()
    effort = effort_of(text, vectorize)
    vectorize = vectorize and effort.pipeline
    if not vectorize:
        effort = replace(effort, lean=frozenset())
    with _lock, _switched("instcombine-code-sinking", target.architecture != "nvptx64"):
        module = _parsed(llvm, directed(text, effort))
        machine = target_machine(target)
        module.data_layout = _data_layout(machine)
        if link is not None:
            link(module)
        apart = effort.combine and bool(effort.settled) and not vectorize and not unroll and link is None
        builder, passes = _pass_manager(llvm, machine, vectorize, unroll, effort.combine and not apart)
        passes.run(module, builder)
        _free(llvm, passes)
        if apart:
            _combine(llvm, module, machine, effort.settled)
        if effort.lean:
            module = _with_lean(llvm, module, machine, unroll)
        if link is not None:
            _drop_unused(llvm, module, machine)
        return module


@lru_cache(maxsize=64)
def _data_layout(machine: Any) -> str:
    return str(machine.target_data)


def parsed(text: str) -> Any:
    """Returns the verified module in `text`, as it is."""
    return _parsed(_binding(), text)


def _with_lean(llvm: Any, module: Any, machine: Any, unroll: bool) -> Any:
    """Returns `module` with the lean list applied to the functions that LLVM's pipeline left out.

    Their attribute for that is removed, for under it the selection of instructions would do little, too.
    """
    mark = LEAN.encode()
    names = [function.name for function in module.functions if mark in b" ".join(function.attributes)]
    module = _parsed(llvm, _LEFT_OUT.sub(r"\1\2", str(module)))
    passes = _lean_passes(llvm.create_new_function_pass_manager(), unroll)
    for name in names:
        passes.run(module.get_function(name), _builder(llvm, machine))
    _free(llvm, passes)
    return module


def _combine(llvm: Any, module: Any, machine: Any, settled: frozenset[str]) -> None:
    """Combines the instructions of the functions of `module` but for those that are `settled`."""
    passes = None
    for function in module.functions:
        if not function.is_declaration and f"@{function.name}" not in settled:
            if passes is None:
                passes = llvm.create_new_function_pass_manager()
                passes.add_instruction_combine_pass()
                passes.add_simplify_cfg_pass()
            passes.run(function, _builder(llvm, machine))
    if passes is not None:
        _free(llvm, passes)


def _parsed(llvm: Any, text: str) -> Any:
    """Returns the verified module in `text`."""
    try:
        return llvm.parse_assembly(text)
    except RuntimeError as error:
        raise InternalError(f"LLVM does not accept the module that was written: {error}") from None


def _drop_unused(llvm: Any, module: Any, machine: Any) -> None:
    """Removes imported functions that are no longer called."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, _builder(llvm, machine))
    _free(llvm, passes)


def _builder(llvm: Any, machine: Any, vectorize: bool = False) -> Any:
    """Returns a pass builder, for one run: in a second it would call what watched the first, whose memory is gone."""
    options = llvm.create_pipeline_tuning_options(speed_level=2 if vectorize else 1)
    options.loop_vectorization = vectorize
    options.slp_vectorization = False  # it uses values before their definition (LLVM 22), and the process ends in selection
    return llvm.create_pass_builder(machine, options)


def _pass_manager(llvm: Any, machine: Any, vectorize: bool, unroll: bool, combine: bool = True) -> tuple[Any, Any]:
    builder = _builder(llvm, machine, vectorize)
    if vectorize:
        return builder, builder.getModulePassManager()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    return builder, _lean_passes(passes, unroll, combine)


def _lean_passes(passes: Any, unroll: bool, combine: bool = True) -> Any:
    """Adds the passes of the lean list that work on functions to the pass manager `passes`, and returns it."""
    passes.add_sroa_pass()
    if combine:
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    if unroll:
        passes.add_loop_unroll_pass()
    return passes


def optimize_import(module: Any, target: Target) -> None:
    """Optimises the module of an imported text. The caller holds `llvm_lock`."""
    llvm = _binding()
    builder, passes = _pass_manager(llvm, target_machine(target), vectorize=True, unroll=False)
    passes.run(module, builder)
    _free(llvm, passes)


def loaded_llvm() -> Any:
    """Returns llvmlite's binding, initialised."""
    return _binding()


def _free(llvm: Any, passes: Any) -> None:
    """Frees a pass manager: up to llvmlite 0.50 its class inherits an empty `_dispose` before the real one, 65 KB each time."""
    dispose = getattr(llvm.newpassmanagers.NewPassManager, "_dispose", None)
    if dispose is not None and type(passes)._dispose is not dispose:
        dispose(passes)
        passes.detach()


@contextmanager
def _switched(option: str, on: bool) -> Iterator[None]:
    """Switches an option of LLVM that is on by default off meanwhile, unless `on`. The caller holds the lock.

    On devices InstCombine keeps instructions where they are: sums of many steps whose result is used behind a barrier would all
    move there, and what they add, which cannot move with them, would fill all registers.
    """
    if not on:
        _binding().set_option("tedsl", f"-{option}=false")
    try:
        yield
    finally:
        if not on:
            _binding().set_option("tedsl", f"-{option}=true")


@contextmanager
def _selecting(target: Target) -> Iterator[None]:
    """Holds the lock while instructions are selected, and on x86-64 switches LLVM's loop strength reduction off meanwhile.

    The emitter puts invariant parts of addresses outside of loops, and x86-64 adds the rest in the instruction. Measured: of
    convolutions a quarter to a half of the time in LLVM, of a transposition 85 %, for code that is as fast or slower. The
    option is LLVM's and for the whole process: another user of it has it back when the lock is free.
    """
    llvm = _binding()
    with _lock:
        switch = target.architecture == "x86-64"
        if switch:
            llvm.set_option("tedsl", "-disable-lsr=true")
        try:
            yield
        finally:
            if switch:
                llvm.set_option("tedsl", "-disable-lsr=false")


def object_code(module: Any, target: Target, effort: int = 3, imported: bool = False) -> bytes:
    """Compiles an optimised module to an object. InternalError if it uses a symbol that the module does not declare.

    imported: the module contains imported code, which may use operations that are library calls on this target.
    """
    with _selecting(target):
        image: bytes = target_machine(target, effort).emit_object(module)
    if image[:4] == b"\x7fELF" and not imported:
        check_symbols(image, _Declared(module))
    return image


def is_compiler_helper(name: str) -> bool:
    """Tells whether `name` is a function of libgcc by which 32-bit ARM divides and converts integers of 64 bits."""
    return bool(_HELPER.fullmatch(name))


class _Declared:
    """The symbols that a module of LLVM declares: asked for one by one, since few are used and each costs calls of LLVM."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __contains__(self, name: object) -> bool:
        for find in (self._module.get_function, self._module.get_global_variable):
            try:
                return bool(find(name).is_declaration)
            except NameError:
                pass
        return False


def check_symbols(image: bytes, declared: Container[str]) -> None:
    """Raises InternalError if the object calls functions not in `declared`, as LLVM does for instructions that the target
    lacks; ArgumentError if it lacks all for floats.
    """
    foreign = sorted({name for name in undefined_symbols(image)
                      if name not in declared and name not in _LIBC and not is_compiler_helper(name)})
    if any(map(_SOFT_FLOAT.fullmatch, foreign)):
        raise ArgumentError(f"the processor of this target has no instructions for floats: the code calls {', '.join(foreign)}",
                            hint="name one that has: -mtriple=armv7a-linux-gnueabihf, or -mattr=+f,+d")
    if foreign:
        raise InternalError(f"the object calls {', '.join(foreign)}, which the module does not declare: "
                            "an operation that the target lacks must be written out")


def assembly(module: Any, target: Target) -> str:
    """Returns the assembly of an optimised module."""
    with _selecting(target):
        text: str = target_machine(target).emit_assembly(module)
        return text
