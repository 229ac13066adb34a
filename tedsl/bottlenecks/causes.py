"""Why stages are slow: each rule looks at a stage and says what it loses, why, and which directives change it.

What a cause costs is estimated from counts (lanes, lines of caches, launches of threads) and figures of the machine, as a part
of the measured time of its stage: it orders causes, and says about how much there is to gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tedsl.bottlenecks.sites import Nest, Site, Touch
from tedsl.bottlenecks.stages import Stage
from tedsl.graph.network.limits import Limits
from tedsl.record import record
from tedsl.target.machine import Machine

LAUNCH = 4e-6  # seconds to give a parallel loop to threads that wait for work, and to wait for the last of them
_CODE = 4096  # instructions of a loop that most processors keep decoded; those of vectors then fill their 32 KiB of code, too
_COPIES, _SHORT = 64, 8  # nests of a stage that unrolling has made, and iterations of the loops in them
_FAULT = 7e-7  # seconds until the system gives, and clears, a page of the memory that a call asks for
_REFETCH = 1.5e-8  # seconds for a line that comes from the last cache alone: about 45 cycles
_REFILL = 2.5e-9  # seconds to find a page that is not in the first table of addresses: about 7 cycles
_UNGUARDED = ("a factor that divides the extent; a condition of the formula in a stage of its own, which writes zeros beside "
              "the data (topi.nn.pad, compute_root)")
_LONG = 128  # additions to one element in one iteration, beyond which a processor does not look ahead to the next iteration
_WAITING = 0.95  # the part of the time of writes to lines that other threads write: a line comes in about 100 cycles, not in 5


@record(eq=False)
class Machinery:
    """What rules know beside a stage: the machine, what it does in a second, the number of threads, the width of vectors."""

    machine: Machine
    limits: Limits
    threads: int
    vector_bits: int


@record
class Cause:
    """Why a stage is slow. kind: a short name, such as "gather"; seconds: about what it loses; text: what there is; remedy:
    what changes it.
    """

    kind: str
    stage: str
    seconds: float
    text: str
    remedy: str


Rule = Callable[[Stage, Machinery], Iterator[Cause]]


def causes_of(stage: Stage, here: Machinery) -> list[Cause]:
    """Returns the causes that rules find in a stage, those that lose most first."""
    found = [cause for rule in RULES for cause in rule(stage, here)]
    return sorted(found, key=lambda cause: -cause.seconds)


def _lost(stage: Stage, factor: float) -> float:
    """The seconds that go where a stage becomes `factor` times as fast, as far as the machine's limit allows."""
    return max(0.0, stage.seconds - max(stage.seconds / max(factor, 1.0), stage.least))


def _shown(times: float) -> str:
    return f"{times:.1f}" if times < 10 else f"{times:.0f}"


