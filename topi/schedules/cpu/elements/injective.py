"""Element-wise kernels: as few loops as the memory allows, vectors innermost, chunks in parallel."""

from __future__ import annotations

import math
from typing import Any

from tedsl import te, tir
from topi.kinds import InjectiveOp
from topi.schedules.cpu.elements.memory import goes_past_caches, in_order_of, largest_load, store_past_caches
from topi.schedules.cpu.elements.pieces import gathered_pieces, map_gathered, map_pieces, run_of_pieces
from topi.schedules.cpu.elements.samples import channels_of_samples, map_samples
from topi.schedules.cpu.elements.turned import map_turned, turned_axis
from topi.schedules.cpu.parallel import SHARES, chunk_length, share_out
from topi.schedules.cpu.tiles import divisors
from topi.schedules.cpu.vectors import vectorize, vectors_together
from topi.schedules.formulas import Formula, constant, extent_of, nodes_of, product, runs, variables_in
from topi.schedules.kernel import Kernel

_CHUNK = 16 * 1024
_FEW = 8  # vectors of a row whose places are clamped, up to which they are written one after the other
_BORDERED = range(3, 5)  # vectors of a row with a border that are one step, so that each has its own mask; fewer are not faster
_MASKED = range(3, 9)  # the same with registers for masks
_ROWS = 16  # short rows of a part of a loop that is shared out, at least
_LONG = 64  # vectors from which on a loop is long
_STREAMS, _STREAM = 4, 64 << 10  # places that are read side by side, and the bytes from one to the next
_REST = 4  # times what goes past the caches, of which a far last cache holds little


def schedule_injective(kernel: Kernel) -> None:
    """Fuse the axes that are contiguous in every tensor and vectorize the fused loop, or the last axis."""
    map_elements(kernel, kernel.tail)


