"""Where the arrays of registers lie: addresses are fixed when planned, and running allocates nothing.

    chunk (a device) ── block (a register description, `count` registers) ── register ── arrays

Registers made of the arrays of others (repeated, unpacked, changed in place) and control registers take no memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from tedsl.actors.machine.kinds import kind_named
from tedsl.actors.plan.check import path_of
from tedsl.actors.plan.description import Plan, RegisterDescription
from tedsl.errors import ArgumentTypeError
from tedsl.graph.plan.offsets import Range, place
from tedsl.record import record
from tedsl.runtime.array import NDArray, aligned, numpy_dtype
from tedsl.runtime.devices.device import Device
from tedsl.runtime.devices.memory import DeviceArray, DeviceMemory


@record(eq=False)
class Block:
    """The memory of one register description: `count` registers of `stride` bytes from `offset` on, on `device`."""

    register: str
    device: str
    offset: int
    stride: int
    count: int

    @property
    def bytes(self) -> int:
        return self.stride * self.count


@record(eq=False)
class MemoryPlan:
    """The blocks of a plan, and the size of the chunk of each device in bytes."""

    blocks: dict[str, Block]
    chunks: dict[str, int]

    def __str__(self) -> str:
        lines = [f"chunk of {device}: {size} bytes" for device, size in self.chunks.items()]
        lines += [f"  {block.offset:>10} {block.bytes:>10} {block.register} ({block.count} of {block.stride} on {block.device})"
                  for block in self.blocks.values()]
        return "\n".join(lines)


def owns_memory(plan: Plan, register: RegisterDescription) -> bool:
    """Whether the arrays of a register are its own."""
    return not (register.is_control or register.in_place or kind_named(plan.tasks[register.producer].kind).borrows)


def memory_of(plan: Plan, worker: str | None = None) -> MemoryPlan:
    """The memory of a plan, or of the registers that the tasks of one worker fill."""
    here = {name for name, one in plan.registers.items() if worker is None or plan.tasks[one.producer].worker == worker}
    blocks: dict[str, Block] = {}
    chunks: dict[str, int] = {}
    for name in dict.fromkeys([one.block for one in plan.registers.values() if one.block and one.name in here]):
        _share(plan, name, blocks, chunks)
    for register in plan.registers.values():
        if register.name in here and owns_memory(plan, register) and not register.block:
            offset = chunks.get(register.device, 0)
            blocks[register.name] = Block(register.name, register.device, offset, register.bytes, register.count)
            chunks[register.device] = offset + blocks[register.name].bytes
    return MemoryPlan(blocks, chunks)


def _share(plan: Plan, block: str, blocks: dict[str, Block], chunks: dict[str, int]) -> None:
    """Adds the registers of a block that is shared in time: tasks use it one after the other."""
    at = {task.name: number for number, task in enumerate(path_of(plan, block))}
    registers = [register for register in plan.registers.values() if register.block == block]
    placed = place([Range(one.bytes, at[one.producer], max((at[name] for name in one.consumers), default=at[one.producer]))
                    for one in registers])
    device = registers[0].device
    begin = chunks.get(device, 0)
    blocks |= {one.name: Block(one.name, device, begin + offset, one.bytes, 1) for one,
               offset in zip(registers, placed.offsets)}
    chunks[device] = begin + placed.size


def shared_chunks(plans: Sequence[MemoryPlan]) -> dict[str, int]:
    """The chunks that serve plans of which one runs at a time: for each device the largest."""
    if not isinstance(plans, Sequence) or not all(isinstance(plan, MemoryPlan) for plan in plans):
        raise ArgumentTypeError(f"shared_chunks takes a list of MemoryPlans, not {plans!r}",
                                hint="shared_chunks([memory_of(training), memory_of(evaluation)])")
    devices = dict.fromkeys([device for plan in plans for device in plan.chunks])
    return {device: max(plan.chunks.get(device, 0) for plan in plans) for device in devices}


class DeviceChunk:
    """Memory of a device: what registers there lie in."""

    def __init__(self, device: Device, size: int) -> None:
        self.device, self.size = device, size
        self.memory = DeviceMemory(device, size)

    def __len__(self) -> int:
        return self.size


def new_chunks(plan: Plan, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Memory by device: of the processor an array at a multiple of 64 bytes. Raises DeviceError where a device is missing."""
    places = {one.device: one.on_device for one in plan.registers.values()}
    return {name: aligned((size,), numpy.dtype("uint8")) if (device := places[name]) is None else DeviceChunk(device, size)
            for name, size in sizes.items()}


def arrays_at(chunk: Any, register: RegisterDescription, block: Block, number: int) -> list[Any]:
    """The arrays of register `number` of a block."""
    begin, arrays = block.offset + number * block.stride, []
    for spec, offset in zip(register.specs, register.offsets):
        at = begin + offset
        if isinstance(chunk, DeviceChunk):
            memory = chunk.memory
            shape = tuple([int(extent) for extent in spec.shape if isinstance(extent, int)])  # all are: plans are checked
            arrays.append(NDArray(DeviceArray(chunk.device, memory, memory.address + at, shape, numpy_dtype(spec.dtype))))
        else:
            arrays.append(chunk[at:at + spec.bytes].view(numpy_dtype(spec.dtype)).reshape(spec.shape))
    return arrays