def recomputed(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Values that are computed again in iterations of a loop outside of their memory."""
    nest = max(stage.nests, key=lambda nest: max(site.repeated for site in nest.sites))
    site = max(nest.sites, key=lambda site: site.repeated)
    loops = [turn.var.name for at, turn in enumerate(nest.turns) if site.is_still(at) and turn.times > 1]
    if site.repeated > 1.3 and loops:  # else the formula itself has equal values
        yield Cause("recomputed", stage.name, stage.seconds * (1 - 1 / site.repeated),
                    f"recomputed: each value is computed {_shown(site.repeated)} times, as its stage is at loop {loops[-1]}",
                    "compute_at a loop further out, compute_root, or a larger tile of the consumer")


def inlined(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Functions such as exp, and long arithmetic, in the formula of a consumer that needs each of their values more often."""
    if not stage.again or any(recomputed(stage, here)):
        return
    moved = stage.hot.footprint(0, here.machine.line)
    threads = 1 if any(turn.is_parallel for turn in stage.hot.turns) else here.threads  # that those figures count too many
    needed = stage.least_computing * threads + moved / here.limits.rate(moved)
    for again in stage.again:
        needless = again.seconds * threads * (1 - 1 / again.times)
        whole = needed + (again.seconds - again.counted) * threads
        lost = min(needless * max(1.0, stage.seconds / whole), stage.seconds)
        where = f": in each iteration of {again.loops[0]}" if again.loops else ", for each element that needs it"
        yield Cause("recomputed", stage.name, lost, f"recomputed: each value of {again.what} is computed "
                    f"{_shown(again.times)} times{where}", f"give {again.what} a stage of its own (no compute_inline), and "
                    "compute_at a loop that needs each value once, or compute_root")


def scalar(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """An innermost loop without vectors, for one of four reasons."""
    hot, site, code = stage.hot, stage.site, stage.code
    if stage.wanted_lanes < 2 or not hot.turns or hot.times < stage.wanted_lanes or _has_vectors(hot) \
            or _would_have_vectors(stage):
        return
    lost = _lost(stage, stage.wanted_lanes)
    inner, strided = hot.turns[-1].var.name, _strided(hot)
    apart = code is not None and code.gathers + code.scatters > 0
    if stage.lanes != 1 and not (apart and strided is not None):
        return  # LLVM has made vectors of it
    if stage.guards:
        yield Cause("guard", stage.name, lost, f"guard in the inner loop: a condition on {inner} is tested in every iteration, "
                    f"and the loop has no vectors", _UNGUARDED)
    elif site.write.steps[-1] == 0 and site.reduces:
        combined = f"split {inner} by {stage.wanted_lanes} and vectorize the inner part, whose lanes are combined; " \
            if site.reduces_rows else ""
        yield Cause("scalar", stage.name, lost, f"scalar innermost loop: {inner} adds to one element, whose order is kept, "
                    f"and no loop is vectorized",
                    f"{combined}reorder {inner} outwards and vectorize a loop of the result, or rfactor")
    elif strided is not None:
        yield Cause("order", stage.name, lost, f"wrong loop order: {inner}, the innermost loop, moves {strided.name} by "
                    f"{abs(strided.steps[-1] or 0)} bytes", "reorder a loop of the last dimension inwards, then vectorize it")
    else:
        yield Cause("scalar", stage.name, lost, f"scalar innermost loop: {inner} is not vectorized",
                    f"split {inner} by {stage.wanted_lanes} and vectorize the inner part")


def _has_vectors(nest: Nest) -> bool:
    return any(touch.lanes > 1 for touch in nest.touches)


def _strided(nest: Nest) -> Touch | None:
    """The access that the innermost loop moves furthest, if another loop of a thread moves it less. Sites side by side, of an
    unrolled loop, are one step.
    """
    def step(touch: Touch) -> int:
        return abs(touch.steps[-1] or 0)

    moved = [touch for touch in nest.touches if step(touch) > len(nest.sites) * max(1, touch.dtype.bits // 8) and any(
        0 < abs(other or 0) < step(touch) for other, turn in zip(touch.steps, nest.turns) if not turn.is_parallel)]
    return max(moved, key=step, default=None)


def gathered(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Vectors whose elements do not stand side by side in memory."""
    touches = [touch for touch in stage.hot.touches if touch.lanes > 1 and touch.stride not in (0, 1)]
    if not touches:
        return
    code = stage.code
    factor = 2.0
    if code is not None:
        more = (code.gathers + code.scatters) * stage.wanted_lanes + (stage.lanes == 1) * code.size
        factor = (code.size + more) / max(1, code.size - code.inserts)
    worst = max(touches, key=lambda touch: abs(touch.stride or 1 << 30))
    apart = "where data says" if worst.stride is None else f"{abs(worst.stride)} elements apart"
    word = "scatter" if worst.writes else "gather"
    yield Cause("gather", stage.name, _lost(stage, factor), f"{word}: the lanes of vectors of {worst.name} stand {apart}",
                "vectorize the loop of the last dimension, or store the operand in another order (transform_layout)")


def narrow(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Vectors that fill a part of the machine's."""
    if stage.lanes is None or not 1 < stage.lanes < stage.wanted_lanes or not stage.hot.turns:
        return
    if stage.hot.turns[-1].times * max([touch.lanes for touch in stage.hot.touches], default=1) < stage.wanted_lanes:
        return  # there are no more elements
    if stage.site.combined >= stage.wanted_lanes:
        return  # the first step in which they are combined computes with half of them
    yield Cause("narrow", stage.name, _lost(stage, stage.wanted_lanes / stage.lanes),
                f"narrow vectors: {stage.lanes} elements, where this machine computes with {stage.wanted_lanes}",
                f"vectorize a loop of {stage.wanted_lanes} iterations, or a multiple")


def guarded(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Conditions in an innermost loop that has vectors."""
    if stage.guards and stage.lanes != 1 and stage.hot.turns:
        yield Cause("guard", stage.name, _lost(stage, 1.25), "guard in the inner loop: vectors are masked, or a condition is "
                    "tested in every iteration", _UNGUARDED)


def spilled(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Accumulators that do not fit the registers."""
    code = stage.code
    if code is None or code.spills < 3 or not stage.site.reduces:
        return
    yield Cause("spills", stage.name, _lost(stage, 1 + 2 * code.spills / max(1, code.arithmetic)),
                f"too many accumulators: {code.spills} of the {code.size} instructions of the inner loop spill registers",
                "smaller tiles of unrolled and vectorized loops")


def unrolled(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Loops of more code than the processor keeps near, and code without loops that is as long."""
    code = stage.code
    if code is None or code.whole <= _CODE:
        return
    straight = len(stage.nests) > _COPIES and all(not nest.turns or nest.turns[-1].times <= _SHORT for nest in stage.nests)
    where = "in the inner loop, fetched from far in every iteration" if code.size > _CODE else \
        f"of {len(stage.nests)} copies of short loops, fetched from far in every call"
    if code.size > _CODE or straight:
        vectors = stage.wanted_lanes if _would_have_vectors(stage) else 1
        size = code.size if code.size > _CODE else code.whole
        yield Cause("unrolled", stage.name, _lost(stage, vectors * (1 + size / _CODE)),
                    f"unrolled too far: {size} instructions {where}", "unroll fewer loops, or by smaller factors")


def _would_have_vectors(stage: Stage) -> bool:
    """Whether LLVM makes vectors of an innermost loop that has none where it is not unrolled so far: of elements side by side,
    in any order.
    """
    code, site = stage.code, stage.site
    return code is not None and code.size > _CODE and stage.lanes == 1 and not site.reduces and not stage.guards \
        and code.gathers + code.scatters == 0 and len({other.write.base for other in stage.hot.sites}) > 1 \
        and _strided(stage.hot) is None


def far(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Operands that come from far away again and again."""
    limits, machine = here.limits, here.machine
    distinct = stage.hot.footprint(0, machine.line)
    sizes = [("L2", machine.l1.size, machine.l2.size // 2), ("L3", machine.l2.size, machine.l3.size // 2),
             ("RAM", machine.l3.size or machine.l2.size, 1 << 40)]
    found = [(brought / limits.rate(beyond), brought, level) for level, size, beyond in sizes
             if distinct > size and (brought := stage.hot.brought(size, machine.line)) >= 2 * distinct
             and not _mostly_apart(stage, size, machine.line)]
    if not found or not stage.hot.turns:
        return
    seconds, brought, level = max(found)
    lost = min(stage.seconds, seconds) - max(distinct / limits.rate(distinct), stage.least)
    if lost > 0:
        yield Cause("blocking", stage.name, lost, f"no blocking: {_shown(brought / 1e6)} MB come from {level} for "
                    f"{_shown(distinct / 1e6)} MB of data",
                    "split loops into tiles that fit a cache, and reorder the loops "
                    "over tiles outwards")


def _mostly_apart(stage: Stage, size: int, line: int) -> bool:
    """Whether most of what comes from beyond a cache is for vectors whose elements stand apart: what mends those, as another
    order of the operand, changes that, too.
    """
    each = stage.hot.brought_by_each(size, line)
    apart = sum(brought for brought, touch in zip(each, stage.hot.touches) if touch.lanes > 1 and touch.stride not in (0, 1))
    return 2 * apart > sum(each)


def loaded(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Products that need more loads than the processor does beside them."""
    hot = stage.hot
    adding = [site for site in hot.sites if site.reduces and site.operations
              and len({touch.name for touch in site.reads} - {site.write.name}) > 1]
    if not adding or not hot.turns or stage.lanes in (None, 1):
        return
    lanes = stage.wanted_lanes
    moving = {(touch.name, touch.base, touch.writes): max(1, -(-touch.lanes // lanes)) for site in hot.sites
              for touch in site.touches if not touch.near and (touch.steps[-1] != 0 or touch.lanes > 1)}
    loads = sum(count for (*_, writes), count in moving.items() if not writes)
    stores = sum(count for (*_, writes), count in moving.items() if writes)
    products = sum(max(1, -(-site.write.lanes // lanes)) for site in adding)
    needed = max(loads * here.vector_bits / here.machine.load_bits, stores) / (products / here.machine.fmas(here.vector_bits))
    if needed > 1.2 and loads > 1:
        yield Cause("blocking", stage.name, _lost(stage, needed), f"no blocking in registers: {loads} loads and {stores} "
                    f"stores for {products} multiply-adds of vectors", "keep a tile of results in registers: split two loops "
                    "of the result, reorder both tiles inside of the reduction, unroll one and vectorize the other")


def chained(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Sums that wait for one another."""
    hot = stage.hot
    adding = [site for site in hot.sites if site.reduces and site.operations]
    places: dict[object, list[Site]] = {}
    for site in adding:
        places.setdefault(site if site.write.base is None else (site.write.name, site.write.base), []).append(site)
    are_long = bool(places) and min(map(len, places.values())) >= _LONG
    sums = [group[0] for group in places.values() if are_long or group[0].write.near]
    if not sums or not hot.turns or stage.lanes is None:
        return
    if not are_long and any(site.write.steps[-1] != 0 for site in sums):
        return
    chains = sum(max(1, -(-site.write.lanes // max(stage.lanes, 1))) for site in sums)
    wanted = here.machine.chains(here.vector_bits)
    if chains < wanted and stage.lanes > 1:
        at_a_time = "1 sum at a time, which" if chains == 1 else f"{chains} sums at a time, each of which"
        yield Cause("chains", stage.name, _lost(stage, wanted / chains), f"too few accumulators: {at_a_time} waits "
                    f"{here.machine.fma_latency} cycles for the one before; {wanted} keep the machine busy",
                    "rfactor of the vectorized loop, whose lanes are then combined once, after the others"
                    if any(site.combined > 1 for site in sums) else "a larger tile of results in registers, or rfactor")


def unpacked(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Operands that each iteration reads from another page."""
    machine, hot = here.machine, stage.hot
    for touch in hot.touches:
        moves = [(abs(step or 0), turn.times) for step, turn in zip(touch.steps, hot.turns)]
        if touch.writes or not moves or moves[-1][0] < machine.page or moves[-1][1] <= machine.tlb or not stage.site.reduces:
            continue
        each = _REFETCH if machine.l2.evicts(moves[-1][1], moves[-1][0]) else _REFILL
        lost = min(stage.seconds / 2, hot.times * each / here.threads)
        yield Cause("packing", stage.name, lost, f"nothing is packed: each iteration of {hot.turns[-1].var.name} reads another "
                    f"page of {touch.name}, {moves[-1][1]} of them, and the machine knows {machine.tlb} at once",
                    f"transform_layout of {touch.name}, or cache_read of a tile of it, so that a tile is contiguous; split the "
                    "reduction")
        return


def serial(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Work of one thread where there are more, in too many pieces, or in few."""
    turns = stage.hot.turns
    at = next((at for at, turn in enumerate(turns) if turn.is_parallel), None)
    if here.threads == 1 or not turns:
        return
    if at is None:
        if stage.seconds > 10 * LAUNCH:
            yield Cause("serial", stage.name, _lost(stage, here.threads), f"idle threads: one of {here.threads} works",
                        f"parallel on {turns[0].var.name}, or on the fusion of outer loops")
        return
    launches, count = math.prod(turn.times for turn in turns[:at]), turns[at].times
    name = turns[at].var.name
    if launches > 1 or stage.seconds < 4 * LAUNCH:
        yield Cause("chunks", stage.name, min(0.95 * stage.seconds, launches * LAUNCH), f"small parallel chunks: threads start "
                    f"{launches} times, {stage.seconds / launches * 1e6:.1f} µs each",
                    "parallel on an outer loop" if launches > 1 else "no parallel for so little work")
    uneven = -(-count // here.threads) * here.threads / count
    if uneven > 1.1:
        yield Cause("uneven", stage.name, _lost(stage, uneven), f"idle threads: {count} iterations of {name} for "
                    f"{here.threads} threads", "split so that the parallel loop has many iterations, or fuse outer loops")


def shared_lines(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Lines of caches that several threads write."""
    turns = stage.hot.turns
    at = next((at for at, turn in enumerate(turns) if turn.is_parallel), None)
    if here.threads == 1 or at is None:
        return
    for touch in stage.hot.touches:
        step = abs(touch.steps[at] or 0)
        often = math.prod(turn.times for turn in turns[at + 1:])
        if touch.writes and turns[at].times > 1 and step > 0 and often > 1 \
                and step * -(-turns[at].times // here.threads) < here.machine.line:
            yield Cause("false sharing", stage.name, _WAITING * stage.seconds, f"false sharing: neighbouring iterations of "
                        f"{turns[at].var.name} write {touch.name} {step} bytes apart, lines that other threads write too",
                        "parallel on a loop whose iterations are lines apart, or a partial result for each thread of its own")
            return


def intermediate(stage: Stage, here: Machinery) -> Iterator[Cause]:
    """Results between stages that go through memory."""
    machine = here.machine
    write = stage.site.write
    size = stage.hot.footprint(0, machine.line)
    if write.given or write.inside or write.near or size <= machine.l2.size:
        return
    written = sum(stage.hot.lines(touch, 0, machine.line) * machine.line for touch in stage.hot.touches if touch.writes)
    if written > machine.l2.size // 2:
        lost = min(stage.seconds, 2 * written / here.limits.rate(size) + written / machine.page * _FAULT)
        yield Cause("intermediate", stage.name, lost, f"through memory: {_shown(written / 1e6)} MB of {stage.name} are written "
                    "and read again", "compute_at a loop of the consumer, or compute_inline")


RULES: tuple[Rule, ...] = (recomputed, inlined, scalar, gathered, narrow, guarded, spilled, unrolled, far, loaded, chained,
                           unpacked, serial, shared_lines, intermediate)
