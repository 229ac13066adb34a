"""Steps in which the threads of a warp meet: shuffles, votes, reductions of a warp, its barriers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tedsl.simulate.instructions.operation import Array, unknown
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.memory.traffic import WARP
from tedsl.simulate.ptx.syntax import Group, Instruction
from tedsl.simulate.reports.findings import ABSENT_LANE, thread_name

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Sites

Made = tuple[Callable[[Frame], None], str]
SHUFFLE = "shuffle"
_MODES = ("up", "down", "bfly", "idx")


def spread(frame: Frame, values: Array) -> Array:
    """Returns values of these threads at the positions of the threads of all warps; zeros elsewhere."""
    spread_out = np.zeros(frame.batch.warps * WARP, values.dtype)
    spread_out[frame.of_these(frame.batch.position)] = values
    return spread_out


def shuffle(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of shfl.sync: each thread takes the value of another of its warp."""
    mode = instruction.parts[2] if len(instruction.parts) == 4 else ""
    if instruction.parts[1] != "sync" or mode not in _MODES or instruction.type != "b32":
        raise unknown(instruction)
    target, value, by, limits, mask = instruction.operands
    results = target.items if isinstance(target, Group) else (target,)
    writers = [names.writer(one, instruction) for one in results]
    readers = [names.reader(one, "b32", instruction) for one in (value, by, limits, mask)]

    def run(frame: Frame) -> None:
        values, distance, bounds, members = (reader(frame.registers) for reader in readers)
        _require_members(frame, instruction, members)
        lane = frame.of_these(frame.batch.lane).astype(np.int64)
        source, valid = _sources(mode, lane, distance.astype(np.int64), bounds.astype(np.int64))
        source = np.where(valid, source, lane)
        position = frame.of_these(frame.batch.position)
        at = position - lane + source
        if frame.lanes is not None or not frame.batch.whole_warps:
            there = spread(frame, np.ones(frame.count, bool))[at]
            _report_absent(frame, instruction, there, source)
        everywhere = spread(frame, values) if frame.lanes is not None or not frame.batch.whole_warps \
            else np.broadcast_to(values, frame.count)
        writers[0](frame.registers, everywhere[at])
        for write in writers[1:]:
            write(frame.registers, valid)

    return run, SHUFFLE


def _sources(mode: str, lane: Array, by: Array, bounds: Array) -> tuple[Array, Array]:
    """The lane whose value each lane takes, and whether it is one of its segment (elsewhere it keeps its own)."""
    clamp, segment = bounds & 31, (bounds >> 8) & 31
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    by = by & 31
    if mode == "up":
        return lane - by, lane - by >= highest
    if mode == "down":
        return lane + by, lane + by <= highest
    source = lane ^ by if mode == "bfly" else lowest | (by & ~segment)
    return source, source <= highest


