"""Plans as data: tasks, which become actors, and registers, which actors fill and read.

    load ──images──► prepare ──clean──► train        a register has one producer and any number of consumers; `count` arrays
                                                     of each make room for so many batches at a time

The design is that of OneFlow's runtime: an actor runs when each of its inputs is there and each of its outputs has a free
register, so that the counts of registers alone hold fast producers back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tedsl.display.graph import Node as Box
from tedsl.display.graph import svg_of
from tedsl.display.page import fragment
from tedsl.errors import ArgumentError
from tedsl.graph.plan.offsets import aligned
from tedsl.graph.value import Spec
from tedsl.record import record
from tedsl.runtime.devices.device import CPU, Device, device

SINK = "sink"


@record(eq=False)
class RegisterDescription:
    """A register between tasks. specs: its arrays, none for a control register, which says only that something is done.

    count: how many there are of it (OneFlow's regst_num). device: where its arrays lie: "cpu", "opencl", or "opencl:1" for the
    second of a kind. in_place: the register whose
    arrays these are, changed; the actor gives that one back when its own is given back. primed: its consumer finds it filled
    before the first batch, as registers from later tasks to earlier ones have to be; for control registers. block: the name of
    memory that it shares with registers that are in use at other times.
    """

    name: str
    producer: str
    consumers: tuple[str, ...]
    specs: tuple[Spec, ...]
    count: int = 2
    device: str = "cpu"
    in_place: str | None = None
    primed: bool = False
    block: str = ""

    @property
    def is_control(self) -> bool:
        return not self.specs

    @property
    def on_device(self) -> Device | None:
        """The device where its arrays are; None for the memory of the processor. Raises ArgumentError for no known kind."""
        kind, _, number = self.device.partition(":")
        found = device(kind, int(number) if number.isdecimal() else 0 if not number else -1)
        return None if found.device_type == CPU else found

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where its arrays begin in one of the registers, and last the size of one in bytes. Arrays begin at multiples of 64
        bytes, on devices of 256: parts of memory that kernels of OpenCL can be given begin there.
        """
        step = 1 if self.on_device is None else 4
        found = [0]
        for spec in self.specs:
            found.append(found[-1] + step * aligned(-(-spec.bytes // step)))
        return tuple(found)

    @property
    def bytes(self) -> int:
        """The size of one of the registers."""
        return self.offsets[-1]


@record(eq=False)
class Task:
    """What an actor does: `kind` says when (`actors.kinds`), `function` what, by the name of an entry of Plan.functions.

    thread: the name of the thread that runs it; tasks of one thread run one at a time. steps: how many pieces a batch is
    repeated, split, packed or summed in, by kinds that do so. worker: the process that it is for, where a run has several; "":
    the one that calls `Runtime.run`.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    function: str | None = None
    thread: str = ""
    steps: int = 1
    worker: str = ""


class Plan:
    """Tasks and registers; `actors.check_plan` looks whether they can run.

    functions: what tasks call, by name: function(*inputs, *outputs), arrays of numpy; it fills the outputs.
    """

    def __init__(self, tasks: Sequence[Task], registers: Sequence[RegisterDescription],
                 functions: Mapping[str, Callable[..., Any]] | None = None, name: str = "plan") -> None:
        self.name = name
        self.tasks = {task.name: task for task in tasks}
        self.registers = {register.name: register for register in registers}
        self.functions = dict(functions or {})
        if len(self.tasks) < len(tasks) or len(self.registers) < len(registers):
            raise ArgumentError(f"plan {name}: two tasks or two registers have one name")

    def task(self, name: str) -> Task:
        return self.tasks[name]

    def inputs(self, task: Task) -> list[RegisterDescription]:
        """The registers that a task reads."""
        return [self.registers[name] for name in task.inputs]

    def outputs(self, task: Task) -> list[RegisterDescription]:
        """The registers that a task fills."""
        return [self.registers[name] for name in task.outputs]

    def __str__(self) -> str:
        from tedsl.actors.plan.text import text

        return text(self)

    def _repr_html_(self) -> str:
        at = {name: number for number, name in enumerate(self.tasks)}
        boxes = [Box((task.name, task.kind if task.steps == 1 else f"{task.kind} {task.steps}"),
                     "input" if not task.inputs else "output" if task.kind == SINK else "plain")
                 for task in self.tasks.values()]
        edges = [(at[one.producer], at[consumer]) for one in self.registers.values() for consumer in one.consumers]
        return fragment(f"Plan {self.name}", svg_of(boxes, edges, "Tasks, and the registers between them"))

    def __repr__(self) -> str:
        return f"<Plan {self.name}: {len(self.tasks)} tasks, {len(self.registers)} registers>"


def in_one_process(plan: Plan) -> Plan:
    """The plan without workers; the same object if it has none."""
    if not any(task.worker for task in plan.tasks.values()):
        return plan
    tasks = [replace(task, worker="", thread=f"{task.worker}/{task.thread or task.name}") if task.worker else task
             for task in plan.tasks.values()]
    return Plan(tasks, list(plan.registers.values()), plan.functions, plan.name)
