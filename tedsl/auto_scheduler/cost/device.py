"""What the loops of a kernel for a device do, counted from the loops, and the seconds that the simulator's model says for it.

The simulator counts the same, exactly, when a schedule is measured where there is no device; these counts choose what is
measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tedsl.auto_scheduler.cost.features import UNKNOWN, operations
from tedsl.auto_scheduler.cost.footprint import touched
from tedsl.driver import schedule_to_module
from tedsl.ir.build import as_int
from tedsl.ir.expr import BufferLoad, Var
from tedsl.ir.stmt import VIRTUAL, AttrStmt, BufferStore, For, ForKind
from tedsl.ir.types import memory_kind
from tedsl.ir.walk.accesses import accesses
from tedsl.ir.walk.around import Around, Loop
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import launched
from tedsl.schedule.handles import Schedule
from tedsl.simulate.models import duration
from tedsl.simulate.options import current_model

_SECTOR = 32  # bytes
_WARP = 32  # threads


@dataclass
class Launch:
    """What one kernel does. threads: of a block. arithmetic, accesses, loops: instructions of warps that compute, that read and
    write global and shared memory, and that count iterations. sectors: of global memory. shared: accesses to shared memory.
    guarded: instructions under a condition. longest: steps of the busiest thread.
    """

    blocks: int = 1
    threads: int = 1
    arithmetic: float = 0.0
    accesses: float = 0.0
    loops: float = 0.0
    sectors: float = 0.0
    shared: float = 0.0
    guarded: float = 0.0
    longest: float = 0.0


def launches_of(sch: Schedule, args: Sequence[Any]) -> list[Launch]:
    """The kernels of a schedule. Raises TedslError where it has no loops."""
    found: dict[object, Launch] = {}
    for function in schedule_to_module(sch, args).functions.values():
        stores: dict[BufferStore, tuple[Around, list[BufferLoad]]] = {}
        for access in accesses(function.body):
            if isinstance(access.statement, BufferStore):
                around, loads = stores.setdefault(access.statement, (access.around.of_statement(), []))
                if isinstance(access.node, BufferLoad):
                    loads.append(access.node)
        for store, (around, loads) in stores.items():
            loops = around.loops()
            first = next((loop.by for loop in loops if loop.by is not None and launched(loop.by) is not None), None)
            _add(found.setdefault(first, Launch()), store, loads, loops, bool(around.conditions()))
    return list(found.values())


def _add(launch: Launch, store: BufferStore, loads: Sequence[BufferLoad], loops: Sequence[Loop], guarded: bool) -> None:
    """Adds a statement to what its kernel does."""
    extents = {loop.var: as_int(loop.extent) or UNKNOWN for loop in loops}
    blocks = threads = 1
    alone = 1.0  # steps of a thread
    iterations = 1.0
    lanes: dict[Var, int] = {}  # loops whose iterations a warp does at once
    for loop in loops:
        extent, tag = extents[loop.var], _tag(loop)
        if tag.startswith("blockIdx"):
            blocks *= extent
        elif tag.startswith("threadIdx"):
            threads *= extent
            lanes[loop.var] = extent
        else:
            alone *= extent
            iterations *= 1 if _is_straight(loop) else extent
    launch.blocks, launch.threads = max(launch.blocks, blocks), max(launch.threads, threads)
    warps = blocks * -(-threads // _WARP)
    work = warps * alone
    launch.arithmetic += work * operations(store.value)
    launch.loops += warps * iterations
    launch.longest += alone
    launch.guarded += work if guarded else 0.0
    warp = _first(lanes)
    nodes: list[BufferStore | BufferLoad] = [store, *loads]
    for node in nodes:
        kind = memory_kind(node.buffer.scope())
        if kind in ("global", "shared"):
            times = warps * _times(node, loops, extents)
            launch.accesses += times
            size = max(1, node.buffer.dtype.bits // 8)
            if kind == "shared":
                launch.shared += times
            else:
                launch.sectors += times * touched(node.indices, warp, max(1, _SECTOR // size))[1]


def _tag(loop: Loop) -> str:
    """The thread axis of a loop; "" of one that each thread runs through."""
    axis = None if loop.by is None else launched(loop.by)
    return "" if axis is None else axis.thread_tag


def _is_straight(loop: Loop) -> bool:
    """Whether the iterations are written out, or are those of virtual threads."""
    if isinstance(loop.by, AttrStmt):
        return loop.by.attr_key == VIRTUAL
    return isinstance(loop.by, For) and loop.by.kind in (ForKind.UNROLLED, ForKind.VECTORIZED)


def _first(lanes: dict[Var, int]) -> dict[Var, int]:
    """The threads of one warp: all of the innermost axis and as many of the next as are left."""
    found, left = {}, _WARP
    for var, extent in reversed(lanes.items()):
        found[var] = min(extent, left)
        left //= found[var]
    return found


def _times(node: BufferStore | BufferLoad, loops: Sequence[Loop], extents: dict[Var, int]) -> float:
    """How often a thread does an access: once for the innermost loops that it does not depend on, and for such loops that are
    written out.
    """
    used = {one for index in node.indices for one in post_order(index) if isinstance(one, Var)}
    own = [loop for loop in loops if not _tag(loop)]
    while own and own[-1].var not in used:
        own.pop()
    times = 1.0
    for loop in own:
        if loop.var in used or not _is_straight(loop):
            times *= extents[loop.var]
    return times


NAMES = ("kernels", "blocks", "threads", "arithmetic", "accesses", "loops", "sectors", "shared", "guarded", "longest",
         "seconds")


def device_features(launches: Sequence[Launch]) -> list[float]:
    """The numbers of a program, in the order of NAMES: sums over its kernels, the last one the estimated nanoseconds."""
    sums = [float(sum(getattr(one, name) for one in launches)) for name in NAMES[1:-1]]
    return [float(len(launches)), *sums, sum(map(_seconds, launches)) * 1e9]


def _seconds(one: Launch) -> float:
    """The seconds of a kernel by the simulator's model of a device, from counts of the loops."""
    classes = {"float32": int(one.arithmetic), "integer": int(one.loops), "global": int(one.accesses)}
    warps = one.blocks * -(-one.threads // _WARP)
    return duration(current_model(), one.blocks, warps, classes, int(one.shared), int(one.sectors)).seconds