def _require_members(frame: Frame, instruction: Instruction, members: Array) -> None:
    """Reports threads that `members` names and that are not here, or that are here and not named."""
    here = present(frame)
    absent = np.broadcast_to(members & ~here & _existing(frame), frame.count) != 0
    bit = (np.uint32(1) << frame.of_these(frame.batch.lane)) & members
    wrong = absent | (np.broadcast_to(bit, frame.count) == 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        self_missing = not np.broadcast_to(bit, frame.count)[at]
        example = f"{thread_name(frame, at)} waits for threads of its warp that are elsewhere" if not self_missing else \
            f"{thread_name(frame, at)} is not one of the threads that the instruction names"
        frame.run.findings.add(ABSENT_LANE, instruction, int(np.count_nonzero(wrong)), example)


def require_whole_warps(frame: Frame, instruction: Instruction) -> None:
    """Reports warps of which some threads are elsewhere, or do not exist."""
    if frame.lanes is None and frame.batch.whole_warps:
        return
    wrong = np.broadcast_to(present(frame), frame.count) != np.uint32(0xFFFFFFFF)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        frame.run.findings.add(ABSENT_LANE, instruction, int(np.count_nonzero(wrong)),
                               f"{thread_name(frame, at)} makes it without some of the 32 threads of its warp")


def _existing(frame: Frame) -> Array:
    """For each of these threads the lanes of its warp that the block has, as bits."""
    batch = frame.batch
    if batch.whole_warps:
        return np.array([0xFFFFFFFF], np.uint32)
    rest = batch.threads % WARP
    last = frame.of_these(batch.thread) // WARP == batch.warps_of_block - 1
    return np.where(last, np.uint32((1 << rest) - 1), np.uint32(0xFFFFFFFF))


def present(frame: Frame) -> Array:
    """Returns, for each of these threads, which lanes of its warp are among them, as bits."""
    if frame.lanes is None and frame.batch.whole_warps:
        return np.array([0xFFFFFFFF], np.uint32)
    return ballot(frame, np.ones(frame.count, bool))


def ballot(frame: Frame, holds: Array) -> Array:
    """Returns, for each of these threads, the lanes of its warp where `holds`, as bits."""
    everywhere = spread(frame, np.broadcast_to(holds, frame.count))
    words = np.packbits(everywhere.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32).reshape(-1)
    return cast(Array, words[frame.of_these(frame.batch.position) // WARP])


def _report_absent(frame: Frame, instruction: Instruction, there: Array, source: Array) -> None:
    if not there.all():
        at = int(np.flatnonzero(~there)[0])
        frame.run.findings.add(ABSENT_LANE, instruction, int(np.count_nonzero(~there)),
                               f"{thread_name(frame, at)} takes the value of lane {int(source[at])}, which does not take part")


def vote(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of vote.sync: whether a predicate holds in all, in any, in equally all threads of a warp, or where."""
    mode = instruction.parts[2] if len(instruction.parts) == 4 else ""
    if instruction.parts[1] != "sync" or mode not in ("all", "any", "uni", "ballot"):
        raise unknown(instruction)
    write = names.writer(instruction.operands[0], instruction)
    read = names.reader(instruction.operands[1], "pred", instruction)
    members_of = names.reader(instruction.operands[2], "b32", instruction)

    def run(frame: Frame) -> None:
        holds, members = read(frame.registers), members_of(frame.registers)
        _require_members(frame, instruction, members)
        true = ballot(frame, holds) & members
        if mode == "ballot":
            write(frame.registers, true)
            return
        all_of, any_of = true == (members & present(frame)), true != 0
        write(frame.registers, {"all": all_of, "any": any_of, "uni": all_of | ~any_of}[mode])

    return run, SHUFFLE


def active(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of activemask."""
    write = names.writer(instruction.operands[0], instruction)
    return (lambda frame: write(frame.registers, present(frame))), SHUFFLE


_REDUCTIONS: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                               "xor": np.bitwise_xor}


def reduction(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of redux.sync: the sum, or so, of the integers of a warp."""
    change = instruction.parts[2] if len(instruction.parts) == 4 else ""
    if change not in _REDUCTIONS or instruction.type not in ("u32", "s32", "b32"):
        raise unknown(instruction)
    function = _REDUCTIONS[change]
    write = names.writer(instruction.operands[0], instruction)
    read = names.reader(instruction.operands[1], instruction.type, instruction)
    members_of = names.reader(instruction.operands[2], "b32", instruction)

    def run(frame: Frame) -> None:
        _require_members(frame, instruction, members_of(frame.registers))
        values = np.broadcast_to(read(frame.registers), frame.count)
        warp = frame.of_these(frame.batch.position) // WARP
        starts = np.flatnonzero(np.concatenate(([True], warp[1:] != warp[:-1])))
        results = function.reduceat(values, starts)
        write(frame.registers, np.repeat(results, np.diff(np.append(starts, frame.count))).astype(values.dtype))

    return run, SHUFFLE


def match(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of match.any.sync: which threads of a warp have the same value."""
    if instruction.parts[1:3] != ("any", "sync"):
        raise unknown(instruction)
    write = names.writer(instruction.operands[0], instruction)
    read = names.reader(instruction.operands[1], instruction.type, instruction)

    def run(frame: Frame) -> None:
        values = np.broadcast_to(read(frame.registers), frame.count)
        found = np.zeros(frame.count, np.uint32)
        rows = spread(frame, values).reshape(-1, WARP)
        position = frame.of_these(frame.batch.position)
        there = present(frame)
        for lane in range(WARP):
            same = rows[position // WARP, lane] == values
            found |= np.where(same & ((there >> np.uint32(lane)) & 1 == 1), np.uint32(1 << lane), np.uint32(0))
        write(frame.registers, found)

    return run, SHUFFLE


def barrier(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of bar.warp.sync; barriers of blocks end blocks of the program instead."""
    if instruction.parts[1:] != ("warp", "sync"):
        raise unknown(instruction)
    members_of = names.reader(instruction.operands[0], "b32", instruction)

    def run(frame: Frame) -> None:
        _require_members(frame, instruction, members_of(frame.registers))
        frame.batch.pass_warp_barrier(slice(None) if frame.lanes is None else frame.lanes)

    return run, "barrier"
