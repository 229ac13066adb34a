"""A program parted into kernels: a tail, whose loops are tiled, and the reductions that it is computed from at once.

    S = sum of A[i, k] * B[k, j]        anchor
    M = S + bias                        inlined
    C = max(M, 0)                       tail, in whose tiles S is computed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tedsl.auto_scheduler.sketch.choices import Choices
from tedsl.errors import ScheduleError
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import create_schedule
from tedsl.target.target import Target
from topi.schedules.formulas import Formula, extent_of, formula_of

_CHEAP = 8  # operations of a formula that cost less than to write and to read its result
_INLINED = 0.85  # how often what may be inlined is


@dataclass
class Kernel:
    """Stages that share their outer loops.

    tail: the last stage. anchors: reductions computed in its tiles, or the tail itself. place: the loop of the tail around
    which other kernels may be computed, once there is one. host: the kernel in whose loops this one is computed.
    """

    name: str
    tail: ComputeOp
    anchors: list[ComputeOp] = field(default_factory=list)
    place: Any = None
    host: Kernel | None = None

    @property
    def home(self) -> Kernel:
        """The kernel at the root in whose loops this one is, in the end."""
        return self if self.host is None else self.host.home


class Program:
    """What is to be scheduled: the schedule that is made, the formulas, who reads whom, the decisions.

    Stages are named by their place in the program, since formulas may have equal names.
    """

    def __init__(self, outs: Sequence[Tensor], target: Target, choices: Choices) -> None:
        self.outs, self.target, self.choices = outs, target, choices
        self.schedule = create_schedule([out.op for out in outs])
        self.order = producers_first([out.op for out in outs])
        self.outputs = {out.op for out in outs}
        self.names = {op: f"{at}.{op.name}" for at, op in enumerate(self.order)}
        self.formulas: dict[Operation, Formula] = {op: formula_of(op.body) for op in self.order if isinstance(op, ComputeOp)}
        self.readers: dict[Operation, list[Operation]] = {op: [] for op in self.order}
        for op in self.order:
            for tensor in op.input_tensors:
                if op not in self.readers[tensor.op]:
                    self.readers[tensor.op].append(op)
        self.inlined: set[Operation] = set()

    def lanes(self, op: ComputeOp) -> int:
        """The numbers of a vector of the results of `op`."""
        return max(1, self.target.vector_bits // op.output(0).dtype.bits)

    def readers_of(self, op: Operation) -> list[Operation]:
        """The stages that read `op`, through those that are inlined."""
        found: dict[Operation, None] = {}
        for reader in self.readers[op]:
            found.update(dict.fromkeys(self.readers_of(reader) if reader in self.inlined else [reader]))
        return list(found)

    def inline(self) -> None:
        """Inlines element-wise stages, as decided."""
        for op in self.order:
            if not isinstance(op, ComputeOp) or op.reduce_axis or op in self.outputs or not self.readers[op]:
                continue
            chance = _INLINED if self.formulas[op].cost <= _CHEAP else 1 - _INLINED
            if all(isinstance(reader, ComputeOp) for reader in self.readers[op]) \
                    and self.choices.yes(f"{self.names[op]} inline", chance):
                try:
                    self.schedule[op].compute_inline()
                    self.inlined.add(op)
                except ScheduleError:  # of a formula that a reader's intrinsic needs whole, for example
                    continue

    def kernels(self) -> list[Kernel]:
        """The stages that are left, as kernels, producers first."""
        found: dict[Operation, Kernel] = {}
        for op in self.order:
            if not isinstance(op, ComputeOp) or op in self.inlined:
                continue
            tail = self._tail(op) if op.reduce_axis else op
            kernel = found.setdefault(tail, Kernel(self.names[tail], tail))
            if op.reduce_axis:
                kernel.anchors.append(op)
        return [found[op] for op in self.order if op in found]

    def _tail(self, anchor: ComputeOp) -> ComputeOp:
        """The element-wise stage in whose loops a reduction may be computed; the reduction itself if there is none."""
        op: Operation = anchor
        while op not in self.outputs and len(self.readers[op]) == 1:
            reader = self.readers[op][0]
            if not isinstance(reader, ComputeOp) or reader.reduce_axis or not self._pointwise(reader, op):
                return anchor
            op = reader
            if op not in self.inlined:
                return op
        return anchor

    def _pointwise(self, reader: ComputeOp, op: Operation) -> bool:
        """Whether an element of `reader` needs only the element of `op` at the same place."""
        axes = [axis.var for axis in reader.axis]
        return all(len(load.indices) == len(axes) and all(a is b for a, b in zip(load.indices, axes))
                   for load in self.formulas[reader].reads_of(op)) and \
            [extent_of(axis) for axis in reader.axis] == [extent_of(axis) for axis in getattr(op, "axis", ())]

    def choose_hosts(self, kernels: Sequence[Kernel]) -> None:
        """Decides which kernels are computed in the loops of their readers."""
        of: dict[Operation, Kernel] = {op: kernel for kernel in kernels for op in (kernel.tail, *kernel.anchors)}
        for kernel in reversed(kernels):
            readers = [of.get(reader) for op in (kernel.tail,) for reader in self.readers_of(op)]
            homes = {reader.home.name for reader in readers if reader is not None}
            if kernel.tail in self.outputs or None in readers or len(homes) != 1:
                continue
            host = readers[0]
            if host is not None and host is not kernel and self.choices.yes(f"{kernel.name} within"):
                kernel.host = host.home
