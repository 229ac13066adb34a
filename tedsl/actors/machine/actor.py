"""An actor: it acts when each input is there and each output has a free register. It knows neither threads nor time.

    receive(message) ──► ready()? ──► begin() ──► (the work) ──► finish(act) ──► messages to others

A register is sent to its consumers when it is filled (a request to read it), and back to its producer by each of them
(an acknowledgement); who gets it tells which it is. When a source has no more batches, its end goes along the same ways; an
actor whose input has ended is a zombie: it gives back what still comes, and is done when all that it filled is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy

from tedsl.actors.machine.kinds import Kind, kind_named
from tedsl.actors.plan.description import Plan, RegisterDescription, Task
from tedsl.errors import InternalError
from tedsl.runtime.devices.device import Device


class Register:
    """One of the registers of a description. readers: how many consumers have not given it back.

    lender: the register whose arrays these are, if they are those of an input of the producer. views: of the arrays, for
    those who only read.
    """

    __slots__ = ("arrays", "description", "lender", "number", "readers", "views")

    def __init__(self, description: RegisterDescription, number: int, arrays: list[Any]) -> None:
        self.description, self.number = description, number
        self.hold(arrays)
        self.readers = 1 if description.primed else 0
        self.lender: Register | None = None

    def hold(self, arrays: list[Any]) -> None:
        """Makes these the arrays of the register."""
        self.arrays = arrays
        self.views = [read_only(array) for array in arrays]

    def __repr__(self) -> str:
        return f"<Register {self.description.name}[{self.number}]>"


def read_only(array: Any) -> Any:
    """The array, as those get it who must not change it; arrays on devices are as they are."""
    if not isinstance(array, numpy.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class Message:
    """What actors tell each other. register: filled, or given back; None: `name` (a register description) has ended."""

    __slots__ = ("name", "register", "to")

    def __init__(self, to: str, register: Register | None, name: str) -> None:
        self.to, self.register, self.name = to, register, name


class Act:
    """One act: the registers that it reads and fills. number: of the act, from 0; step: of those that belong together."""

    __slots__ = ("actor", "inputs", "number", "outputs", "step")

    def __init__(self, actor: Actor, number: int, step: int, inputs: list[Register], outputs: list[Register]) -> None:
        self.actor, self.number, self.step = actor, number, step
        self.inputs, self.outputs = inputs, outputs

    def run(self, function: Any) -> Any:
        """Does the work of the act on the arrays of its registers; outputs that are inputs, changed, are not given twice."""
        if not self.actor.borrows:
            return self.actor.kind.run(function, self.step, self.actor.task.steps,
                                       [view for register in self.inputs for view in register.views],
                                       [array for register in self.outputs for array in register.arrays])
        changed = {register.lender for register in self.outputs} if self.actor.in_place else ()
        given = [array for register in self.inputs for array in (register.arrays if register in changed else register.views)]
        filled = [array for register in self.outputs if register.lender is None for array in register.arrays]
        return self.actor.kind.run(function, self.step, self.actor.task.steps, given, filled)


class Actor:
    """The actor of a task. batches: how many a source makes; None: until its function ends."""

    def __init__(self, plan: Plan, task: Task, registers: Mapping[str, list[Register]], batches: int | None = None) -> None:
        self.task, self.kind = task, kind_named(task.kind)
        self.name = task.name
        self.batches = batches
        primed = {name for name in (*task.inputs, *task.outputs) if plan.registers[name].primed}
        self.waiting: dict[str, deque[Register]] = {name: deque(registers[name] if name in primed else ())
                                                    for name in task.inputs}
        self.free: dict[str, deque[Register]] = {name: deque(() if name in primed else registers[name])
                                                 for name in task.outputs}
        self.consumers = {name: plan.registers[name].consumers for name in task.outputs}
        self.in_place = {name: plan.registers[name].in_place for name in task.outputs if plan.registers[name].in_place}
        self.borrows = self.kind.borrows or bool(self.in_place)
        self.together = self.kind.gathers or self.kind.one_by_one  # acts of one output
        self.devices = devices_to_wait_for(plan, task)
        self.open_inputs = set(task.inputs)
        self.out = sum(len(registers[name]) for name in task.outputs
                       if name in primed)  # registers that are filled and not back
        self.acts = 0
        self.step = 0
        self.busy = False
        self.zombie = False
        self.ended = False  # its consumers have been told
        self.held: list[Register] = []  # inputs that stay for further acts
        self.filling: list[Register] = []  # outputs that take further acts
        self.uses: dict[Register, int] = {}  # of inputs that are not given back: acts that read them, outputs made of them
        self.read: set[str] = set()  # one by one: the inputs that this output has had
        self.messages: list[Message] = []

    # --- messages in ----------------------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """Takes a message; `flush` gives those that follow from it."""
        register = message.register
        if register is None:
            self.open_inputs.discard(message.name)
        elif register.description.producer == self.name:
            self._returned(register)
        elif self.zombie:
            self._give_back(register)
        else:
            self.waiting[message.name].append(register)
        self._settle()

    def stop(self) -> None:
        """The source has no more batches, or all are told to end."""
        if not self.task.inputs:
            self.batches = self.acts
        self._settle()

    def _returned(self, register: Register) -> None:
        register.readers -= 1
        if register.readers < 0:
            raise InternalError(f"{register} was given back once too often")
        if register.readers:
            return
        self.out -= 1
        self.free[register.description.name].append(register)
        lender, register.lender = register.lender, None
        if lender is not None:
            self._unused(lender)

    def _unused(self, lender: Register) -> None:
        self.uses[lender] -= 1
        if not self.uses[lender]:
            del self.uses[lender]
            self._give_back(lender)

    def _give_back(self, register: Register) -> None:
        self.messages.append(Message(register.description.producer, register, register.description.name))

    def _settle(self) -> None:
        """Becomes a zombie where no further act is possible; tells the consumers once."""
        none_ended = len(self.open_inputs) == len(self.waiting) > 0
        if none_ended or self.busy or self.ended or not self._is_over():
            return
        self.zombie = self.ended = True
        for queue in self.waiting.values():
            while queue:
                self._give_back(queue.popleft())
        for register in self.held:
            self._unused(register)
        for register in self.filling:  # a group that is not whole
            self.free[register.description.name].append(register)
        self.held, self.filling = [], []
        for name, consumers in self.consumers.items():
            self.messages += [Message(consumer, None, name) for consumer in consumers]

    def _is_over(self) -> bool:
        if not self.task.inputs:
            return self.batches is not None and self.acts >= self.batches
        if self.kind.spreads and self.step:
            return False
        return any(name not in self.open_inputs and not queue and not (self.kind.one_by_one and name in self.read)
                   for name, queue in self.waiting.items())

    @property
    def is_done(self) -> bool:
        """Whether the actor will neither act nor get messages any more."""
        return self.zombie and not self.open_inputs and not self.out

    @property
    def is_incomplete(self) -> bool:
        """Whether it ended in the middle of what belongs together."""
        return self.ended and self.step != 0

    # --- acts -----------------------------------------------------------------------------------------------------------

    @property
    def read_ready(self) -> bool:
        """Whether the inputs of the next act are there."""
        if not self.task.inputs:
            return self.batches is None or self.acts < self.batches
        if self.kind.one_by_one:
            return any(queue and name not in self.read for name, queue in self.waiting.items())
        return bool(self.held) or all(self.waiting.values())

    @property
    def write_ready(self) -> bool:
        """Whether the outputs of the next act have free registers."""
        return bool(self.filling) or all(self.free.values())

    @property
    def ready(self) -> bool:
        return not self.busy and not self.zombie and self.read_ready and self.write_ready

    def begin(self) -> Act:
        """The next act; `ready` holds."""
        self.busy = True
        inputs = self._take_inputs()
        outputs = self.filling or [queue.popleft() for queue in self.free.values()]
        for register in outputs if self.borrows else ():
            lender = self._lender(register, inputs)
            if lender is not None:
                self.uses[lender] += 1
                register.lender = lender
                register.hold(self._view(lender))
        return Act(self, self.acts, self.step, inputs, outputs)

    def _take_inputs(self) -> list[Register]:
        if self.held:
            return self.held
        if self.kind.one_by_one:
            name = next(name for name, queue in self.waiting.items() if queue and name not in self.read)
            self.read.add(name)
            inputs = [self.waiting[name].popleft()]
        else:
            inputs = [queue.popleft() for queue in self.waiting.values()]
        for register in inputs:
            self.uses[register] = 1
        if self.kind.spreads:
            self.held = inputs
        return inputs

    def _lender(self, register: Register, inputs: list[Register]) -> Register | None:
        if self.kind.borrows:
            return inputs[0]
        name = self.in_place.get(register.description.name)
        return next((one for one in inputs if one.description.name == name), None) if name else None

    def _view(self, lender: Register) -> list[Any]:
        view = self.kind.view
        return lender.arrays if view is None or not lender.arrays else view(self.step, self.task.steps, lender.arrays)

    def finish(self, act: Act) -> list[Message]:
        """Ends an act; what the actor tells others, in order."""
        self.busy = False
        self.acts += 1
        last = self._advance()
        if self.together:
            self.filling = [] if last else act.outputs
        if last or not self.together:
            for register in act.outputs:
                self._send(register)
        if last or not self.kind.spreads:
            self.held = []
            for register in act.inputs:
                self._unused(register)
        self._settle()
        return self.flush()

    def cancel(self, act: Act) -> list[Message]:
        """Ends an act of a source that found no further batch: its outputs are free again."""
        self.busy = False
        for register in act.outputs:
            self.free[register.description.name].append(register)
        self.stop()
        return self.flush()

    def _advance(self) -> bool:
        """Counts the step; whether it was the last of those that belong together."""
        steps = len(self.waiting) if self.kind.one_by_one else self.task.steps
        self.step = (self.step + 1) % steps
        if not self.step:
            self.read.clear()
        return not self.step

    def _send(self, register: Register) -> None:
        consumers = self.consumers[register.description.name]
        register.readers = len(consumers)
        self.out += 1
        if not consumers:  # nobody reads it: it is back at once
            register.readers = 1
            self._returned(register)
        self.messages += [Message(consumer, register, register.description.name) for consumer in consumers]

    def flush(self) -> list[Message]:
        """The messages to send, which are not kept."""
        messages, self.messages = self.messages, []
        return messages


def devices_to_wait_for(plan: Plan, task: Task) -> tuple[Device, ...]:
    """The devices whose work is to end before others are told of an act. Tasks of one thread use one stream of each device,
    where what is started later is done later: among them nobody waits.
    """
    found: dict[Device, None] = {}
    for name in (*task.inputs, *task.outputs):
        register = plan.registers[name]
        device = register.on_device
        ends = [plan.tasks[end] for end in (register.producer, *register.consumers)]
        if device is not None and {(one.worker, one.thread or one.name) for one in ends} != {(task.worker, task.thread or
                                                                                                task.name)}:
            found[device] = None
    return tuple(found)


def actors_of(plan: Plan, registers: Mapping[str, list[Register]], batches: int | None) -> dict[str, Actor]:
    """The actors of a plan, by name."""
    return {name: Actor(plan, task, registers, batches if not task.inputs else None) for name, task in plan.tasks.items()}


def empty_registers(plan: Plan) -> dict[str, list[Register]]:
    """Registers without arrays, as runs without work need them."""
    return {name: [Register(register, number, []) for number in range(register.count)] for name,
            register in plan.registers.items()}


__all__ = ["Act", "Actor", "Kind", "Message", "Register", "actors_of", "empty_registers"]
