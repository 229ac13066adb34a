"""All directives, with weights that make up for those that seldom find a place: all are to come about equally often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tedsl.fuzz.directives.intrinsics import tensorize
from tedsl.fuzz.directives.loops import (
    decompose_reduction,
    fuse,
    parallel,
    pragma,
    reorder,
    split_factor,
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
from tedsl.fuzz.directives.places import compute_at, compute_inline, compute_root
from tedsl.fuzz.directives.stages import cache_read, cache_write, rfactor
from tedsl.fuzz.directives.threads import bind, bind_vthread, env_threads, set_store_predicate
from tedsl.fuzz.directives.whole import auto_inline, copy, create_group, group_compute_at, replay, undo

if TYPE_CHECKING:
    from tedsl.fuzz.schedules import Scheduler

DIRECTIVES: dict[Callable[[Scheduler], str | None], int] = {
    split_factor: 8, split_nparts: 8, split_mask: 5, split_partition: 5, split_shift_inwards: 5, split_round_up: 8, fuse: 8,
    tile: 8, reorder: 9, decompose_reduction: 8, vectorize: 8, unroll: 8, parallel: 8, pragma: 8, compute_at: 30,
    compute_inline: 7, compute_root: 7, cache_read: 8, cache_write: 12, rfactor: 14, set_scope: 6, nontemporal: 5,
    storage_align: 7, double_buffer: 8, rolling_buffer: 12, prefetch: 5, transform_layout: 8, bind: 6, bind_vthread: 6,
    env_threads: 2, set_store_predicate: 10, tensorize: 30, create_group: 5, group_compute_at: 20, auto_inline: 3, undo: 4,
    copy: 4, replay: 8}
