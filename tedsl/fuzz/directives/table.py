"""All directives, with weights that compensate for those that seldom apply: all are drawn about equally often."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.fuzz.directives.intrinsics import tensorize
from tedsl.fuzz.directives.loops import (
    decompose_reduction,
    fuse,
    parallel,
    pragma,
    reorder,
    skip_zeros,
    split_factor,
    split_lines_of,
    split_mask,
    split_nparts,
    split_partition,
    split_round_up,
    split_shift_inwards,
    tile,
    unroll,
    vectorize,
)
from tedsl.fuzz.directives.memory import (
    double_buffer,
    nontemporal,
    prefetch,
    rolling_buffer,
    set_scope,
    storage_align,
    transform_layout,
)
from tedsl.fuzz.directives.places import compute_at, compute_inline, compute_root, compute_with
from tedsl.fuzz.directives.sites import Found
from tedsl.fuzz.directives.stages import cache_read, cache_write, pad_sum, reindex_cache_read, rfactor
from tedsl.fuzz.directives.threads import bind, bind_vthread, env_threads, set_store_predicate
from tedsl.fuzz.directives.tiles import register_tile
from tedsl.fuzz.directives.versions import on_version, reverse_compute_at, specialize
from tedsl.fuzz.directives.whole import auto_inline, copy, create_group, group_compute_at, replay, undo
from tedsl.fuzz.scheduler import Scheduler

DIRECTIVES: dict[Callable[[Scheduler], Found], int] = {
    split_factor: 7, split_nparts: 7, split_mask: 5, split_partition: 5, split_shift_inwards: 6, split_lines_of: 6,
    split_round_up: 12, fuse: 7, tile: 10, reorder: 8, decompose_reduction: 14, skip_zeros: 400, vectorize: 8, unroll: 8,
    parallel: 7, pragma: 6, compute_at: 24, reverse_compute_at: 215, compute_inline: 10, compute_root: 10, compute_with: 20,
    cache_read: 8, reindex_cache_read: 6, cache_write: 11, rfactor: 20, pad_sum: 60, register_tile: 20, set_scope: 9,
    nontemporal: 6, storage_align: 16, double_buffer: 19, rolling_buffer: 64, prefetch: 8, transform_layout: 18, bind: 5,
    bind_vthread: 8, env_threads: 6, set_store_predicate: 10, tensorize: 40, create_group: 3, group_compute_at: 18,
    specialize: 8, on_version: 18, auto_inline: 9, undo: 5, copy: 4, replay: 8}

# For programs of devices: loops are bound to threads instead of parallel.
BOUND = {**{propose: weight for propose, weight in DIRECTIVES.items() if propose is not parallel}, bind: 60}

# Those that lowering takes wherever the schedule does.
PLAIN = {propose: DIRECTIVES[propose] for propose in (
    split_factor, split_nparts, fuse, tile, reorder, vectorize, unroll, parallel, compute_at, compute_inline, compute_root,
    cache_read, cache_write, rfactor)}

# Those that seldom find a place, and so seldom meet each other.
RARE = (on_version, rolling_buffer, env_threads, rfactor, double_buffer, transform_layout, reverse_compute_at, tensorize,
        split_round_up)
