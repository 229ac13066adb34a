"""Selects the passes of a pipeline that run, by their names in TVM, and shows them to instruments.

A step that correct code needs cannot be disabled: `NEEDED` says why. All others only make loops shorter or faster.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from tedsl.errors import ArgumentTypeError, OptionError
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.source_line import user_level
from tedsl.passes.info import NAMED, PassInfo
from tedsl.passes.pipeline import Pass, Pipeline, pass_name
from tedsl.record import record

# The function of a step -> its name.
NAMES = {
    "own_memory": "tir.OwnMemory", "check_accesses": "tir.InstrumentBoundCheckers",
    "check_data_indices": "tir.CheckDataIndices",
    "allow_aliasing": "tir.AllowAliasing",
    "remove_asserts": "tir.SkipAssert", "inject_rolling_buffer": "tir.InjectRollingBuffer",
    "inject_prefetch": "tir.InjectPrefetch", "flatten_storage": "tir.StorageFlatten", "narrow_dtypes": "tir.NarrowDataType",
    "join_loops": "tir.JoinLoops",
    "simplify": "tir.Simplify", "partition_loops": "tir.LoopPartition", "partition_asked": "tir.LoopPartition",
    "vectorize_loops": "tir.VectorizeLoop", "inject_virtual_threads": "tir.InjectVirtualThread",
    "inject_double_buffer": "tir.InjectDoubleBuffer", "rewrite_storage": "tir.StorageRewrite",
    "unroll_loops": "tir.UnrollLoop", "remove_no_ops": "tir.RemoveNoOp",
    "rewrite_unsafe_selects": "tir.RewriteUnsafeSelect", "hoist_conditions": "tir.HoistIfThenElse",
    "compact_arrays": "tir.CompactArrays", "check_limits": "tir.CheckLimits",
    "refuse_races": "tir.RefuseRaces", "use_intrinsics": "tir.UseIntrinsics", "stride_parallel": "tir.StrideParallel",
    "gather_threads": "tir.GatherThreads", "insert_barriers": "tir.ThreadSync", "threads_to_loops": "tir.LowerThreads",
    "normalize_parallel": "tir.NormalizeParallel", "straighten_indices": "tir.StraightenIndices",
    "separate_tails": "tir.SeparateTails", "separate_early": "tir.SeparateTails",
    "shorten_tails": "tir.ShortenTails", "widen_loops": "tir.WidenLoops",
    "mark_streams": "tir.MarkStreams", "transpose_tiles": "tir.TransposeTiles", "split_vectors": "tir.SplitVectors",
    "fill_registers": "tir.FillRegisters",
    "lower_intrinsics": "tir.LowerIntrin", "promote_accumulators": "tir.PromoteAccumulators", "choose_fma": "tir.ChooseFMA",
    "use_promises": "tir.UsePromises", "use_dot_products": "tir.UseDotProducts",
    "use_tile_products": "tir.UseTileProducts", "lower_warp_memory": "tir.LowerWarpMemory",
    "lower_allreduce": "tir.LowerThreadAllreduce", "check_fragments": "tir.CheckFragments",
    "unroll_fragments": "tir.UnrollFragments",
    "lower_fragments": "tir.LowerFragments", "share_memory": "tir.ShareMemory",
    "copy_asynchronously": "tir.InjectPTXAsyncCopy",
}

# The level from which on a step runs, where it is not 0: those that fit loops to the machine.
LEVELS = dict.fromkeys(("tir.StrideParallel", "tir.StraightenIndices", "tir.SeparateTails", "tir.ShortenTails",
                        "tir.MarkStreams", "tir.TransposeTiles", "tir.UseDotProducts",
                        "tir.UseTileProducts", "tir.PromoteAccumulators",
                        "tir.FillRegisters", "tir.ChooseFMA", "tir.UsePromises"), 1)

# Why code without the step would be wrong, or could not be made.
NEEDED = {
    "tir.OwnMemory": "memory of a thread would be shared by all threads of its block",
    "tir.InstrumentBoundCheckers": "the loops were made for these checks: nothing else keeps their accesses inside memory",
    "tir.CheckDataIndices": "indices that data decides were left to these checks, which tir.data_index asks for",
    "tir.AllowAliasing": "the arrays of a call would be taken not to overlap, although tir.noalias=False says that they may",
    "tir.InjectRollingBuffer": "no later step handles rolling buffers",
    "tir.InjectPrefetch": "no later step handles the marks of prefetch",
    "tir.JoinLoops": "no later step handles the marks of compute_with",
    "tir.StorageFlatten": "no later step handles multi-dimensional buffers",
    "tir.InjectVirtualThread": "machine code has no virtual threads: their loops would be gone",
    "tir.RewriteUnsafeSelect": "a select computes both of its sides: one that may not be computed would read outside of its "
                               "memory",
    "tir.RefuseRaces": "threads that race would give other results in each call",
    "tir.CompactArrays": "kernels would take strides that no call gives them",
    "tir.CheckLimits": "a device would refuse the kernel when it is launched",
    "tir.UseIntrinsics": "tensorized loops would have no code",
    "tir.GatherThreads": "the threads of a kernel would not run together",
    "tir.ThreadSync": "threads would read shared memory before others have written it",
    "tir.LowerWarpMemory": "devices have no memory of a warp: its threads exchange what is in their registers",
    "tir.LowerThreadAllreduce": "devices have no instruction that reduces across threads",
    "tir.CheckFragments": "threads of a warp that part would end a call that all of them make together",
    "tir.LowerFragments": "processors have no fragments of a warp: their calls would have no code",
    "tir.UnrollFragments": "registers have no numbers that a loop could count",
    "tir.LowerThreads": "this machine has no threads of a device: their loops would be gone",
    "tir.NormalizeParallel": "threads would store to the memory of one another",
    "tir.WidenLoops": "loops of more than 2**31 - 1 iterations would overflow",
    "tir.SplitVectors": "LLVM ends the process on some vectors that are longer than its registers",
    "tir.LowerIntrin": "no instruction stands for some operators",
}

# Where later steps do not know what a step removes, another one runs in its place when it is disabled or skipped.
REPLACED = frozenset(("tir.VectorizeLoop",))


def info_of(step: Pass) -> PassInfo:
    """Returns the TVM name of a step of a pipeline and the lowest opt_level at which it runs."""
    info = getattr(step, "info", None)
    if isinstance(info, PassInfo):
        return info
    return _info(pass_name(step))


@functools.cache
def _info(step: str) -> PassInfo:
    """Returns the same of the step whose function has that name."""
    name = NAMES.get(step, step)
    return PassInfo(LEVELS.get(name, 0), name)


@record
class Selection:
    """The passes that a PassContext enables by name and level. An instrument has the methods of `tedsl.ir.instrument`."""

    opt_level: int = 2
    required: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    instruments: tuple[Any, ...] = ()

    def runs(self, info: PassInfo) -> bool:
        """Tells whether a step of a pipeline runs, or what runs in its place."""
        return info.name in REPLACED or self.enables(info)

    def enables(self, info: PassInfo) -> bool:
        """Tells whether a pass runs: it is not disabled, and it is required or its level is at most the context's."""
        return info.name not in self.disabled and (info.name in self.required or self.opt_level >= info.opt_level
                                                   or info.name in NEEDED)

    def of(self, pipeline: Pipeline) -> Pipeline:
        """Returns the steps of `pipeline` that are enabled, each shown to the instruments."""
        steps = tuple(step for step in pipeline.passes if self.runs(info_of(step)))
        return Pipeline(tuple(map(self._shown, steps)) if self.instruments else steps)

    def _shown(self, step: Pass) -> Pass:
        info = info_of(step)

        @functools.wraps(step)
        def shown(func: PrimFunc) -> PrimFunc:
            name = func.name
            module = self.watched(info, IRModule({name: func}), lambda mod: IRModule({name: step(mod[name])}))
            return module[name]

        return shown

    def watched(self, info: PassInfo, mod: IRModule, run: Any) -> IRModule:
        """Returns `run(mod)`, with the instruments called before and after it.

        If one of them skips the pass, returns `mod`, or what runs in its place makes of it. Instruments are asked only about
        passes that can be left out.
        """
        if info.name not in self.required and info.name not in NEEDED:
            wanted = [_wants(instrument, mod, info) for instrument in self.instruments]  # all are asked
            if not all(wanted):
                return _skipped(info, mod)
        for instrument in self.instruments:
            instrument.run_before_pass(mod, info)
        result: IRModule = run(mod)
        for instrument in self.instruments:
            instrument.run_after_pass(result, info)
        return result


