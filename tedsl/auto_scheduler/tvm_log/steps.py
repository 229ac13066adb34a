"""The steps of a schedule of TVM's auto_scheduler, as our directives.

Steps name stages and loops by their numbers. Stages are those of the program, producers first, and copies that steps have made,
each before the stage that it is a copy of, or behind that which it reads; loops are those of a stage from the outside in.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, TedslError
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule, create_schedule

_ANNOTATIONS = ("", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y",
                "blockIdx.z", "threadIdx.z")
_UNROLL = "auto_unroll_max_step$"


def numbered(tensors: Sequence[Tensor]) -> list[Operation]:
    """The operations of a program by the numbers of their stages.

    Of those whose producers are there already, the next one is that which a walk from the last tensor towards the inputs, last
    inputs first, meets last.
    """
    met: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    waiting = [tensor.op for tensor in tensors]
    while waiting:
        op = waiting.pop()
        if op in met:
            continue
        met[op] = len(met)
        for tensor in op.input_tensors:
            readers.setdefault(tensor.op, []).append(op)
            waiting.append(tensor.op)
    missing = {op: len(op.input_tensors) for op in met}
    ready = [(-met[op], op) for op in met if not missing[op]]
    heapq.heapify(ready)
    found = []
    while ready:
        _, op = heapq.heappop(ready)
        found.append(op)
        for reader in readers.get(op, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (-met[reader], reader))
    return found


def scheduled(tensors: Sequence[Tensor], steps: Sequence[Sequence[Any]]) -> Schedule:
    """The schedule that steps make of a program. Raises TedslError for one that does not apply, by its number."""
    made = _Steps(tensors, steps)
    for number, step in enumerate(steps):
        name, *numbers = step
        apply = _APPLY.get(name)
        try:
            if apply is None:
                raise ArgumentError(f"steps are {', '.join(_APPLY)}")
            apply(made, *numbers)
        except TedslError as error:
            raise ArgumentError(f"step {number} of a schedule of TVM, {list(step)}, does not apply: {error}") from error
        except (IndexError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(f"step {number} of a schedule of TVM, {list(step)}, does not fit this program: {error}",
                                hint="is the task the program, with the arguments, that the log was written for?") from None
    return made.schedule


class _Steps:
    """A schedule that is made step by step. stages, loops: by the numbers that steps use."""

    def __init__(self, tensors: Sequence[Tensor], steps: Sequence[Sequence[Any]]) -> None:
        self.steps = steps
        self.schedule = create_schedule([one.op for one in tensors if not isinstance(one.op, PlaceholderOp)])
        ops = numbered(tensors)
        self.stages: list[Any] = [self.schedule[op] for op in ops]
        self.loops: list[list[Any]] = [_loops(op) for op in ops]

    def loop(self, stage: int, number: int) -> Any:
        return self.loops[_index(stage)][_index(number)]

    def replace(self, stage: int, first: int, count: int, loops: Sequence[Any]) -> None:
        self.loops[stage][first:first + count] = loops

    # --- loops ----------------------------------------------------------------------------------------------------------

    def split(self, stage: int, loop: int, extent: Any, lengths: Sequence[int], inner_to_outer: int) -> None:
        rest, found = self.loop(stage, loop), list[Any]()
        if inner_to_outer:
            for length in reversed(lengths):
                rest, inner = self.stages[stage].split(rest, factor=length)
                found.insert(0, inner)
            self.replace(stage, loop, 1, [rest, *found])
            return
        for length in lengths:
            outer, rest = self.stages[stage].split(rest, nparts=length)
            found.append(outer)
        self.replace(stage, loop, 1, [*found, rest])

    def lengths(self, step: int) -> Sequence[int]:
        """The lengths of an earlier split."""
        name, *numbers = self.steps[_index(step)]
        if name != "SP":
            raise ValueError(f"step {step} is no split")
        lengths: Sequence[int] = numbers[3]
        return lengths

    def follow_split(self, stage: int, loop: int, step: int, count: int) -> None:
        lengths = self.lengths(step)
        self.split(stage, loop, None, [*lengths[:count - 1], math.prod(lengths[count - 1:])], 1)

    def follow_fused_split(self, stage: int, loop: int, steps: Sequence[int], level: int, is_factor: int) -> None:
        self.split(stage, loop, None, [math.prod(self.lengths(step)[_index(level)] for step in steps)], is_factor)

    def fuse(self, stage: int, loops: Sequence[int]) -> None:
        fused = [self.loop(stage, number) for number in loops]
        if list(loops) != list(range(loops[0], loops[0] + len(loops))):
            raise ValueError("loops that are fused stand one in the other")
        self.replace(stage, loops[0], len(loops), [self.stages[stage].fuse(*fused) if len(fused) > 1 else fused[0]])

    def reorder(self, stage: int, order: Sequence[int]) -> None:
        if sorted(order) != list(range(len(self.loops[_index(stage)]))):
            raise ValueError(f"there are {len(self.loops[stage])} loops")
        self.loops[stage] = [self.loop(stage, number) for number in order]
        if len(order) > 1:
            self.stages[stage].reorder(*self.loops[stage])

    def annotate(self, stage: int, loop: int, kind: int) -> None:
        name, target = _ANNOTATIONS[_index(kind)], self.stages[_index(stage)]
        if name in ("unroll", "vectorize", "parallel"):
            getattr(target, name)(self.loop(stage, loop))
        elif name:
            target.bind(self.loop(stage, loop), te.thread_axis(name))

    def pragma(self, stage: int, loop: int, text: str) -> None:
        target, at = self.stages[_index(stage)], self.loop(stage, loop)
        if text.startswith(_UNROLL):
            target.pragma(at, "auto_unroll_max_step", int(text[len(_UNROLL):]))
            target.pragma(at, "unroll_explicit", True)
        else:
            target.pragma(at, text)

    def align(self, stage: int, loop: int, factor: int, offset: int) -> None:
        self.stages[_index(stage)].storage_align(self.loop(stage, loop), factor, offset)

    # --- stages ---------------------------------------------------------------------------------------------------------

    def compute_at(self, stage: int, other: int, loop: int) -> None:
        self.stages[_index(stage)].compute_at(self.stages[_index(other)], self.loop(other, loop))

    def inline(self, stage: int) -> None:
        self.stages[_index(stage)].compute_inline()

    def root(self, stage: int) -> None:
        self.stages[_index(stage)].compute_root()

    def add(self, at: int, op: Operation) -> None:
        """A stage that was made, with the number `at`."""
        self.stages.insert(at, self.schedule[op])
        self.loops.insert(at, _loops(op))

    def cache_read(self, stage: int, scope: str, readers: Sequence[int]) -> None:
        tensor = self.stages[_index(stage)].op.output(0)
        self.add(stage + 1, self.schedule.cache_read(tensor, scope, [self.stages[_index(one)].op for one in readers]).op)

    def cache_write(self, stage: int, scope: str) -> None:
        op = self.stages[_index(stage)].op
        tensors = [op.output(at) for at in range(op.num_outputs)]
        made = self.schedule.cache_write(tensors if len(tensors) > 1 else tensors[0], scope)
        self.add(stage, (made[0] if isinstance(made, list) else made).op)
        self.loops[stage + 1] = _loops(self.stages[stage + 1].op)

    def rfactor(self, stage: int, loop: int, place: int) -> None:
        made = self.schedule.rfactor(self.stages[_index(stage)].op.output(0), self.loop(stage, loop), place)
        self.add(stage, (made[0] if isinstance(made, list) else made).op)
        self.loops[stage + 1] = _loops(self.stages[stage + 1].op)


_APPLY: dict[str, Callable[..., None]] = {
    "SP": _Steps.split, "FSP": _Steps.follow_split, "FFSP": _Steps.follow_fused_split, "FU": _Steps.fuse, "RE": _Steps.reorder,
    "AN": _Steps.annotate, "PR": _Steps.pragma, "SA": _Steps.align, "CA": _Steps.compute_at, "CI": _Steps.inline,
    "CR": _Steps.root, "CHR": _Steps.cache_read, "CHW": _Steps.cache_write, "RF": _Steps.rfactor}


def _loops(op: Operation) -> list[Any]:
    return [*op.axis, *op.reduce_axis] if isinstance(op, ComputeOp) else []


def _index(number: int) -> int:
    """A number of a stage or loop. ValueError for those below 0, which Python counts from the end."""
    if number < 0:
        raise ValueError(f"{number} is below 0")
    return number
