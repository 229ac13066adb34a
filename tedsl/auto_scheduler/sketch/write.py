"""`sketched`: a schedule of a whole program, by decisions."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.auto_scheduler.sketch.blocks import block_kernel
from tedsl.auto_scheduler.sketch.choices import Choices
from tedsl.auto_scheduler.sketch.kernels import Kernel, Program
from tedsl.auto_scheduler.sketch.simple import flat_kernel, plain_kernel
from tedsl.auto_scheduler.sketch.sums import can_part, parted_kernel
from tedsl.auto_scheduler.sketch.threads import can_share, element_kernel, shared_kernel
from tedsl.auto_scheduler.sketch.tiles import tile_kernel
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target
from topi.schedules.formulas import extent_of


def sketched(outs: Sequence[Tensor], target: Target, choices: Choices) -> Schedule:
    """A schedule of `outs`. Raises TedslError where a directive refuses what was decided."""
    program = Program(outs, target, choices)
    program.inline()
    kernels = program.kernels()
    if not target.is_device:
        program.choose_hosts(kernels)
    for kernel in reversed(kernels):
        (_bind if target.is_device else _schedule)(program, kernel)
    return program.schedule


def _schedule(program: Program, kernel: Kernel) -> None:
    how = program.choices.one(f"{kernel.name} sketch", _sketches(kernel))
    {"tile": tile_kernel, "flat": flat_kernel, "parted": parted_kernel, "plain": plain_kernel}[how](program, kernel)
    if kernel.host is not None and kernel.host.home.place is not None:
        program.schedule[kernel.tail].compute_at(program.schedule[kernel.host.tail], kernel.host.place)


def _sketches(kernel: Kernel) -> list[str]:
    """The sketches that a kernel has, the promising ones several times."""
    if not kernel.tail.axis:
        return ["parted"] if kernel.anchors and can_part(kernel) else ["plain"]
    if not kernel.anchors:
        return ["flat", "flat", "flat", "tile"]
    large = max(extent_of(axis) or 1 for axis in kernel.tail.axis) > 1
    found = ["plain"] if any(op.num_outputs > 1 for op in kernel.anchors) else ["tile"] * 4
    return found + (["parted"] * 2 if can_part(kernel) else []) + (["plain"] if not large else [])


def _bind(program: Program, kernel: Kernel) -> None:
    """The schedule of a kernel for a device: its loops are bound to blocks and threads."""
    found = ["element"]
    if kernel.anchors:
        single = all(op.num_outputs == 1 for op in kernel.anchors)
        large = any((extent_of(axis) or 1) > 1 for axis in kernel.tail.axis)
        found += (["block"] * 4 if single and large else []) + (["shared"] * 2 if can_share(kernel) else [])
    how = program.choices.one(f"{kernel.name} sketch", found)
    {"block": block_kernel, "shared": shared_kernel, "element": element_kernel}[how](program, kernel)
