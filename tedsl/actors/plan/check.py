"""What is wrong with a plan: names, kinds and counts that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NoReturn

from tedsl.actors.machine.kinds import COMPUTES_ON_HOST, kind_named
from tedsl.actors.plan.description import Plan, RegisterDescription, Task
from tedsl.errors import ArgumentError, PlanError


def check_parts(plan: Plan) -> None:
    """Raises PlanError for a plan that cannot run: the message names task and register."""
    for register in plan.registers.values():
        _check_register(plan, register)
    if not plan.tasks:
        raise PlanError(f"plan {plan.name} has no task", hint='numbers = p.source("count", None, Spec((4,))) begins a pipeline')
    for task in plan.tasks.values():
        _check_task(plan, task)
    _check_circles(plan)
    for register in plan.registers.values():
        _check_in_place(plan, register)
    rates(plan)
    for block in dict.fromkeys([register.block for register in plan.registers.values() if register.block]):
        _check_block(plan, block)


def path_of(plan: Plan, block: str) -> list[Task]:
    """The tasks that use the registers of a block, in the order in which they act: each reads what the one before fills.

    Raises PlanError if they do not act one after the other, or the first may act again before the last has.
    """
    registers = [register for register in plan.registers.values() if register.block == block]
    used = {name for register in registers for name in (register.producer, *register.consumers)}
    path = [task for task in in_order(plan) if task.name in used]
    for register in registers:
        if register.count != 1 or register.is_control or register.in_place or register.primed:
            _refuse(plan, f"register {register.name} cannot share the block {block}: such registers have the count 1 and "
                          "arrays "
                          "of their own")
    if len({register.device for register in registers}) > 1:
        _refuse(plan, f"block {block}: its registers lie on {', '.join(sorted({one.device for one in registers}))}")
    if len({(task.worker, task.thread) for task in path}) > 1:
        _refuse(plan, f"block {block}: {path[0].name} and others run on different threads")
    for before, task in pairwise(path):
        if not set(before.outputs) & set(task.inputs):
            _refuse(plan, f"block {block}: {task.name} does not wait for {before.name}, so that both may use it at once")
    ends = [plan.registers[name] for name in path[0].inputs if plan.registers[name].primed]
    if not any(one.producer == path[-1].name and one.count == 1 for one in ends):
        _refuse(plan, f"block {block}: {path[0].name} may begin the next batch before {path[-1].name} is done with this one",
                f"a primed control register of count 1 from {path[-1].name} to {path[0].name}; plan(share_memory=True) adds it")
    return path


def in_order(plan: Plan) -> list[Task]:
    """The tasks, producers first."""
    done: dict[str, Task] = {}
    while len(done) < len(plan.tasks):
        done |= {name: task for name, task in plan.tasks.items() if name not in done
                 and all(plan.registers[one].primed or plan.registers[one].producer in done for one in task.inputs)}
    return list(done.values())


def _check_block(plan: Plan, block: str) -> None:
    path_of(plan, block)
    for register in plan.registers.values():
        producer = plan.tasks[register.producer]
        lenders = {register.in_place, *(producer.inputs if kind_named(producer.kind).borrows else ())}
        lent = [name for name in lenders if name and plan.registers[name].block == block]
        if lent:
            _refuse(plan, f"register {lent[0]} cannot share the block {block}: {register.name} is made of its arrays")


def rates(plan: Plan) -> dict[str, Fraction]:
    """How many times each register is filled for each batch of a source. Raises PlanError if a task reads two that differ."""
    found: dict[str, Fraction] = {}
    waiting = list(plan.tasks.values())
    while waiting:
        ready = [task for task in waiting if all(name in found or plan.registers[name].primed for name in task.inputs)]
        waiting = [task for task in waiting if task not in ready]
        for task in ready:
            come = {name: found[name] for name in task.inputs if name in found}
            if len(set(come.values())) > 1:
                shown = ", ".join(f"{name} {rate} times" for name, rate in come.items())
                _refuse(plan, f"task {task.name} reads registers that come at different rates, for each batch: {shown}",
                        "repeat or unpack the rarer one, or pack or sum the other")
            kind = kind_named(task.kind)
            factor = Fraction(task.steps) if kind.spreads else Fraction(1, task.steps) if kind.gathers else Fraction(1)
            found |= {name: next(iter(come.values()), Fraction(1)) * factor for name in task.outputs}
    for register in plan.registers.values():
        for consumer in register.consumers if register.primed else ():
            others = [name for name in plan.tasks[consumer].inputs if name != register.name]
            if others and found[register.name] != found[others[0]]:
                _refuse(plan, f"{consumer} reads {register.name} {found[register.name]} times for each batch, and {others[0]} "
                              f"{found[others[0]]} times")
    return found


def _refuse(plan: Plan, problem: str, hint: str = "") -> NoReturn:
    raise PlanError(f"plan {plan.name}: {problem}", hint=hint)


def _check_register(plan: Plan, register: RegisterDescription) -> None:
    name = register.name
    if register.count < 1:
        _refuse(plan, f"register {name} has the count {register.count}", "at least 1; 2 let producer and consumer work at once")
    for end in (register.producer, *register.consumers):
        if end not in plan.tasks:
            _refuse(plan, f"register {name} goes to or comes from {end!r}, which is no task ({', '.join(plan.tasks)})")
    if name not in plan.tasks[register.producer].outputs:
        _refuse(plan, f"{register.producer} does not list register {name} among its outputs")
    for consumer in register.consumers:
        if name not in plan.tasks[consumer].inputs:
            _refuse(plan, f"{consumer} does not list register {name} among its inputs")
    if len(set(register.consumers)) < len(register.consumers):
        _refuse(plan, f"register {name} lists a consumer twice")
    try:
        on_device = register.on_device
    except ArgumentError as refusal:
        _refuse(plan, f"register {name} lies on {register.device!r}: {refusal.args[0]}", 'write "cpu", "opencl" or "opencl:1"')
    ends = {plan.tasks[end].worker for end in (register.producer, *register.consumers)}
    if on_device is not None and len(ends) > 1:
        _refuse(plan, f"register {name} lies on {register.device} and is read in another process", 'copy it to "cpu" first')
    if register.primed and (register.specs or len(register.consumers) != 1):
        _refuse(plan, f"register {name} is primed: it has one consumer and no arrays, which nobody has filled")
    if not all(spec.is_static for spec in register.specs):
        _refuse(plan, f"register {name} has a size that is not known: {', '.join(map(str, register.specs))}",
                "addresses are fixed when planned: give numbers")
    if register.in_place is not None and register.in_place not in plan.tasks[register.producer].inputs:
        _refuse(plan, f"register {name} is made in place of {register.in_place}, which {register.producer} does not read")


def lenders(plan: Plan, register: RegisterDescription) -> Iterator[RegisterDescription]:
    """The registers whose arrays a register's are, the nearest first: of an input that is changed in place or passed on."""
    borrowed = register.in_place
    while borrowed:
        yield (lender := plan.registers[borrowed])
        producer = plan.tasks[lender.producer]
        borrowed = producer.inputs[0] if kind_named(producer.kind).borrows else lender.in_place


