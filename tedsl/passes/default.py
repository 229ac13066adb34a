"""The pipelines: which passes run, in which order."""

from __future__ import annotations

import functools

from tedsl.errors import ArgumentTypeError
from tedsl.ir.expr import IntImm
from tedsl.ir.func import Accesses, PrimFunc
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.stmt import LAUNCH, For, ForKind, Tensorized
from tedsl.ir.walk.contents import MASKED, contains, of_kinds
from tedsl.passes.allow_aliasing import allow_aliasing
from tedsl.passes.assume_compact import assume_compact
from tedsl.passes.checked.check_accesses import check_accesses
from tedsl.passes.checked.check_data_indices import check_data_indices
from tedsl.passes.config import PassConfig
from tedsl.passes.device.check_limits import check_limits
from tedsl.passes.device.copy_asynchronously import copy_asynchronously
from tedsl.passes.device.lower_allreduce import lower_allreduce
from tedsl.passes.device.lower_warp_memory import lower_warp_memory
from tedsl.passes.device.share_memory import share_memory
from tedsl.passes.device.unroll_fragments import unroll_fragments
from tedsl.passes.info import PassInfo
from tedsl.passes.loops.hoist_conditions import hoist_conditions
from tedsl.passes.loops.join_loops import join_loops
from tedsl.passes.loops.partition_loops import partition_loops
from tedsl.passes.loops.unroll_loops import unroll_loops
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tedsl.passes.machine.choose_fma import choose_fma
from tedsl.passes.machine.lower_intrinsics import lower_intrinsics
from tedsl.passes.machine.lower_threads import lower_threads
from tedsl.passes.machine.mark_streams import mark_streams
from tedsl.passes.machine.normalize_parallel import normalize_parallel
from tedsl.passes.machine.promote_accumulators import promote_accumulators
from tedsl.passes.machine.shorten_tails import shorten_tails
from tedsl.passes.machine.split_vectors import split_vectors
from tedsl.passes.machine.straighten_indices import straighten_indices
from tedsl.passes.machine.stride_parallel import stride_parallel
from tedsl.passes.machine.transpose_tiles import transpose_tiles
from tedsl.passes.machine.use_intrinsics import use_intrinsics
from tedsl.passes.machine.widen_loops import widen_loops
from tedsl.passes.module_pass import ModulePass, on_function
from tedsl.passes.narrow_dtypes import narrow_dtypes
from tedsl.passes.pipeline import Pass, Pipeline, pass_name, with_options
from tedsl.passes.products.use_dot_products import use_dot_products
from tedsl.passes.products.use_tile_products import use_tile_products
from tedsl.passes.races.refuse_races import refuse_races
from tedsl.passes.remove_asserts import remove_asserts
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.rewrite_unsafe_selects import rewrite_unsafe_selects
from tedsl.passes.simplify import simplify, simplify_changed
from tedsl.passes.storage.fill_registers import fill_registers
from tedsl.passes.storage.flatten_storage import flatten_storage
from tedsl.passes.storage.inject_double_buffer import inject_double_buffer
from tedsl.passes.storage.inject_prefetch import inject_prefetch
from tedsl.passes.storage.inject_rolling_buffer import inject_rolling_buffer
from tedsl.passes.storage.rewrite_storage import rewrite_storage
from tedsl.passes.threads.check_fragments import check_fragments
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.inject_virtual_threads import inject_virtual_threads
from tedsl.passes.threads.insert_barriers import insert_barriers
from tedsl.passes.threads.lower_fragments import lower_fragments
from tedsl.passes.threads.own_memory import own_memory
from tedsl.passes.use_promises import use_promises
from tedsl.target.target import Target


def lowering_pipeline(config: PassConfig = PassConfig(), simple_mode: bool = False,
                      accesses: Accesses = Accesses.PROVED, early_tails: bool = False) -> Pipeline:
    """Returns the pipeline with which `lower` and `build` lower, in the order that users know.
    simple_mode leaves loops unsplit.

    accesses: with AT_RUN_TIME every access is bounds-checked while the kernel runs, in loops that stay unsplit and run
    serially. early_tails: loops with guards are split before they are unrolled, where `target_pipeline` would do so later.
    """
    own = config.add_lower_pass or config.selection.instruments  # passes and instruments of the program are not kept
    return (_lowering.__wrapped__ if own else _lowering)(config, simple_mode, accesses, early_tails)


