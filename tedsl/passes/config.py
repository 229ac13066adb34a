"""The options of the passes, typed. The names users write (`tir.UnrollLoop`, ...) are mapped to these by `transform`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from tedsl.ir.func import Accesses, PrimFunc
from tedsl.passes.selection import Selection
from tedsl.record import record


@record
class LoopPartitionConfig:
    """Options of tir.LoopPartition.

    partition_const_loop: also loops of constant extent. no_unroll_loop_with_extent_one: keep loops of one iteration.
    unroll_loop_with_partition_hint_no_interval: unroll loops of constant extent with a hint that no condition splits.
    """

    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False
    unroll_loop_with_partition_hint_no_interval: bool = False


@record
class UnrollConfig:
    """Options of tir.UnrollLoop.

    A serial loop is unrolled if it executes at most `auto_max_step` statements in all and is nested at most `auto_max_depth`
    deep, or has at most `auto_max_extent` iterations. explicit_unroll: copy the body; otherwise the loop is only marked.
    """

    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_extent: int = 0
    explicit_unroll: bool = True


@record
class HoistConfig:
    """Options of tir.HoistIfThenElse. support_block_scope_hosting: also out of loops bound to threads."""

    support_block_scope_hosting: bool = False


@record
class DoubleBufferConfig:
    """Options of tir.InjectDoubleBuffer."""

    split_loop: int = 1


OF_DATA = {"clamp": Accesses.PROVED, "check": Accesses.DATA_AT_RUN_TIME, "trust": Accesses.DATA_TRUSTED}  # tir.data_index


@record
class PassConfig:
    """The options that `PassContext(config=...)` sets.

    noalias: the arrays of a call do not overlap. disable_vectorize: vectorized loops run serially. disable_assert: no
    checks of symbolic shapes inside kernels. debug_keep_trivial_loop, detect_global_barrier, is_entry_func: accepted without
    effect, since they concern code of TVM's own passes. keep_schedule_record: the same, since schedules keep it always.
    instrument_bound_checkers: every access is checked while a module runs.
    data_index: how an index that is read from data is kept inside its tensor. "clamp": the nearest element is read; "check":
    an AccessError names stage, index and value; "trust": not at all.
    offset_factor, data_alignment: of the buffers of arguments, as in tir.decl_buffer.
    line_tables: objects say which printed loop each instruction belongs to. perf_map: perf is told the names of functions.
    gdb: gdb is told of the code, with its line tables.
    check_registers: NVIDIA's assembler, where it is installed, says whether the registers of kernels suffice.
    add_lower_pass: pairs (phase 0-3, pass), run after that phase of lowering.
    strict: `lower` refuses what `build` refuses; otherwise it warns of it and shows the loops where there are any.
    selection: which passes run at all.
    """

    noalias: bool = True
    disable_vectorize: bool = False
    disable_assert: bool = False
    debug_keep_trivial_loop: bool = False
    keep_schedule_record: bool = False
    instrument_bound_checkers: bool = False
    detect_global_barrier: bool = False
    is_entry_func: bool = False
    loop_partition: LoopPartitionConfig = LoopPartitionConfig()
    unroll: UnrollConfig = UnrollConfig()
    hoist: HoistConfig = HoistConfig()
    double_buffer: DoubleBufferConfig = DoubleBufferConfig()
    data_index: str = "clamp"
    offset_factor: int = 0
    data_alignment: int = -1
    line_tables: bool = False
    perf_map: bool = False
    gdb: bool = False
    check_registers: bool = False
    strict: bool = False
    add_lower_pass: tuple[tuple[int, Callable[[PrimFunc], PrimFunc]], ...] = field(default=())
    selection: Selection = field(default_factory=Selection)

    @property
    def accesses(self) -> Accesses:
        """Returns how accesses are kept within bounds."""
        return Accesses.AT_RUN_TIME if self.instrument_bound_checkers else OF_DATA[self.data_index]
