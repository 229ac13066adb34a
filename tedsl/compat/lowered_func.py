"""The passes of TVM 0.6 over functions: `tvm.ir_pass.MakeAPI(stmt, "f", [n, Ab, Bb], 0, True)` makes one of a statement.

What was a LoweredFunc is a PrimFunc with its fields. In TVM 0.6 a pass got the target as an argument, or needed none; today's
read it from the attribute "target" of a function, which a function has here during the pass alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, ParamSpec, TypeVar

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import FrozenDict
from tedsl.ir.stmt import LAUNCH, AttrStmt, Stmt
from tedsl.ir.walk.visitor import post_order_visit
from tedsl.passes.coprocessors.combine_contexts import combine_contexts
from tedsl.passes.facts.threads import has_launch
from tedsl.passes.module_pass import ModulePass, on_function
from tedsl.passes.verify_memory import accessed_by_host
from tedsl.target.current import as_target
from tedsl.target.stack import current_target
from tedsl.target.target import Target
from tedsl.tir import transform

DEVICE = "cuda"  # of kernels, where no target says another
_GPUS = frozenset({2, 4, 7, 8, 10, 11})  # DLDeviceType: cuda, opencl, vulkan, metal, rocm; and opengl of TVM 0.6
P = ParamSpec("P")
R = TypeVar("R")


class LoweredFunc(PrimFunc):
    """A function with the fields that it had in TVM 0.6, beside those of today."""

    __slots__ = ()
    MixedFunc: ClassVar[int] = 0
    HostFunc: ClassVar[int] = 1
    DeviceFunc: ClassVar[int] = 2

    @property
    def args(self) -> tuple[Var, ...]:
        """The parameters."""
        return self.params

    @property
    def thread_axis(self) -> tuple[IterVar, ...]:
        """The axes of threads that its launches are over, each once."""
        found: list[IterVar] = []
        post_order_visit(self.body, lambda node: found.append(node.node)
                         if isinstance(node, AttrStmt) and node.attr_key == LAUNCH else None)
        return tuple({axis.thread_tag: axis for axis in reversed(found)}.values())

    @property
    def func_type(self) -> int:
        """MixedFunc, or after SplitHostDevice what it is."""
        return _FUNC_TYPES.get(self.attrs.get(_CONVENTION, 0), self.MixedFunc)

    @property
    def is_restricted(self) -> bool:
        """Whether its buffers do not overlap."""
        return bool(self.attrs.get("tir.noalias", False))


_CONVENTION = "calling_conv"  # the attribute that kernels get
_FUNC_TYPES = {1: LoweredFunc.HostFunc, 2: LoweredFunc.DeviceFunc}


def as_lowered(func: PrimFunc) -> LoweredFunc:
    """The function with the fields of 0.6."""
    return func if isinstance(func, LoweredFunc) else LoweredFunc(*[getattr(func, name) for name in func.init_fields])


def takes_modules(step: Callable[P, R]) -> Callable[P, R]:
    """Decorator of passes: of a module, as tedsl.lower gives where TVM 0.6 gave a statement, they take its only function."""
    @functools.wraps(step)
    def call(*args: Any, **options: Any) -> R:
        return step(*[_only_function(step.__name__, arg) for arg in args],
                    **{key: _only_function(step.__name__, arg) for key, arg in options.items()})

    return call


def _only_function(name: str, given: Any) -> Any:
    """Returns the function of a module of one, and what is no module as it is; ArgumentError for modules of another count."""
    if not isinstance(given, IRModule):
        return given
    if len(given) != 1:
        raise ArgumentError(f"ir_pass.{name} takes one function; the module has {len(given)}: {', '.join(given) or '(none)'}",
                            hint='pass the functions one by one, mod["main"]' if len(given) else "mod = tedsl.lower(s, [A, B])")
    (func,) = [func for _, func in given.items()]
    return func


def MakeAPI(body: Stmt, name: str, api_args: Sequence[Var | Buffer], num_unpacked_args: int, is_restricted: bool) -> PrimFunc:
    """The function `name` of a statement over flat memory. api_args: what a call passes, in order. is_restricted: the buffers
    do not overlap. num_unpacked_args: accepted; a call passes arrays and numbers.
    """
    if not isinstance(body, Stmt):
        raise ArgumentTypeError(f"ir_pass.MakeAPI takes a statement, not {type_in_words(body)}",
                                hint="what ir_pass.StorageFlatten gives")
    buffer_map: dict[Var, Buffer] = {}
    params: list[Var] = []
    for arg in api_args:
        if not isinstance(arg, (Var, Buffer)):
            raise ArgumentTypeError(f"ir_pass.MakeAPI: an argument of {name} is {type_in_words(arg)}",
                                    hint="arguments are variables, and buffers of tvm.decl_buffer that StorageFlatten gave to "
                                         "the tensors")
        params.append(Var(arg.name, HANDLE) if isinstance(arg, Buffer) else arg)
        if isinstance(arg, Buffer):
            buffer_map[params[-1]] = arg
    attrs = {"global_symbol": name, "tir.noalias": bool(is_restricted)}
    return _applied("MakeAPI", transform.MakePackedAPI(), PrimFunc(tuple(params), body, None, buffer_map, attrs))


@takes_modules
def SplitHostDevice(func: PrimFunc) -> list[PrimFunc]:
    """The host's function, then a function for each launch."""
    with_target = _for(_function("SplitHostDevice", func), _device())
    parts = transform.SplitHostDevice().applied(IRModule({func.name: with_target}))
    host, *kernels = [as_lowered(_without_target(part, func)) for _, part in parts.items()]
    return [as_lowered(host.with_attr(_CONVENTION, 1)), *kernels]