@functools.lru_cache(maxsize=16)
def _lowering(config: PassConfig, simple_mode: bool, accesses: Accesses, early_tails: bool) -> Pipeline:
    checked = accesses is Accesses.AT_RUN_TIME
    early_tails &= not (checked or simple_mode or config.add_lower_pass)  # passes of users see the loops that they know
    vectorized = not (checked or config.disable_vectorize or "tir.VectorizeLoop" in config.selection.disabled)
    return config.selection.of(Pipeline((
        own_memory,  # first: what is checked or flattened stands where its threads find it
        *((check_accesses,) if checked else (check_data_indices,) if accesses is Accesses.DATA_AT_RUN_TIME else ()),
        *_added(config, 0),
        *((allow_aliasing,) if not config.noalias else ()),
        *((remove_asserts,) if config.disable_assert else ()),
        inject_rolling_buffer,
        inject_prefetch,
        flatten_storage,
        join_loops,  # before loops are partitioned or vectorized: those of two stages are alike
        narrow_dtypes,
        simplify,  # the bounds of all loops are known now: most guards vanish
        *_added(config, 1),
        partition_asked if simple_mode or checked else partition(config),
        with_options(vectorize_loops, enable=vectorized),
        inject_virtual_threads,
        with_options(inject_double_buffer, options=config.double_buffer),
        rewrite_storage,
        *((separate_early,) if early_tails else ()),
        with_options(unroll_loops, options=config.unroll),
        *_added(config, 2),
        simplify,  # unrolled copies have constants where they had loop variables
        remove_no_ops,
        rewrite_unsafe_selects,
        with_options(hoist_conditions, out_of_threads=config.hoist.support_block_scope_hosting),
        *_added(config, 3),
    )))


def reading_pipeline(config: PassConfig, simple_mode: bool, accesses: Accesses = Accesses.PROVED,
                     races: bool = True) -> Pipeline:
    """Returns the pipeline of `lower`: races, which `build` refuses while it fits the loops to the machine, are found here
    too. races: False for loops that are refused already, whose threads may not be there yet.
    """
    pipeline = lowering_pipeline(config, simple_mode, accesses)
    return pipeline + config.selection.of(Pipeline((with_options(refuse_races, to_read=True),))) if races else pipeline


def memory_pipeline() -> Pipeline:
    """Returns the passes of lowering that change how much memory each buffer of the loops has."""
    return Pipeline((own_memory, inject_rolling_buffer, inject_prefetch, flatten_storage, simplify, inject_virtual_threads,
                     inject_double_buffer))


def target_pipeline(target: Target, config: PassConfig = PassConfig()) -> Pipeline:
    """Returns the pipeline that `build` runs after lowering, which fits the loops to the machine of `target`."""
    return config.selection.of(Pipeline((
        use_intrinsics,  # first: the formulas of tensorized regions are for the interpreter and the passes before
        with_options(use_promises, target),
        stride_parallel,
        gather_threads,
        check_fragments,
        refuse_races,  # before barriers divide branches whose sides race
        insert_barriers,
        with_options(lower_fragments, scope="warp"),
        threads_to_loops,
        with_options(normalize_parallel, cores=target.attrs.get("num-cores")),
        straighten_indices,  # compact strides are known now
        separate_tails,  # before anything looks at the inner tiles: their main parts have no guards
        shorten_tails,
        widen_loops,  # after what is proved about int32 indices
        with_options(mark_streams, target),  # while the loops still show what each position is
        with_options(use_tile_products, target),  # before others make vectors of their loops
        with_options(use_dot_products, target),  # before the groups that they read look like turned tiles
        with_options(transpose_tiles, target),
        with_options(fill_registers, target),  # before masks become narrower vectors
        with_options(split_vectors, target),
        lower_intrinsics,
        promote_accumulators,
        *((choose_fma,) if target.has_fma else ()),
    )))