def _check_in_place(plan: Plan, register: RegisterDescription) -> None:
    """A register that is changed in place has one reader, and so have those whose arrays it is made of."""
    changed = register.in_place
    for lender in lenders(plan, register):
        others = [name for name in lender.consumers if register.producer != name]
        if len(lender.consumers) > 1:
            read = "it" if lender.name == changed else lender.name
            _refuse(plan, f"{register.producer} changes {changed} in place, and {others[0]} reads {read} too",
                    "give the result memory of its own")
        producer = plan.tasks[lender.producer]
        if producer.kind == "repeat":
            _refuse(plan, f"{register.producer} changes {changed} in place, which is the same batch {producer.steps} times",
                    "give the result memory of its own")


def _check_task(plan: Plan, task: Task) -> None:
    kind = kind_named(task.kind)
    for name in (*task.inputs, *task.outputs):
        if name not in plan.registers:
            _refuse(plan, f"task {task.name} names the register {name!r}, which is not there ({', '.join(plan.registers)})")
    for name in task.inputs:
        if task.name not in plan.registers[name].consumers:
            _refuse(plan, f"task {task.name} reads register {name}, which does not list it among its consumers")
    for name in task.outputs:
        if plan.registers[name].producer != task.name:
            _refuse(plan, f"task {task.name} fills register {name}, whose producer is {plan.registers[name].producer}")
    if (task.kind == "source") != (not task.inputs):
        _refuse(plan, f"task {task.name} is a {task.kind} and reads {', '.join(task.inputs) or 'nothing'}",
                "sources read nothing, all others read something")
    devices = {plan.registers[name].device for name in (*task.inputs, *task.outputs) if plan.registers[name].specs}
    if kind.borrows and len(devices) > 1:
        _refuse(plan, f"task {task.name}: a {task.kind} passes arrays on, and its registers lie on "
                      f"{', '.join(sorted(devices))}")
    others = [name for name in (*task.inputs, *task.outputs) if plan.registers[name].on_device is not None]
    if task.kind in COMPUTES_ON_HOST and others and task.function is None:
        _refuse(plan, f"task {task.name}: sums are made in the memory of the processor, and {others[0]} lies on "
                      f"{plan.registers[others[0]].device}", 'copy it to "cpu" before, or write a task that calls a kernel')
    if task.steps < 1 or (task.steps > 1 and not (kind.spreads or kind.gathers)):
        _refuse(plan, f"task {task.name}: a {task.kind} cannot have {task.steps} steps")
    if task.function is not None and plan.functions and task.function not in plan.functions:
        _refuse(plan, f"task {task.name} calls {task.function!r}; functions: {', '.join(plan.functions)}")


def _check_circles(plan: Plan) -> None:
    waiting = {name: {plan.registers[one].producer for one in task.inputs if not plan.registers[one].primed}
               for name, task in plan.tasks.items()}
    while waiting:
        free = [name for name, producers in waiting.items() if not producers & waiting.keys()]
        if not free:
            _refuse(plan, f"tasks wait for each other in a circle: {', '.join(waiting)}", "a register to an earlier task is "
                    "primed: a control register that is there before the first batch")
        for name in free:
            del waiting[name]
