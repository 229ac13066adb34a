"""Tensors that share one buffer: each must be read before another one overwrites it.

    binds={A: buffer, C: buffer}      C[i] = A[i] * 2     an element for its own: right
                                      C[i] = A[9 - i]     A[9] is gone when C[9] is computed: refused
                                      B[i] = A[9 - i]; C[i] = B[i]     all of A is read before: right
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tedsl.errors import LoweringError
from tedsl.ir.buffer import Buffer
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import guarded_loads
from tedsl.lower.plan import Key, Placement
from tedsl.schedule.state import ScheduleState


def check_in_place(schedule: ScheduleState, plans: Sequence[Placement], tensors: Mapping[Key, Buffer]) -> None:
    """Refuses a schedule in which elements are read after another tensor was written over them."""
    together: dict[Buffer, list[Key]] = {}
    for key, buffer in tensors.items():
        together.setdefault(buffer, []).append(key)
    order = {plan: at for at, plan in enumerate(plans)}
    for buffer, keys in together.items():
        if len(keys) > 1:
            for key in keys:
                _check(schedule, order, buffer, key, {other for other in keys if other != key})


def _check(schedule: ScheduleState, order: Mapping[Placement, int], buffer: Buffer, key: Key, others: set[Key]) -> None:
    """Refuses a reader of `key` that runs after a stage of `others` has overwritten it."""
    writers = [plan for plan in order if any((plan.op, i) in others for i in range(plan.op.num_outputs))]
    computed = max((order[_outermost(plan)] for plan in order if plan.op is key[0]), default=-1)
    for reader in order:
        if not any((schedule.stage_map[read.tensor.op].op, read.tensor.value_index) == key for read in reader.reads):
            continue
        for writer in writers:
            written = order[_outermost(writer)]
            if written < computed or written > order[_outermost(reader)] or (
                    writer is reader and _reads_its_own_element(schedule, reader, key)):
                continue
            name = key[0].output(key[1]).name
            raise LoweringError(f"{name} and {writer.name} are kept in one buffer, {buffer.name}, and {reader.name} reads "
                                f"{name} where {writer.name} may have overwritten it",
                                hint=f"read all of {name} before: AA = s.cache_read({name}, 'global', [{reader.name}]); or "
                                     "bind them to buffers of their own")


def _outermost(plan: Placement) -> Placement:
    while plan.host is not None:
        plan = plan.host
    return plan


def _reads_its_own_element(schedule: ScheduleState, plan: Placement, key: Key) -> bool:
    """Whether each element of `plan` is written once and, of `key`, reads only the element at its own index."""
    if not isinstance(plan.op, ComputeOp) or plan.op.reduce_axis:
        return False
    axes = [axis.var for axis in plan.data_axes]
    loads = [load for body in plan.bodies for load, _ in guarded_loads(body)
             if (schedule.stage_map[load.producer.op].op, load.producer.value_index) == key]
    return all(len(load.indices) == len(axes) and all(a is b for a, b in zip(load.indices, axes)) for load in loads)