def device_pipeline(target: Target, config: PassConfig) -> Pipeline:
    """Returns the pipeline that `build` runs after lowering for a device, before the kernels leave the function of the host
    (`passes/device/split_kernels.py`).
    """
    return config.selection.of(Pipeline((
        compact_arrays,
        use_intrinsics,
        gather_threads,
        check_fragments,
        refuse_races,
        with_options(lower_warp_memory, target),  # what its threads do not exchange by shuffles needs barriers
        share_memory,
        insert_barriers,
        *((with_options(lower_fragments, scope="local"),) if target.kind.name == "opencl" else ()),
    )))


def kernel_pipeline(target: Target, config: PassConfig) -> Pipeline:
    """Returns the pipeline that runs on each kernel, a function of its own, and fits it to the device of `target`."""
    return config.selection.of(Pipeline((
        with_options(lower_allreduce, target),
        with_options(copy_asynchronously, target),
        unroll_fragments,
        straighten_indices,
        widen_loops,
        with_options(split_vectors, target),
        lower_intrinsics,
        *((choose_fma,) if target.has_fma else ()),
        with_options(check_limits, target),  # last: the memory that passes add counts
    )))


def compact_arrays(func: PrimFunc) -> PrimFunc:
    """Drops symbolic strides: arrays on devices are compact."""
    compact = assume_compact(func)
    return func if compact is func else simplify(compact)


def threads_to_loops(func: PrimFunc) -> PrimFunc:
    """Turns the kernels of a device into loops of this machine."""
    loops = lower_threads(func)
    return func if loops is func else remove_no_ops(simplify(loops))


def separate_tails(func: PrimFunc) -> PrimFunc:
    """Splits every loop where its guards or masks cease to hold, so that its main part has none."""
    split = partition_loops(func, constant_loops=True, masks=True)
    return func if split is func else remove_no_ops(simplify_changed(split, func))


def separate_early(func: PrimFunc) -> PrimFunc:
    """Does what `separate_tails` does before loops are unrolled: one guard is looked at there instead of one in each copy.

    For loops of constant extent without masks, which stay the same; the copies of others have guards of their own.
    """
    if not contains(func.body, LIKELY) or contains(func.body, MASKED, IF_THEN_ELSE, LAUNCH, Tensorized):
        return func
    loops = [stmt for stmt in of_kinds(func.body, For) if isinstance(stmt, For)]
    if not all(isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm) for loop in loops):
        return func
    copied = any(loop.kind is ForKind.UNROLLED and contains(loop.body, LIKELY) for loop in loops)
    return partition_loops(func, constant_loops=True, masks=True) if copied else func


def partition(config: PassConfig, *, widely: bool = False) -> Pass:
    """Returns the pass that partitions loops as the options of `tir.LoopPartition` say; widely: see `partition_loops`."""
    return with_options(partition_loops, widely=widely, constant_loops=config.loop_partition.partition_const_loop,
                        keep_single=config.loop_partition.no_unroll_loop_with_extent_one,
                        unroll_hinted=config.loop_partition.unroll_loop_with_partition_hint_no_interval)


def partition_asked(func: PrimFunc) -> PrimFunc:
    """Splits the loops for which the schedule asks it."""
    return partition_loops(func, asked_only=True)


def _added(config: PassConfig, phase: int) -> tuple[Pass, ...]:
    return tuple(_checked(step) for when, step in config.add_lower_pass if when == phase)


def _checked(step: Pass) -> Pass:
    """Returns a pass of the user's, on functions or on modules, with a check that its result is a function."""

    def run(func: PrimFunc) -> PrimFunc:
        result = on_function(step, func) if isinstance(step, ModulePass) else step(func)
        if not isinstance(result, PrimFunc):
            raise ArgumentTypeError(f"the pass {pass_name(step)} of tir.add_lower_pass returned {result!r}",
                                    hint="a pass takes a PrimFunc and returns one, the same if there is nothing to do")
        return result

    run.__name__ = step.info.name if isinstance(step, ModulePass) else pass_name(step)
    run.__dict__["info"] = step.info if isinstance(step, ModulePass) else PassInfo(0, pass_name(step))
    return run