def _wants(instrument: Any, mod: IRModule, info: PassInfo) -> bool:
    """Returns the answer of `should_run` of an instrument; ArgumentTypeError if it is neither True nor False."""
    answer = instrument.should_run(mod, info)
    if not isinstance(answer, (int, np.bool_)):
        raise ArgumentTypeError(f"should_run of the instrument {instrument.name} returned {answer!r} for the pass {info.name}",
                                hint="return True for a pass that runs, False for one to skip")
    return bool(answer)


def _skipped(info: PassInfo, mod: IRModule) -> IRModule:
    """Returns `mod` after a pass that an instrument skips."""
    if info.name not in REPLACED:
        return mod
    from tedsl.passes.loops.vectorize_loops import vectorize_loops

    return IRModule({name: vectorize_loops(func, enable=False) for name, func in mod.items()})


def refuse_needed(disabled: Iterable[str]) -> None:
    """Raises OptionError for a step among `disabled` that correct code needs."""
    for name in disabled:
        if name in NEEDED:
            rest = [other for other in sorted(set(NAMES.values())) if other not in NEEDED]
            raise OptionError(f"disabled_pass: {name} cannot be disabled: {NEEDED[name]}",
                              hint=f"these can be: {', '.join(rest)}")


def warn_of_unknown(option: str, names: Iterable[str]) -> None:
    """Warns of names that no step of lowering has, and no pass that the program made. option: where they were given."""
    known = {*NAMES.values(), *NAMED}
    for name in names:
        if name not in known:
            from difflib import get_close_matches  # the import of tedsl does without it

            near = get_close_matches(name, sorted(known)) or get_close_matches(f"tir.{name}", sorted(known), cutoff=0.8)
            instead = f"did you mean {near[0]}?" if near else "names are as tir.UnrollLoop, or those of passes of the program"
            warnings.warn(f"{option}: there is no pass {name!r}; {instead}", UserWarning, stacklevel=user_level())
