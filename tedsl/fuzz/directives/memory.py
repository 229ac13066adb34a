"""Directives on the memory of a stage."""

from __future__ import annotations

from tedsl.fuzz.directives.places import compute_at
from tedsl.fuzz.directives.sites import SCOPES, Found, operation, owns_memory, replaceable
from tedsl.fuzz.scheduler import Scheduler
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.state import AttachType, StageState


def set_scope(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: not stage.is_output)
    return None if name is None else f"s[{name}].set_scope('{s.draw.choice(SCOPES)}')"


def nontemporal(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: stage.is_output and not stage.nontemporal)
    return None if name is None else f"s[{name}].nontemporal()"


def storage_align(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: owns_memory(stage) and bool(operation(stage).axis))
    if name is None:
        return None
    dim, factor = s.draw.which(len(operation(s.state(name)).axis)), s.draw.choice([8, 4, 16, 3])
    return f"s[{name}].storage_align(s[{name}].op.axis[{dim}], {factor}, {s.draw.which(factor)})"


def double_buffer(s: Scheduler) -> Found:
    """Double-buffer a stage that is computed at a loop, or is moved to one first."""
    def fits(stage: StageState) -> bool:
        return owns_memory(stage) and not stage.storage.rolling and not stage.storage.double_buffer \
            and stage.attach_type == AttachType.SCOPE

    name = s.pick_stage(fits)
    return _attached_first(s) if name is None else f"s[{name}].double_buffer()"


def _attached_first(s: Scheduler, directive: str = "double_buffer") -> Found:
    text = compute_at(s)
    if text is None:
        return None
    return [("compute_at", text), (directive, f"{text.partition('.')[0]}.{directive}()")]


def rolling_buffer(s: Scheduler) -> Found:
    """Roll the buffer of a stage that is computed at a loop, or is moved to one first."""
    def fits(stage: StageState) -> bool:
        if stage.attach_type != AttachType.SCOPE or not owns_memory(stage) or stage.storage.double_buffer:
            return False
        host, loop = stage.attach_stage, stage.attach_ivar
        return host is not None and loop is not None and not stage.storage.rolling \
            and host.annotation_of(loop) in (None, "unrolled")

    name = s.pick_stage(fits)
    return _attached_first(s, "rolling_buffer") if name is None else f"s[{name}].rolling_buffer()"


def prefetch(s: Scheduler) -> str | None:
    """Prefetch a tensor that the stage reads, at a loop that is not vectorized."""
    sources = {s.names[name]: name for name in [*s.inputs, *s.tensors]}

    def read(stage: StageState) -> list[str]:
        return [sources[tensor] for tensor in stage.op.input_tensors if tensor in sources]

    def scalar(stage: StageState) -> list[int]:
        return [at for at, leaf in enumerate(stage.leaf_iter_vars) if stage.annotation_of(leaf) != "vectorized"]

    place = s.pick(lambda stage: scalar(stage) if read(stage) else [])
    if place is None:
        return None
    name, at = place
    source = s.draw.choice(read(s.state(name)))
    written = [own for own in s.tensors if s.names[own].op in s.state(name).schedule.outputs
               and len(s.names[own].shape) == len(s.names[source].shape)]
    more = s.draw.choice(["", "", ", spread=True", *[f", into={own}" for own in written[:1]]])
    return f"s[{name}].prefetch({source}, loop({name}, {at}), {s.draw.between(0, 3)}{more})"


def transform_layout(s: Scheduler) -> str | None:
    """Transform the layout of a stage whose loops are still its axes: axes reordered, some split or fused."""
    def fits(stage: StageState) -> bool:
        return owns_memory(stage) and replaceable(stage) and bool(operation(stage).axis) and not stage.relations \
            and not stage.guests() and not stage.storage.alignments and stage.store_predicate is None \
            and not any(stage.attr_of(leaf).prefetched for leaf in stage.leaf_iter_vars) \
            and all(type(reader.op) is ComputeOp for reader in stage.schedule.consumers()[stage])

    name = s.pick_stage(fits)
    if name is None:
        return None
    axes = [f"i{at}" for at in range(len(operation(s.state(name)).axis))]
    parts: list[str] = []
    for axis in axes:
        factor = s.draw.choice([0, 0, 2, 3, 4])
        parts += [axis] if factor == 0 else [f"{axis} // {factor}", f"{axis} % {factor}"]
    order: list[str] = []
    while parts:
        order.append(parts.pop(s.draw.which(len(parts))))
    return f"s[{name}].transform_layout(lambda {', '.join(axes)}: [{', '.join(order)}])"
