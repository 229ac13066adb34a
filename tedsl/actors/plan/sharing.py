"""Memory that registers share in time.

    decode ──a──► resize ──b──► normalize ──c──► ...      on one thread, one register each: a is free when b is filled, so that
       ▲______________________________│                   c may lie where a lies; the control register back, which is there
                                                          before the first batch, keeps decode from filling a again too early
"""

from __future__ import annotations

from dataclasses import replace

from tedsl.actors.machine.kinds import kind_named
from tedsl.actors.plan.check import in_order
from tedsl.actors.plan.description import Plan, RegisterDescription, Task


def with_shared_memory(plan: Plan) -> Plan:
    """The plan with a block for each path of tasks whose registers can share memory; the same object if there is none."""
    tasks, registers = dict(plan.tasks), dict(plan.registers)
    for path in _paths(plan):
        inside = {task.name for task in path}
        shared = [name for task in path for name in task.outputs if _may_share(plan, plan.registers[name], inside)]
        shared = [name for name in shared if plan.registers[name].device == plan.registers[shared[0]].device]
        if len(shared) < 2:
            continue
        first, last = path[0].name, path[-1].name
        back, block = f"{last}_before_next_{first}", f"{first}_to_{last}"
        registers |= {name: replace(registers[name], block=block) for name in shared}
        registers[back] = RegisterDescription(back, last, (first,), (), 1, primed=True)
        tasks[first] = replace(tasks[first], inputs=(*tasks[first].inputs, back))
        tasks[last] = replace(tasks[last], outputs=(*tasks[last].outputs, back))
    if len(registers) == len(plan.registers):
        return plan
    return Plan(list(tasks.values()), list(registers.values()), plan.functions, plan.name)


def _paths(plan: Plan) -> list[list[Task]]:
    """Tasks of one thread, each of which reads what the one before it fills and acts as often; in order."""
    paths: list[list[Task]] = []
    for task in in_order(plan):
        before = next((path for path in paths if path[-1].thread == task.thread and path[-1].worker == task.worker
                       and set(path[-1].outputs) & set(task.inputs)),
                      None)
        kind = kind_named(task.kind)
        if not task.inputs or kind.spreads or kind.gathers or kind.one_by_one:
            continue
        if before is not None:
            before.append(task)
        else:
            paths.append([task])
    return [path for path in paths if len(path) > 2]


def _may_share(plan: Plan, register: RegisterDescription, inside: set[str]) -> bool:
    """Whether a register is used by these tasks alone, has arrays of its own, and lends them to none."""
    readers = [plan.tasks[name] for name in register.consumers]
    lends = any(kind_named(reader.kind).borrows or any(plan.registers[out].in_place == register.name for out in reader.outputs)
                for reader in readers)
    return (register.count == 1 and not register.is_control and register.in_place is None and not lends and bool(readers)
            and {reader.name for reader in readers} <= inside)
