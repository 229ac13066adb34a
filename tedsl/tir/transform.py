"""The passes over loops by the names of TVM's tir.transform: each call returns a pass that takes a module and returns one.

    mod = tir.transform.Simplify()(mod)

These are the passes that `lower` and `build` run, in the order that `passes/default.py` shows. Options come from the
PassContext that is current when the pass runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.errors import ArgumentError, entries
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import AssertStmt
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.passes.config import PassConfig
from tedsl.passes.context import current_options
from tedsl.passes.default import partition
from tedsl.passes.info import PassInfo
from tedsl.passes.loops.hoist_conditions import hoist_conditions
from tedsl.passes.loops.unroll_loops import unroll_loops
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.machine.lower_intrinsics import lower_intrinsics
from tedsl.passes.module_pass import ModulePass, named_pass, prim_func_pass
from tedsl.passes.narrow_dtypes import narrow_dtypes
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.rewrite_unsafe_selects import rewrite_unsafe_selects
from tedsl.passes.simplify import simplify
from tedsl.passes.storage.flatten_storage import flatten_storage
from tedsl.passes.storage.inject_double_buffer import inject_double_buffer
from tedsl.passes.storage.inject_prefetch import inject_prefetch
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.inject_virtual_threads import inject_virtual_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.passes.verify_memory import verify_memory

__all__ = [
    "Apply", "Filter", "HoistIfThenElse", "InjectDoubleBuffer", "InjectPrefetch", "InjectVirtualThread", "LoopPartition",
    "LowerIntrin", "ModulePass", "NarrowDataType", "PassInfo", "RemoveNoOp", "RewriteUnsafeSelect", "Simplify",
    "SkipAssert", "StorageFlatten", "StorageRewrite", "ThreadSync", "UnrollLoop", "VectorizeLoop", "VerifyMemory",
    "prim_func_pass",
]


def _options() -> PassConfig:
    return current_options()


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> ModulePass:
    """Returns a pass that applies `ftransform` to each function."""
    return named_pass("Apply", ftransform)


def Filter(fcond: Callable[[PrimFunc], bool]) -> ModulePass:
    """Returns a pass that keeps the functions for which `fcond` holds."""
    def keep(mod: IRModule) -> IRModule:
        return IRModule({name: func for name, func in mod.items() if fcond(func)})

    return ModulePass(PassInfo(0, "tir.Filter"), keep)


def SkipAssert() -> ModulePass:
    """Returns the pass that removes assertions and keeps what stands below them."""
    return named_pass("SkipAssert", lambda func: func.with_body(_WithoutAsserts()(func.body)))


class _WithoutAsserts(Rewriter):
    def rewrite(self, node: Any) -> Any:
        return node.body if isinstance(node, AssertStmt) else node


def Simplify() -> ModulePass:
    """Returns the pass that simplifies expressions with the ranges and conditions around them, and removes code that cannot
    run.
    """
    return named_pass("Simplify", simplify)


def StorageFlatten(cache_line_size: int, create_bound_attribute: bool = False) -> ModulePass:
    """Returns the pass that turns multi-dimensional buffers into flat memory.
    cache_line_size has no effect: `build` aligns memory.
    """
    if create_bound_attribute:
        raise ArgumentError("StorageFlatten: there are no bound attributes",
                            hint="build(..., checked=True) checks every access at run time")
    return named_pass("StorageFlatten", flatten_storage)


def NarrowDataType(target_bits: int) -> ModulePass:
    """Returns the pass that computes index arithmetic in 32 bits where that is proved to be enough.

    target_bits: 32, or 64 to change nothing; ArgumentError for others.
    """
    if target_bits not in (32, 64):
        raise ArgumentError(f"NarrowDataType: indices have 32 or 64 bits, not {target_bits!r}")
    return named_pass("NarrowDataType", narrow_dtypes if target_bits == 32 else lambda func: func)


def LoopPartition() -> ModulePass:
    """Returns the pass that splits loops where their guards begin and cease to hold; `tir.LoopPartition` says which loops."""
    return named_pass("LoopPartition", lambda func: partition(_options())(func))


def VectorizeLoop(enable_vectorize: bool = True) -> ModulePass:
    """Returns the pass that turns vectorized loops into vector statements, or into serial loops with enable_vectorize=False."""
    return named_pass("VectorizeLoop", lambda func: vectorize_loops(func, enable=enable_vectorize))


def InjectVirtualThread() -> ModulePass:
    """Returns the pass that turns virtual threads into interleaved copies of the statements that depend on them."""
    return named_pass("InjectVirtualThread", inject_virtual_threads)


def ThreadSync(storage_scope: str) -> ModulePass:
    """Returns the pass that inserts barriers where threads of a block share memory.
    "shared" inserts all; "warp" and "global" insert none.
    """
    if storage_scope not in ("shared", "warp", "global"):
        raise ArgumentError(f"ThreadSync: there is no scope {storage_scope!r} to wait for", hint='"shared"')
    wait = storage_scope == "shared"
    return named_pass("ThreadSync", lambda func: insert_barriers(gather_threads(func)) if wait else func)


def InjectDoubleBuffer() -> ModulePass:
    """Returns the pass that fills memory marked double_buffer one iteration ahead; `tir.InjectDoubleBuffer` sets by how much
    the loop is unrolled.
    """
    return named_pass("InjectDoubleBuffer", lambda func: inject_double_buffer(func, options=_options().double_buffer))


def InjectPrefetch() -> ModulePass:
    """Returns the pass that prefetches the regions marked by `prefetch` ahead of their use."""
    return named_pass("InjectPrefetch", inject_prefetch)


def StorageRewrite() -> ModulePass:
    """Returns the pass that hoists allocations out of serial loops and lets those with disjoint live ranges share memory."""
    return named_pass("StorageRewrite", rewrite_storage)


def UnrollLoop() -> ModulePass:
    """Returns the pass that replaces loops marked `unroll` by copies of their bodies; `tir.UnrollLoop` says which others."""
    return named_pass("UnrollLoop", lambda func: unroll_loops(func, options=_options().unroll))


def RemoveNoOp() -> ModulePass:
    """Returns the pass that removes statements without effect."""
    return named_pass("RemoveNoOp", remove_no_ops)


def RewriteUnsafeSelect() -> ModulePass:
    """Returns the pass that turns a select whose unchosen side must not be evaluated into an if_then_else."""
    return named_pass("RewriteUnsafeSelect", rewrite_unsafe_selects)


def HoistIfThenElse(variant: str | None = None) -> ModulePass:
    """Returns the pass that moves loop-invariant conditions out of loops; variant "basic" ignores the options."""
    if variant not in (None, "basic"):
        raise ArgumentError(f"HoistIfThenElse: there is no variant {variant!r}", hint='None or "basic"')

    def step(func: PrimFunc) -> PrimFunc:
        return hoist_conditions(func, out_of_threads=variant is None and _options().hoist.support_block_scope_hosting)

    return named_pass("HoistIfThenElse", step)


def LowerIntrin() -> ModulePass:
    """Returns the pass that replaces intrinsics without an instruction by arithmetic."""
    return named_pass("LowerIntrin", lower_intrinsics)


def VerifyMemory() -> ModulePass:
    """Returns the pass that refuses a function whose attribute "target" is a GPU if it accesses arguments outside its threads.
    """
    return named_pass("VerifyMemory", verify_memory)


entries(globals())