def map_elements(kernel: Kernel, op: Any) -> None:
    """Schedule the loops of the stage of `op` alone."""
    if not op.axis:
        return
    stage, formula = kernel.schedule[op], kernel.formula(op)
    turned = turned_axis(op, formula)
    if turned is not None:
        map_turned(kernel, op, *turned, formula)
        store_past_caches(kernel, op)
        return
    groups, lanes = runs(op.axis, formula), kernel.lanes(op)
    samples = channels_of_samples(op, formula) if lanes > 1 else None
    if samples is not None:
        map_samples(kernel, op, formula, *samples)
        return
    largest = largest_load(formula)
    if largest is not None:
        groups = [*in_order_of(largest, groups[:-1]), groups[-1]]
        gathered = gathered_pieces(kernel, op, groups)
        if gathered is not None:
            map_gathered(kernel, op, groups, largest, *gathered)
            return
    extents = [product([extent_of(axis) for axis in group]) for group in groups]
    loops = [stage.fuse(*group) if len(group) > 1 else group[0] for group in groups]
    work = product(extents)
    inner, extent = loops[-1], extents[-1]
    outer = loops[:-1]
    if len(outer) > 1:
        stage.reorder(*loops)
    pieces = run_of_pieces(kernel, op, groups, extents) if largest is not None else None
    if pieces is not None:
        map_pieces(stage, loops, extents, lanes, *pieces)
        return
    period = _period(op, formula)
    if period is not None and extent is not None and lanes > 1 and (period > lanes or lanes % period):
        part, inner = stage.split(inner, factor=period)
        outer, loops, extents = [*outer, part], [*loops[:-1], part, inner], [*extents[:-1], extent // period, period]
        extent = period
    wide, is_clamped = lanes * vectors_together(kernel, formula, extent, lanes), extent is not None and _is_clamped(op, formula)
    if not is_clamped or (extent or 0) > _FEW * wide:
        wide = _lanes_of_quotients(op, formula, lanes) or wide
    if not outer and not is_clamped and wide % lanes == 0 and _has_streams(kernel, op, extent):
        _map_streams(stage, inner, wide, op.output(0).dtype.bytes)
        return
    length = _CHUNK if extent is None and not outer else None
    if extent is not None and extent >= 2 * _CHUNK:
        unit = math.lcm(wide, max(1, kernel.target.machine.line // op.output(0).dtype.bytes))
        length = chunk_length(kernel.target, extent, _CHUNK, unit, product(extents[:-1]) or 1)
    if length is not None:
        chunk, inner = stage.split(inner, factor=length)
        outer.append(chunk)
    if extent is not None and _is_one_step(kernel, op, -(-extent // lanes)):
        wide = extent
    vectorize(stage, inner, extent, wide)
    if is_clamped and 1 < wide < (extent or 0) <= _FEW * wide:
        stage.unroll(stage.leaf_iter_vars[-2])
    if len(outer) == len(loops) - 1:
        outer = _shared_loops(kernel, stage, outer, extents, lanes, _is_turned(op, formula))
    share_out(stage, outer, None if work is None else work * (1 + formula.cost // 10))


def _period(op: Any, formula: Formula) -> int | None:
    """After how many elements of the last axis all places begin again, as those of a tensor that is repeated; None if they do
    not, or where the axis ends is not where they begin. A loop of its own over these has neighbours in memory for vectors.
    """
    last, extent = op.axis[-1].var, extent_of(op.axis[-1])
    nodes = [node for load in formula.loads for index in load.indices for node in nodes_of(index)]
    remainders = [node for node in nodes if isinstance(node, tir.FloorMod) and node.a is last]
    periods = {constant(node.b) for node in remainders}
    if len(periods) != 1 or len(remainders) != sum(node is last for node in nodes):
        return None
    (period,) = periods
    return period if period and extent and period < extent and extent % period == 0 else None


def _has_streams(kernel: Kernel, op: Any, extent: int | None) -> bool:
    """Whether a loop over all elements reads and writes several places side by side: where memory is far, a core asks for too
    few lines ahead in one place. What is left of less in the last cache is near enough. Chunks must keep the cores busy.
    """
    machine = kernel.target.machine
    if extent is None or kernel.lanes(op) == 1 or not machine.has_far_l3 or kernel.within or kernel.blocks is not None:
        return False
    size = 2 * extent * op.output(0).dtype.bytes
    return goes_past_caches(kernel, op) and size >= max(_REST * machine.large, 2 * SHARES * machine.cores * _STREAMS * _STREAM)


def _map_streams(stage: te.Stage, loop: Any, wide: int, size: int) -> None:
    """Parts chunks of the elements, of `size` bytes, into streams, of each of which `wide` elements are computed at a time."""
    length = _STREAM // size // wide * wide
    chunk, inside = stage.split(loop, factor=_STREAMS * length, tail="partition")
    stream, inside = stage.split(inside, nparts=_STREAMS)
    step, lane = stage.split(inside, factor=wide)
    stage.reorder(step, stream, lane)
    stage.vectorize(lane)
    stage.parallel(chunk)


def _lanes_of_quotients(op: Any, formula: Formula, lanes: int) -> int | None:
    """The lanes of some vectors that begin at whole elements of what is repeated three times, or to an image 3/2 times as
    large: only so the places of lanes are known. None where one vector does, or more is read than one element.
    """
    last, indices = op.axis[-1].var, [index for load in formula.loads for index in load.indices]
    quotients = [node for index in indices for node in nodes_of(index) if isinstance(node, tir.FloorDiv)]
    parts = {constant(node.b) for node in quotients if last in variables_in(node.a)}
    if not parts or None in parts or len(formula.loads) != 1:
        return None
    wide = math.lcm(lanes, *(part for part in parts if part is not None))
    return wide if lanes < wide <= _FEW * lanes else None


def _is_clamped(op: Any, formula: Formula) -> bool:
    """Whether a place of elements is a minimum or maximum that depends on the last axis, as at the ends of an image that is
    made larger. Vectors whose places are known are loaded without a gather, those at the ends, too.
    """
    last, nodes = op.axis[-1].var, [node for load in formula.loads for index in load.indices for node in nodes_of(index)]
    return any(isinstance(node, (tir.Min, tir.Max)) and last in variables_in(node) for node in nodes)


def _is_one_step(kernel: Kernel, op: Any, vectors: int) -> bool:
    """Whether rows of so many vectors have a border at their ends and are computed in one step, where the masks of each vector
    are constants: a loop would have copies for the vectors at the ends.
    """
    target, info, body = kernel.target, getattr(op, "info", None), op.body[0]
    if not isinstance(info, InjectiveOp) or info.operator != "pad" or not isinstance(body, tir.Call):
        return False
    if op.axis[-1].var not in variables_in(body.args[0]):
        return False
    return target.architecture == "x86-64" and target.can_mask(op.output(0).dtype) and \
        vectors in (_MASKED if target.has_mask_registers else _BORDERED)


def _is_turned(op: Any, formula: Formula) -> bool:
    """Whether neighbours along the last axis are no neighbours in memory, and those along another one are."""
    last = op.axis[-1].var
    return any(load.indices and last not in variables_in(load.indices[-1]) and
               any(last in variables_in(index) for index in load.indices) for load in formula.loads)


def _shared_loops(kernel: Kernel, stage: te.Stage, outer: list[Any], extents: list[int | None], lanes: int,
                  is_turned: bool) -> list[Any]:
    """The loops that are shared out, of the `outer` ones around the last one. extents: those of all loops.

    Where the last one is short, the loop around it stays a loop of its own, if the others are tasks enough: of a fused loop
    each iteration takes its index apart by divisions, and conditions on it, as those of a border, hold for no part of the loop.
    Where short rows are turned, so do equal parts of it: rows beside each other, of one loop, are turned in registers.
    """
    *around, extent = extents
    if extent is None or extent >= _LONG * lanes or len(outer) < 2:
        return outer
    tasks, wanted = product(around[:-1]), SHARES * kernel.target.machine.cores
    if tasks is None or around[-1] is None:
        return outer
    if tasks >= wanted:
        return outer[:-1]
    parts = next((count for count in divisors(around[-1]) if count * tasks >= wanted), None)
    if not is_turned or parts is None or around[-1] // parts < _ROWS:
        return outer
    part, _ = stage.split(outer[-1], nparts=parts)
    return [*outer[:-1], part]
