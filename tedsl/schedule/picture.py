"""The stages of a schedule and what they read, as a picture."""

from __future__ import annotations

from tedsl.display.graph import Node, svg_of
from tedsl.display.markup import Markup
from tedsl.schedule.state import AttachType, ScheduleState, StageState

ATTACHED = {AttachType.INLINE: "inline", AttachType.INLINED: "inline", AttachType.SCOPE: "attached"}


def picture(state: ScheduleState) -> Markup:
    """The graph of the stages as SVG: producers above their readers."""
    at = {stage: number for number, stage in enumerate(state.stages)}
    edges = [(at[producer], at[reader]) for producer, readers in state.consumers().items() for reader in readers]
    names = ", ".join(op.name for op in state.outputs)
    return svg_of([_node(stage) for stage in state.stages], edges, f"What the stages of the schedule of {names} read")


def _node(stage: StageState) -> Node:
    shapes = dict.fromkeys(f"[{', '.join(map(repr, stage.op.shape_of(i)))}] {stage.op.dtype_of(i)}"
                           for i in range(stage.op.num_outputs))
    place = ""
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        place = "inlined"
    elif stage.attach_stage is not None and stage.attach_ivar is not None and stage.attach_type == AttachType.SCOPE:
        place = f"at {stage.attach_stage.name}, {stage.attach_ivar.name}"
    kind = "input" if stage.is_placeholder else "output" if stage.is_output else ATTACHED.get(stage.attach_type, "plain")
    return Node(tuple(filter(None, (stage.name, *shapes, place, stage.scope and f"in {stage.scope}"))), kind)
