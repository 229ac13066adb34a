"""Plans made step by step.

    p = Pipeline("train")
    images = p.source("load", load, Spec((8, 3, 32, 32)))
    clean = p.task("prepare", prepare, [images], Spec((8, 3, 32, 32)))
    p.sink("train", train, [clean])
    plan = p.plan()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tedsl.actors.machine.kinds import kind_named
from tedsl.actors.plan.description import Plan, RegisterDescription, Task
from tedsl.actors.plan.sharing import with_shared_memory
from tedsl.actors.plan.stalls import check_plan
from tedsl.errors import ArgumentError, ArgumentTypeError, PlanError, type_in_words
from tedsl.graph.value import Spec
from tedsl.record import record


@record(eq=False)
class Stream:
    """The results of a task, batch after batch: what other tasks are given."""

    pipeline: Pipeline
    register: str
    specs: tuple[Spec, ...]


class Pipeline:
    """Makes a plan: each call adds a task and returns the stream of its results.

    Common parameters: function, called with the arrays of the inputs and of the outputs, which it fills; outputs, the Spec of
    the result or a list of them; count, how many registers there are for results; device, where they lie; thread, the name of
    the thread that runs the task, of its own by default.
    """

    def __init__(self, name: str = "plan") -> None:
        self.name = name
        self.tasks: dict[str, Task] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self.registers: dict[str, RegisterDescription] = {}

    def source(self, name: str, function: Callable[..., Any] | None, outputs: Any, *, count: int = 2, device: str = "cpu",
               thread: str = "") -> Stream:
        """Makes batches: function(*outputs) fills one; it returns False, or raises StopIteration, when there are no more."""
        return self._add(name, "source", function, [], outputs, count, device, thread)

    def task(self, name: str, function: Callable[..., Any] | None, inputs: Sequence[Stream] | Stream, outputs: Any, *,
             count: int = 2, device: str = "cpu", thread: str = "", in_place: bool = False) -> Stream:
        """Computes. in_place: the arrays of the first input are changed and passed on: function(*inputs) changes them."""
        streams = _listed(name, inputs)
        return self._add(name, "normal", function, streams, outputs, count, device, thread, in_place=in_place)

    def sink(self, name: str, function: Callable[..., Any] | None, inputs: Sequence[Stream] | Stream, *,
             thread: str = "") -> None:
        """Takes results: function(*inputs)."""
        self._add(name, "sink", function, _listed(name, inputs), [], 1, "cpu", thread)

    def copy(self, name: str, stream: Stream, device: str, *, count: int = 2, thread: str = "") -> Stream:
        """The same batches on another device."""
        return self._add(name, "copy", None, [stream], list(stream.specs), count, device, thread)

    def repeat(self, name: str, stream: Stream, steps: int, *, count: int = 2, thread: str = "") -> Stream:
        """Each batch `steps` times, in the arrays of the input, which goes back after the last of them."""
        return self._add(name, "repeat", None, [stream], list(stream.specs), count, self._place(stream), thread, steps)

    def unpack(self, name: str, stream: Stream, steps: int, *, count: int = 2, thread: str = "") -> Stream:
        """Each batch in `steps` pieces along the first dimension, in the arrays of the input."""
        for spec in stream.specs:
            if not spec.shape or not isinstance(spec.shape[0], int) or spec.shape[0] % steps:
                raise PlanError(f"unpack {name}: {spec} has no first dimension of which {steps} equal pieces can be made")
        return self._add(name, "unpack", None, [stream], [_scaled(spec, 1, steps) for spec in stream.specs], count,
                         self._place(stream), thread, steps)

    def pack(self, name: str, stream: Stream, steps: int, *, count: int = 2, thread: str = "") -> Stream:
        """`steps` batches as one, along the first dimension."""
        if not all(spec.shape for spec in stream.specs):
            raise PlanError(f"pack {name}: values without dimensions cannot be joined along the first")
        return self._add(name, "pack", None, [stream], [_scaled(spec, steps, 1) for spec in stream.specs], count,
                         self._place(stream), thread, steps)

    def acc(self, name: str, stream: Stream, steps: int, *, count: int = 2, thread: str = "") -> Stream:
        """The sum of `steps` batches: of gradients, for example."""
        return self._add(name, "acc", None, [stream], list(stream.specs), count, "cpu", thread, steps)

    def inputwise(self, name: str, inputs: Sequence[Stream], function: Callable[..., Any] | None = None, outputs: Any = None, *,
                  count: int = 2, thread: str = "") -> Stream:
        """Acts on each input as soon as it comes: function(step, *arrays, *outputs); without one, the sum of the inputs."""
        streams = _listed(name, inputs)
        return self._add(name, "inputwise", function, streams, list(streams[0].specs) if outputs is None else outputs, count,
                         "cpu",
                         thread)

    def of_kind(self, name: str, kind: str, inputs: Sequence[Stream] | Stream, outputs: Any,
                function: Callable[..., Any] | None = None, *, count: int = 2, device: str = "cpu", thread: str = "",
                steps: int = 1) -> Stream:
        """A task of any kind, also one that `actors.register_kind` added."""
        kind_named(kind)
        return self._add(name, kind, function, _listed(name, inputs), outputs, count, device, thread, steps)

    def after(self, task: str, other: str, *, previous: bool = False, steps: int = 1, count: int = 1) -> None:
        """`task` acts on a batch only after `other` has acted on it: a control register, without arrays.

        previous: after `other` has acted on the batch before; so a model is changed before the next batch sees it. steps: how
        often `task` acts for each act of `other`.
        """
        for end in (task, other):
            if end not in self.tasks:
                raise PlanError(f"after: there is no task {end!r}; tasks: {', '.join(self.tasks) or 'none'}")
        name = f"{other}_before_{'next_' if previous else ''}{task}"
        turns = f"{name}_{steps}_times"  # the task that repeats it
        reader = task if steps == 1 else turns
        self.registers[name] = RegisterDescription(name, other, (reader,), (), count, primed=previous)
        self._change(other, outputs=(*self.tasks[other].outputs, name))
        if steps != 1:
            self._check(turns, "repeat", None, (), count, steps)
            self.tasks[turns] = Task(turns, "repeat", (name,), (turns,), None, self.tasks[task].thread, steps,
                                     self.tasks[task].worker)
            self.registers[turns] = RegisterDescription(turns, turns, (task,), (), count)
        self._change(task, inputs=(*self.tasks[task].inputs, name if steps == 1 else turns))

    def at(self, worker: str, *tasks: str) -> None:
        """Tasks are for the process `worker`, where a run has several: `Runtime(plan, cluster=RayCluster())`."""
        if not isinstance(worker, str) or not (worker == "" or worker.isidentifier()):
            raise PlanError(f"{worker!r} cannot be the name of a worker", hint="write an identifier, as of a Python function")
        for task in tasks:
            if task not in self.tasks:
                raise PlanError(f"at: there is no task {task!r}; tasks: {', '.join(self.tasks) or 'none'}")
            self._change(task, worker=worker)

    def plan(self, *, share_memory: bool = False) -> Plan:
        """The plan. Raises PlanError if it cannot run.

        share_memory: tasks that follow each other on one thread do whole batches one after the other, and their registers of
        count 1 share memory.
        """
        plan = Plan(list(self.tasks.values()), list(self.registers.values()), self.functions, self.name)
        return check_plan(with_shared_memory(check_plan(plan)) if share_memory else plan)

    def _add(self, name: str, kind: str, function: Callable[..., Any] | None, inputs: Sequence[Stream], outputs: Any,
             count: int,
             device: str, thread: str, steps: int = 1, in_place: bool = False) -> Stream:
        self._check(name, kind, function, inputs, count, steps)
        for what, text in (("device", device), ("thread", thread)):
            if not isinstance(text, str):
                raise ArgumentTypeError(f"{kind} {name}: {what} is {type_in_words(text)}; it is a str",
                                        hint='device="opencl:1", thread="loading"')
        specs = tuple(_specs(name, outputs))
        for stream in inputs:
            known = self.registers[stream.register]
            self.registers[stream.register] = replace(known, consumers=(*known.consumers, name))
        results = () if kind == "sink" else (name,)
        self.tasks[name] = Task(name, kind, tuple([stream.register for stream in inputs]), results, name if function else None,
                                thread or name, steps)
        if function:
            self.functions[name] = function
        if results:
            borrowed = inputs[0].register if in_place else None
            self.registers[name] = RegisterDescription(name, name, (), specs, count, device, borrowed)
        return Stream(self, name, specs)

    def _place(self, stream: Stream) -> str:
        return self.registers[stream.register].device

    def _check(self, name: str, kind: str, function: Any, inputs: Sequence[Stream], count: int, steps: int) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise PlanError(f"{name!r} cannot be the name of a task", hint="write an identifier, as of a Python function")
        if name in self.tasks:
            raise PlanError(f"there is a task {name}", hint="give this one another name")
        if function is not None and not callable(function):
            raise ArgumentTypeError(f"{kind} {name}: its function is {type_in_words(function)}",
                                    hint="it is called with arrays")
        for stream in inputs:
            if stream.pipeline is not self:
                raise PlanError(f"{kind} {name}: an input belongs to the pipeline {stream.pipeline.name}")
        if len({stream.register for stream in inputs}) < len(inputs):
            raise PlanError(f"{kind} {name}: an input is given twice",
                            hint="give it once; the function reads it as often as it needs")
        for what, number in (("count", count), ("steps", steps)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ArgumentError(f"{kind} {name}: {what} is {number!r}; it is an int of at least 1")

    def _change(self, name: str, **fields: Any) -> None:
        self.tasks[name] = replace(self.tasks[name], **fields)


def _listed(name: str, inputs: Any) -> list[Stream]:
    streams = [inputs] if isinstance(inputs, Stream) else list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for stream in streams:
        if not isinstance(stream, Stream):
            raise ArgumentTypeError(f"task {name}: an input is {type_in_words(stream)}",
                                    hint="inputs are what source, task, ... returned")
    if not streams:
        raise PlanError(f"task {name} has no inputs", hint="what makes batches of nothing is a source")
    return streams


def _specs(name: str, outputs: Any) -> list[Spec]:
    listed = [outputs] if isinstance(outputs, Spec) else list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for spec in listed:
        if not isinstance(spec, Spec):
            raise ArgumentTypeError(f"task {name}: an output is {type_in_words(spec)}",
                                    hint="write Spec((8, 3, 32, 32), 'float32')")
    return listed


def _scaled(spec: Spec, times: int, parts: int) -> Spec:
    first, *rest = spec.shape
    return Spec((first * times // parts, *rest), spec.dtype)
