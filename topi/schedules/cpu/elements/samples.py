"""Samples of images: elements whose places are computed from data, the same ones for all channels.

The places, weights and conditions take longer than what is read. They are computed for some channels at once:

    for n, channels in parallel(...):
        for places, in vectors:
            unrolled for channel in channels:        what does not depend on it is computed for the first one
                B[n, channel, places] = ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import tir
from topi.schedules.cpu.parallel import SERIAL, SHARES, chunk_length, share_out
from topi.schedules.cpu.tiles import divisor_near
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import Formula, extent_of, formula_of, nodes_of, product, runs, variables_in
from topi.schedules.kernel import Kernel

_COSTLY = 16  # operations of the places of an element from which sharing them pays
_CHANNELS = 8  # that share places, at most
_LOADS = 32  # of the channels that share places, at most: all of them are compiled


def channels_of_samples(op: Any, formula: Formula) -> tuple[list[list[Any]], int] | None:
    """The groups of axes that are one loop each, and the number of that, not the innermost one, which is an axis of the tensors
    that samples are read from, but not of the data that places are computed from. None if there is none, or places cost little.
    """
    places = [index for load in formula.loads for index in load.indices if _is_computed(index)]
    if formula_of(places).cost < _COSTLY:
        return None
    calculated = _calculated_with(op.body)
    groups = runs(op.axis, Formula(formula.loads, formula.cost, calculated))
    used = calculated.union(*(variables_in(index) for index in places))
    if product([extent_of(axis) for axis in groups[-1]]) == 1:
        return None
    for number in reversed(range(len(groups) - 1)):
        axis, *others = groups[number]
        if not others and axis.var not in used and (extent_of(axis) or 1) > 1 and all(
                any(index is axis.var for index in load.indices) for load in _samples(formula)):
            return groups, number
    return None


def map_samples(kernel: Kernel, op: Any, formula: Formula, groups: Sequence[Sequence[Any]], number: int) -> None:
    """Schedules the stage of `op`, in whose loops over `groups` number `number` counts channels that share places."""
    stage, lanes, samples = kernel.schedule[op], kernel.lanes(op), len(_samples(formula))
    extents = [product([extent_of(axis) for axis in group]) for group in groups]
    loops = [stage.fuse(*group) if len(group) > 1 else group[0] for group in groups]
    channels, extent = extents[number] or 1, extents[-1]
    most = max(2, min(_CHANNELS, _LOADS // samples))
    count = divisor_near(channels, most, -(-most // 2))
    parts, channel = stage.split(loops[number], factor=count, tail="partition" if channels % count else "guard")
    outer, inner = [*loops[:number], parts, *loops[number + 1:-1]], loops[-1]
    work, tasks = product(extents), product([*extents[:number], -(-channels // count), *extents[number + 1:-1]])
    work = None if work is None else work * (1 + formula.cost // 10)
    wanted = SHARES * kernel.target.machine.cores
    if extent is not None and tasks is not None and tasks < wanted and work is not None and work >= SERIAL:
        extent = chunk_length(kernel.target, extent, max(1, extent * tasks // wanted), lanes, tasks)
        chunk, inner = stage.split(inner, factor=extent)
        outer.append(chunk)
    vectorize(stage, inner, extent, lanes)
    *steps, lane = [loop for loop in stage.leaf_iter_vars if loop not in outer and loop is not channel]
    stage.reorder(*outer, *steps, channel, lane)
    stage.unroll(channel)
    share_out(stage, outer, work)


def _is_computed(index: Any) -> bool:
    return any(isinstance(node, tir.ProducerLoad) for node in nodes_of(index))


def _calculated_with(bodies: Sequence[Any]) -> set[Any]:
    """The variables that formulas use other than as an index. An index of the data that places are computed from is none: two
    axes that follow each other there may be one loop.
    """
    found, stack = set(), list(bodies)
    while stack:
        node = stack.pop()
        if isinstance(node, tir.Var):
            found.add(node)
        elif isinstance(node, tir.ProducerLoad):
            stack += [index for index in node.indices if not isinstance(index, tir.Var)]
        else:
            stack += node.child_nodes()
    return found


def _samples(formula: Formula) -> list[Any]:
    return [load for load in formula.loads if any(_is_computed(index) for index in load.indices)]