@takes_modules
def ThreadSync(func: PrimFunc, storage_scope: str) -> PrimFunc:
    """A function with barriers where threads of a block share memory of this scope."""
    return _applied("ThreadSync", transform.ThreadSync(storage_scope), func)


@takes_modules
def LowerThreadAllreduce(func: PrimFunc, warp_size: int) -> PrimFunc:
    """A function whose reductions across threads are exchanges of values. warp_size: accepted; the device has its own."""
    return _on_target("LowerThreadAllreduce", transform.LowerThreadAllreduce(), func, _device())


@takes_modules
def LowerWarpMemory(func: PrimFunc, warp_size: int) -> PrimFunc:
    """A function whose memory of scope "warp" is registers and shuffles. warp_size: accepted; the device has its own."""
    return _on_target("LowerWarpMemory", transform.LowerWarpMemory(), func, _device())


@takes_modules
def LowerIntrin(func: PrimFunc, target: Target | str) -> PrimFunc:
    """A function with operators for which the target has code."""
    return _on_target("LowerIntrin", transform.LowerIntrin(), func, as_target(target))


@takes_modules
def LowerCustomDatatypes(func: PrimFunc, target: Target | str) -> PrimFunc:
    """A function with what `datatype` registers for the target in place of operators of the program's types."""
    return _on_target("LowerCustomDatatypes", transform.LowerCustomDatatypes(), func, as_target(target))


@takes_modules
def LowerTVMBuiltin(func: PrimFunc) -> PrimFunc:
    """A function that stores the arguments of packed functions to arrays on the stack."""
    return _applied("LowerTVMBuiltin", transform.LowerTVMBuiltin(), func)


@takes_modules
def CombineContextCall(func: PrimFunc) -> PrimFunc:
    """The function with each context of a thread, `tvm_thread_context`, in one let in front of its uses."""
    return combine_contexts(_function("CombineContextCall", func))


@takes_modules
def BindDeviceType(func: PrimFunc, device_type: int) -> PrimFunc:
    """The function itself: the target of `build` says on which device it runs."""
    return _function("BindDeviceType", func)


@takes_modules
def VerifyMemory(func: PrimFunc, device_type: int) -> bool:
    """Tells whether a function, for the device of this number (`tvm.gpu(0).device_type`), accesses its arguments only in
    threads; True for devices that are no GPUs. Devices that tedsl does not run on have their numbers too.
    """
    target = as_target(DEVICE if device_type in _GPUS else "llvm")
    return not accessed_by_host(_for(_function("VerifyMemory", func), target))


def _function(name: str, func: Any) -> PrimFunc:
    if not isinstance(func, PrimFunc):
        raise ArgumentTypeError(f"ir_pass.{name} takes a function, not {type_in_words(func)}",
                                hint="what tvm.lower gives, or ir_pass.MakeAPI makes of a statement")
    return func


def _applied(name: str, step: ModulePass, func: PrimFunc) -> PrimFunc:
    return as_lowered(on_function(step, _function(name, func)))


def _on_target(name: str, step: ModulePass, func: PrimFunc, target: Target) -> PrimFunc:
    return as_lowered(_without_target(_applied(name, step, _for(_function(name, func), target)), func))


def _for(func: PrimFunc, target: Target) -> PrimFunc:
    return func if "target" in func.attrs else func.with_attr("target", target)


def _without_target(made: PrimFunc, given: PrimFunc) -> PrimFunc:
    """Returns `made` without the attribute that `given` did not have; functions that launch threads keep it."""
    if "target" in given.attrs or "target" not in made.attrs or has_launch(made.body):
        return made
    return made.replace(attrs=FrozenDict({key: value for key, value in made.attrs.items() if key != "target"}))


def _device() -> Target:
    """The current target if it has threads, else `DEVICE`."""
    current = current_target()
    return current if current is not None and "gpu" in current.keys else as_target(DEVICE)
