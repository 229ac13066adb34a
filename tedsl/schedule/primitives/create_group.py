"""create_group: the stages between some inputs and some outputs become a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.schedule.state import Group, ScheduleState, StageState


def create_group(schedule: ScheduleState, outputs: Sequence[StageState], inputs: Sequence[StageState],
                 include_inputs: bool) -> Group:
    """Makes a group of the stages between `inputs` and `outputs`, including the outputs, and the inputs if `include_inputs`.

    A group can be computed at a loop as a whole: its compute_at moves every stage in it that has no place of its own.
    """
    directive = f"create_group([{_names(outputs)}], [{_names(inputs)}])"
    inside = _between(schedule, outputs, inputs, include_inputs, directive)
    _check_uses(schedule, inside, outputs, directive)
    around, within = _groups_near(schedule, inside, directive)
    group = Group(f"group_{len(schedule.groups)}")
    schedule.groups += (group,)
    parents = {**schedule.group_parents, **dict.fromkeys(within, group)}
    schedule.group_parents = parents if around is None else {**parents, group: around}
    for stage in inside:
        if stage.group is around:
            stage.group = group
    return group


def _between(schedule: ScheduleState, outputs: Sequence[StageState], inputs: Sequence[StageState], include_inputs: bool,
             directive: str) -> list[StageState]:
    """The stages that depend on `inputs` and on which `outputs` depend, producers first; refused if there are none."""
    consumers = schedule.consumers()
    below = _reached(inputs, lambda stage: consumers[stage])
    producers = {stage: [p for p in schedule.stages if stage in consumers[p]] for stage in schedule.stages}
    boundary = set(inputs)
    above = _reached(outputs, lambda stage: [] if stage in boundary else producers[stage])
    for output in outputs:
        if output not in below:
            raise output.refuse(directive, f"{output.name} does not use {_names(inputs)}",
                                hint=f"{output.name} uses {_names(producers[output]) or 'nothing'}")
    for one in inputs:
        if one not in above:
            users = _names(consumers[one])
            raise one.refuse(directive, f"no way leads from {one.name} to {_names(outputs)}"
                             + (" that does not begin at another input" if below & set(outputs) else ""),
                             hint=f"{one.name} is used by {users or 'nobody'}")
    inside = [s for s in schedule.stages if s in below and s in above and (include_inputs or s not in boundary)]
    if not inside:
        raise outputs[0].refuse(directive, "there is no stage between these inputs and outputs",
                                hint="write include_inputs=True, or begin at an earlier tensor")
    return inside


def _reached(start: Sequence[StageState], near: Callable[[StageState], list[StageState]]) -> set[StageState]:
    reached, pending = set(start), list(start)
    while pending:
        for stage in near(pending.pop()):
            if stage not in reached:
                reached.add(stage)
                pending.append(stage)
    return reached


def _check_uses(schedule: ScheduleState, inside: list[StageState], outputs: Sequence[StageState], directive: str) -> None:
    """Refuses a group if a stage in it other than an output is read outside of it."""
    consumers = schedule.consumers()
    for stage in inside:
        outside = [reader.name for reader in consumers[stage] if reader not in inside]
        if outside and stage not in outputs and not stage.is_placeholder:
            raise stage.refuse(directive, f"{stage.name} would be in the group, and {outside[0]}, outside of it, uses it too",
                               hint=f"add {stage.name} to the outputs")


def _groups_near(schedule: ScheduleState, inside: Sequence[StageState], directive: str) -> tuple[Group | None, list[Group]]:
    """The innermost group to which all of `inside` belong, and the groups directly within it that have no other stages: they
    lie within the new group. Refused if a group has stages inside and outside.
    """
    chains = {stage: schedule.groups_around(stage.group) for stage in schedule.stages}
    around = next((group for group in chains[inside[0]] if all(group in chains[stage] for stage in inside)), None)
    within: dict[Group, None] = {}
    for stage in inside:
        outer = chains[stage] if around is None else chains[stage][:chains[stage].index(around)]
        if not outer:
            continue
        other = next((one for one in schedule.stages if outer[-1] in chains[one] and one not in inside), None)
        if other is not None:
            raise stage.refuse(directive, f"{stage.name} and {other.name} belong to {outer[-1].name}, and {other.name} would "
                               "not be in the new group: groups lie side by side or one in the other",
                               hint=f"choose ends that leave {outer[-1].name} whole, or stages of it alone")
        within[outer[-1]] = None
    return around, list(within)


def _names(stages: Sequence[StageState]) -> str:
    return ", ".join(stage.name for stage in stages)
