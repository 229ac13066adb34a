"""The passes over loops by the names of TVM's tir.transform: each call returns a pass that takes a module and returns one.

    mod = tir.transform.Simplify()(mod)

These are the passes that `lower` and `build` run, in the order that `passes/default.py` shows. Options come from the
PassContext that is current when the pass runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tedsl.aliases import import_as
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, entries, type_in_words
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.raw import with_raw_arguments
from tedsl.ir.calls.registered import lower_registered
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import BufferRealize, For, ForKind, While
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.substitute import bind_once
from tedsl.ir.walk.undefined import undefined_vars
from tedsl.ir.walk.visitor import statements
from tedsl.lower.written.function import is_vouched_for, vouch_for, vouch_for_parts
from tedsl.passes.checked.check_accesses import check_accesses
from tedsl.passes.config import PassConfig
from tedsl.passes.context import current_options
from tedsl.passes.default import partition
from tedsl.passes.device.infer_fragments import infer_fragments
from tedsl.passes.device.join_kernels import CALLING_CONVENTION, PACKED
from tedsl.passes.device.lower_allreduce import lower_allreduce
from tedsl.passes.device.lower_warp_memory import lower_warp_memory
from tedsl.passes.device.split_kernels import launch_device_scopes, split_kernels
from tedsl.passes.facts.threads import has_launch
from tedsl.passes.info import PassInfo
from tedsl.passes.loops.hoist_conditions import hoist_conditions
from tedsl.passes.loops.unroll_loops import unroll_loops
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.lower_datatypes import lower_datatypes
from tedsl.passes.machine.legalize_calls import legalize_calls
from tedsl.passes.machine.lower_bfloat16 import bfloat16_as_bits, promote_bfloat16, remove_bfloat16_casts
from tedsl.passes.machine.lower_builtins import lower_builtins
from tedsl.passes.machine.lower_intrinsics import lower_intrinsics
from tedsl.passes.module_pass import ModulePass, named_pass, prim_func_pass
from tedsl.passes.narrow_dtypes import narrow_dtypes
from tedsl.passes.remove_asserts import remove_asserts
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.rewrite_unsafe_selects import rewrite_unsafe_selects
from tedsl.passes.simplify import simplify
from tedsl.passes.storage.flatten_storage import flatten_storage, has_buffers
from tedsl.passes.storage.inject_double_buffer import inject_double_buffer
from tedsl.passes.storage.inject_prefetch import inject_prefetch
from tedsl.passes.storage.inject_rolling_buffer import inject_rolling_buffer
from tedsl.passes.storage.pool_tagged import pool_tagged
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.inject_virtual_threads import inject_virtual_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.passes.verify_memory import verify_memory
from tedsl.runtime.faults import provide_faults
from tedsl.target.current import as_target
from tedsl.target.target import Target
from tedsl.tir.coprocessor_passes import CombineContextCall, LiftAttrScope, LowerDeviceStorageAccessInfo
from tedsl.tir.later_passes import (
    AnnotateEntryFunc,
    BindTarget,
    CommonSubexprElimTIR,
    ConvertForLoopsToSerial,
    ConvertSSA,
    DecorateDeviceScope,
    HoistExpression,
    InjectCopyIntrin,
    RenormalizeSplitPattern,
)
from tedsl.tir.not_planned import NOT_PLANNED, OF_LATER_RELEASES
from tedsl.tir.own_pass import own_pass

__all__ = [
    "Apply", "BF16CastElimination", "BF16Legalize", "BF16Promote", "BF16TypeLowering", "Filter", "HoistIfThenElse",
    "InferFragment", "InjectDoubleBuffer", "InjectPrefetch", "InjectRollingBuffer", "InjectVirtualThread",
    "InstrumentBoundCheckers", "LegalizePackedCalls", "LoopPartition", "LowerCustomDatatypes", "LowerIntrin",
    "LowerTVMBuiltin", "LowerThreadAllreduce", "LowerWarpMemory", "MakePackedAPI", "MakeUnpackedAPI", "ModulePass",
    "NarrowDataType", "PassInfo", "RemoveNoOp", "RewriteUnsafeSelect", "Simplify", "SkipAssert", "SplitHostDevice",
    "StorageFlatten", "StorageRewrite", "ThreadSync", "UnrollLoop", "VectorizeLoop", "VerifyMemory", "prim_func_pass",
    "AnnotateEntryFunc", "BindTarget", "CommonSubexprElimTIR", "ConvertForLoopsToSerial", "ConvertSSA",
    "CombineContextCall", "DecorateDeviceScope", "HoistExpression", "InjectCopyIntrin", "LiftAttrScope",
    "LowerDeviceStorageAccessInfo", "RenormalizeSplitPattern",
]


def _options() -> PassConfig:
    return current_options()


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """Returns a pass that applies `ftransform` to each function."""
    _check_function("Apply", ftransform, "lambda func: func.with_attr('tir.noalias', True)")
    return named_pass("Apply", ftransform)


def Filter(fcond: Callable[[PrimFunc], bool]) -> ModulePass:
    """Returns a pass that keeps the functions for which `fcond` holds."""
    _check_function("Filter", fcond, "lambda func: 'target' in func.attrs")

    def keep(mod: IRModule) -> IRModule:
        answers = {name: fcond(func) for name, func in mod.items()}
        for name, answer in answers.items():
            if not isinstance(answer, (int, np.bool_)):
                raise ArgumentTypeError(f"Filter: the condition gives {type_in_words(answer)} for {name}",
                                        hint="return True for functions that stay, False for others")
        return IRModule({name: func for name, func in mod.items() if answers[name]})

    return ModulePass(PassInfo(0, "tir.Filter"), keep)


def _check_function(name: str, given: object, hint: str) -> None:
    if not callable(given):
        raise ArgumentTypeError(f"{name} takes a function of functions, not {type_in_words(given)}", hint=hint)


def SkipAssert() -> ModulePass:
    """Returns the pass that removes assertions and keeps what stands below them."""
    return own_pass("SkipAssert", remove_asserts)


def Simplify() -> ModulePass:
    """Returns the pass that simplifies expressions with the ranges and conditions around them, and removes code that cannot
    run.
    """
    return own_pass("Simplify", simplify)


def StorageFlatten(cache_line_size: int, create_bound_attribute: bool = False) -> ModulePass:
    """Returns the pass that turns multi-dimensional buffers into flat memory.
    cache_line_size: the bytes that one prefetch fetches. create_bound_attribute has no effect: InstrumentBoundCheckers knows
    the sizes of memory without it.
    """
    line = build.as_int(cache_line_size)
    if line is None:
        raise ArgumentTypeError(f"StorageFlatten: the size of a cache line is a number of bytes, not {cache_line_size!r}",
                                hint="StorageFlatten(64)")
    return own_pass("StorageFlatten", lambda func: flatten_storage(func, cache_line=line))


def NarrowDataType(target_bits: int) -> ModulePass:
    """Returns the pass that computes index arithmetic in `target_bits` bits where that is proved to be enough. A variable of a
    loop, a thread or a let gets that width if all arithmetic that it is part of does.

    target_bits: 16, 32, or 64 to change nothing; ArgumentError for others.
    """
    if not isinstance(target_bits, int) or target_bits not in (16, 32, 64):
        raise ArgumentError(f"NarrowDataType: indices have 16, 32 or 64 bits, not {target_bits!r}")
    return own_pass("NarrowDataType", lambda func: func if target_bits == 64
                     else narrow_dtypes(func, bits=target_bits, throughout=True))


def _copying(name: str, step: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """Returns a pass that copies statements. Multi-dimensional memory that stands in them is another one in each copy."""
    def run(func: PrimFunc) -> PrimFunc:
        made = step(func)
        return made if made is func or _realizes(made) == _realizes(func) else made.with_body(bind_once(made.body))

    return own_pass(name, run)


def _realizes(func: PrimFunc) -> list[Buffer]:
    """Returns the multi-dimensional buffers that statements of a function allocate, those of copied statements each time."""
    return [stmt.buffer for stmt in statements(func.body) if isinstance(stmt, BufferRealize)]


def _not_flat(name: str, func: PrimFunc) -> LoweringError:
    return LoweringError(f"{name} needs flat memory, and {func.name} has multi-dimensional buffers",
                         hint="run tir.transform.StorageFlatten(64) first")


def LoopPartition() -> ModulePass:
    """Returns the pass that splits loops where their guards begin and cease to hold, and blocks of launches by branches;
    `tir.LoopPartition` says which loops. Guards are the conditions of ifs and selects that are marked `likely`, equalities and
    inequalities among them.
    """
    return _copying("LoopPartition", lambda func: partition(_options(), widely=True)(func))


def VectorizeLoop(enable_vectorize: bool = True) -> ModulePass:
    """Returns the pass that turns vectorized loops into vector statements, or into serial loops with enable_vectorize=False. A
    while loop inside of one is refused, for it runs as often as its lane says; `build` makes such a loop serial. Functions with
    such loops and multi-dimensional buffers go through StorageFlatten first.
    """
    if enable_vectorize not in (True, False):
        raise ArgumentTypeError(f"VectorizeLoop: enable_vectorize is True or False, not {enable_vectorize!r}")

    def step(func: PrimFunc) -> PrimFunc:
        if enable_vectorize:
            _refuse_while(func)
        if enable_vectorize and has_buffers(func):
            if not any(isinstance(stmt, For) and stmt.kind is ForKind.VECTORIZED for stmt in statements(func.body)):
                return func
            func = flatten_storage(func)
        return vectorize_loops(func, enable=enable_vectorize)

    return own_pass("VectorizeLoop", step)


def _refuse_while(func: PrimFunc) -> None:
    for loop in statements(func.body):
        if isinstance(loop, For) and loop.kind is ForKind.VECTORIZED and contains(loop.body, While):
            raise LoweringError(f"VectorizeLoop: there is a while loop inside of the vectorized loop {loop.loop_var.name}: it "
                                "may end in another iteration for each lane",
                                hint="make the loop serial, or VectorizeLoop(enable_vectorize=False)", about=loop)


def InjectVirtualThread() -> ModulePass:
    """Returns the pass that turns virtual threads into interleaved copies of the statements that depend on them."""
    def step(func: PrimFunc) -> PrimFunc:
        made = inject_virtual_threads(func)
        if made is not func and _realizes(made) != _realizes(func):
            raise _not_flat("InjectVirtualThread", func)
        return made

    return own_pass("InjectVirtualThread", step)


def ThreadSync(storage_scope: str) -> ModulePass:
    """Returns the pass that inserts barriers where threads of a block share memory.
    "shared" inserts all, also where a launch has one thread, as does "shared.dyn"; "warp" and "global" insert none.
    """
    if storage_scope not in ("shared", "shared.dyn", "warp", "global"):
        raise ArgumentError(f"ThreadSync: there is no scope {storage_scope!r} to wait for", hint='"shared"')
    wait = storage_scope in ("shared", "shared.dyn")
    return own_pass("ThreadSync", lambda func: insert_barriers(gather_threads(func), alone=True) if wait else func)


def InjectDoubleBuffer() -> ModulePass:
    """Returns the pass that fills memory marked double_buffer one iteration ahead; `tir.InjectDoubleBuffer` sets by how much
    the loop is unrolled. The mark says that arrays of the caller do not overlap.
    """
    return own_pass("InjectDoubleBuffer",
                     lambda func: inject_double_buffer(func, options=_options().double_buffer, apart=True))


def InjectPrefetch() -> ModulePass:
    """Returns the pass that prefetches the regions marked by `prefetch` ahead of their use."""
    return own_pass("InjectPrefetch", inject_prefetch)


def StorageRewrite() -> ModulePass:
    """Returns the pass that hoists allocations out of serial loops and lets those with disjoint live ranges share memory. A
    result takes the place of an operand that its statement reads element by element, and that nothing reads later. Values of
    several dtypes share memory as their bits. What is live at one time in a scope with a tag is one allocation, aligned as the
    registered function "tvm.info.mem.SCOPE" says, if there is one.
    """
    return own_pass("StorageRewrite", lambda func: pool_tagged(rewrite_storage(func, in_place=True, across_dtypes=True)))


def UnrollLoop() -> ModulePass:
    """Returns the pass that replaces loops marked `unroll` by copies of their bodies; `tir.UnrollLoop` says which others."""
    return _copying("UnrollLoop", lambda func: unroll_loops(func, options=_options().unroll))


def RemoveNoOp() -> ModulePass:
    """Returns the pass that removes statements without effect."""
    return own_pass("RemoveNoOp", remove_no_ops)


def RewriteUnsafeSelect() -> ModulePass:
    """Returns the pass that turns a select whose unchosen side must not be evaluated into an if_then_else."""
    return own_pass("RewriteUnsafeSelect", rewrite_unsafe_selects)


def HoistIfThenElse(variant: str | None = None) -> ModulePass:
    """Returns the pass that moves loop-invariant conditions out of loops, those of nested branches too, and those that all
    statements of a loop have in common. Conditions on threads and blocks move, and out of launches, if the option
    support_block_scope_hosting of `tir.HoistIfThenElse` says so; with variant "basic" never.
    """
    if variant not in (None, "basic"):
        raise ArgumentError(f"HoistIfThenElse: there is no variant {variant!r}", hint='None or "basic"')

    def step(func: PrimFunc) -> PrimFunc:
        threads = variant is None and _options().hoist.support_block_scope_hosting
        return hoist_conditions(func, nested=True, out_of_threads=threads, of_threads=threads)

    return own_pass("HoistIfThenElse", step)


def LowerCustomDatatypes() -> ModulePass:
    """Returns the pass that replaces operators of types of the program by what `target.datatype` registers for the target: the
    attribute "target" of a function, else the current one. Arrays and numbers of such types are unsigned integers then.
    """
    return own_pass("LowerCustomDatatypes", lambda func: lower_datatypes(func, _kinds(func)))


def LowerIntrin() -> ModulePass:
    """Returns the pass that applies the rules of `ir.register_intrin_lowering` for the target, the attribute "target" of a
    function, else the current one, and replaces intrinsics without an instruction by arithmetic.
    """
    return own_pass("LowerIntrin", lambda func: lower_intrinsics(lower_registered(func, _kinds(func), every=False)))


def _kinds(func: PrimFunc) -> tuple[str, ...]:
    """Returns the names of the target of a function, by which rules are registered."""
    target = as_target(func.attrs.get("target"))
    return (target.kind.name, *target.keys)


def LowerTVMBuiltin() -> ModulePass:
    """Returns the pass that stores the arguments of `tir.call_packed` to arrays on the stack, as machine code passes them, and
    takes memory of devices from their allocators. `build` takes such modules.
    """
    return own_pass("LowerTVMBuiltin", lower_builtins)


def LegalizePackedCalls() -> ModulePass:
    """Returns the pass that gives `tir.call_packed` arrays for the pointers that it passes: their buffers, whole."""
    return own_pass("LegalizePackedCalls", legalize_calls)


def BF16Promote() -> ModulePass:
    """Returns the pass that computes bfloat16 in float32, each result rounded: every value stays the same."""
    return own_pass("BF16Promote", promote_bfloat16)


def BF16CastElimination() -> ModulePass:
    """Returns the pass that leaves float32 values as they are which are cast to bfloat16 and back: they are not rounded."""
    return own_pass("BF16CastElimination", remove_bfloat16_casts)


def BF16TypeLowering() -> ModulePass:
    """Returns the pass that keeps bfloat16 as uint16: flat memory, variables and constants. BF16Promote comes before it."""
    return own_pass("BF16TypeLowering", bfloat16_as_bits)


def BF16Legalize() -> ModulePass:
    """Returns the pass that is BF16Promote, BF16CastElimination and BF16TypeLowering, one after the other."""
    return own_pass("BF16Legalize", lambda func: bfloat16_as_bits(remove_bfloat16_casts(promote_bfloat16(func))))


def InjectRollingBuffer() -> ModulePass:
    """Returns the pass that keeps the rows of a buffer marked rolling_buffer from one iteration to the next."""
    return own_pass("InjectRollingBuffer", inject_rolling_buffer)


def InstrumentBoundCheckers() -> ModulePass:
    """Returns the pass that checks every access to memory while the function runs; one outside of its memory is an AccessError.
    """
    def checked(func: PrimFunc) -> PrimFunc:
        provide_faults()
        made = check_accesses(func)
        return vouch_for(made if has_buffers(func) else flatten_storage(made))

    return own_pass("InstrumentBoundCheckers", checked)


def LowerThreadAllreduce() -> ModulePass:
    """Returns the pass that makes reductions across the threads of a launch exchanges of values, by shuffles and shared memory.

    The attribute "target" of each such function is the device.
    """
    return _for_device("LowerThreadAllreduce", lower_allreduce)


def InferFragment() -> ModulePass:
    """Returns the pass that writes shapes and orders of fragments as attributes where their memory is allocated, and refuses
    products whose fragments do not fit.
    """
    return own_pass("InferFragment", infer_fragments)


def LowerWarpMemory() -> ModulePass:
    """Returns the pass that makes memory of scope "warp" registers and shuffles, or shared memory where threads store to the
    part of others. The attribute "target" of each such function is the device.
    """
    return _for_device("LowerWarpMemory", lower_warp_memory)


def _for_device(name: str, step: Callable[[PrimFunc, Target], PrimFunc]) -> ModulePass:
    """Returns a pass over the functions that launch threads; ThreadSync("shared") inserts the barriers that they need."""
    return own_pass(name, lambda func: step(gather_threads(func), _device_of(func, name)) if has_launch(func.body) else func)


def _device_of(func: PrimFunc, name: str) -> Target:
    if "target" not in func.attrs:
        raise LoweringError(f"{name} needs to know the device of {func.name}, which launches threads and has no attribute "
                            '"target"',
                            hint='func.with_attr("target", tedsl.target.Target("cuda"))')
    return as_target(func.attrs["target"])


def SplitHostDevice() -> ModulePass:
    """Returns the pass that makes each launch a function of its own, NAME_kernel0 and so on, which NAME calls by
    `tir.call_packed` with pointers, numbers, and the sizes of the launch; what DecorateDeviceScope has marked is a launch of
    one thread. The attribute "target" of functions that launch threads is the device. Barriers are those that
    ThreadSync("shared") has inserted before.
    """
    def split(mod: IRModule) -> IRModule:
        made: dict[str, PrimFunc] = {}
        for name, given in mod.items():
            func = launch_device_scopes(given)
            if not has_launch(func.body):
                made[name] = func
                continue
            parts = split_kernels(gather_threads(func), _device_of(func, "SplitHostDevice"))
            if is_vouched_for(given):
                vouch_for_parts(parts.host, parts.kernels)
            made[name] = parts.host
            for kernel in parts.kernels:
                if kernel.name in mod:
                    raise LoweringError(f"SplitHostDevice makes the kernel {kernel.name} of {name}, and the module has a "
                                        "function of that name", hint="give one of them another global_symbol")
                made[kernel.name] = kernel
        return IRModule(made)

    return ModulePass(PassInfo(0, "tir.SplitHostDevice"), split)


def MakePackedAPI(num_unpacked_params: int = 0) -> ModulePass:
    """Returns the pass that makes functions callable with arrays and numbers, which their attribute "calling_conv" says: 1.
    `build` writes the checks of a call from the parameters, so these and the body stay. Kernels, whose convention is 2, and
    functions that have another one, stay as they are.

    Raises LoweringError for a function that cannot be called so: a pointer of it has no buffer, or no parameter gives a value
    to a variable.
    """
    if build.as_int(num_unpacked_params) not in (0, -1):
        raise ArgumentError(f"MakePackedAPI: all parameters are packed, not all but {num_unpacked_params!r}",
                            hint="MakeUnpackedAPI() makes all of them pointers and numbers")

    def packed(func: PrimFunc) -> PrimFunc:
        if CALLING_CONVENTION in func.attrs:
            return func
        for param in func.params:
            if param.dtype.is_handle and param not in func.buffer_map:
                raise LoweringError(f"MakePackedAPI: {func.name} cannot be called with an array for {param.name}, a pointer "
                                    "that has no buffer", hint=f"buffer_map={{{param.name}: tir.decl_buffer((n,), dtype)}}")
        free = undefined_vars(func)
        if free:
            names = ", ".join(dict.fromkeys(var.name for var in free))
            raise LoweringError(f"MakePackedAPI: {func.name} uses {names}, and no parameter gives it a value",
                                hint=f"make {names} a parameter, or the size of a buffer", about=free[0])
        return func.with_attr(CALLING_CONVENTION, PACKED)

    return own_pass("MakePackedAPI", packed)


def MakeUnpackedAPI() -> ModulePass:
    """Returns the pass that gives functions the parameters that machine code has: the pointers of the buffers, then the numbers
    that are parameters or stand in shapes. Memory is flat, and nothing checks the arrays of a call.
    """
    return named_pass("MakeUnpackedAPI", lambda func: with_raw_arguments(flatten_storage(func)))


def VerifyMemory() -> ModulePass:
    """Returns the pass that refuses a function whose attribute "target" is a GPU if it accesses arguments outside its threads.
    """
    return own_pass("VerifyMemory", verify_memory)


entries(globals(), absent={**NOT_PLANNED, **OF_LATER_RELEASES})
import_as(globals(), "function_pass", "transform")
