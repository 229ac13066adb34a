"""Runs the parts of a network over actors: a task for each part, on the thread of its device; registers hold what is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.actors import Pipeline, Plan, Report, Runtime, Stream
from tedsl.errors import ArgumentError
from tedsl.graph.network import compile
from tedsl.graph.placement.accelerator import Accelerator
from tedsl.graph.placement.devices import Device, Processor, numbers_for
from tedsl.graph.placement.problem import Assignment
from tedsl.graph.placement.profile import Profile
from tedsl.graph.placement.split import Part, Parts
from tedsl.graph.value import Value

HOST = "cpu"  # the memory of the processor
INPUTS = "inputs"  # the task that the inputs of the network come from
RESULTS = "results"  # the task that takes its results
Compiled = dict[tuple[Part, str], Callable[..., Any]]  # by part and name of the device


def plan_of(parts: Parts, devices: Sequence[Device], known: Compiled) -> Plan:
    """The plan of a network: the device of each part; `known` takes what is compiled for it.

    A register has as many places as batches lie between a part and the last one that reads it. Between devices with memories
    of their own there are tasks that copy.
    """
    pipeline = Pipeline(parts.graph.name)
    depth = _depths(parts)
    reads: dict[int, int] = {}  # by part, -1 the inputs: the deepest part that reads it
    for source, target, _ in parts.edges:
        reads[source] = max(reads.get(source, 0), depth[target])
    end = max(depth) + 1
    for at, part in enumerate(parts):
        if set(part.outputs) & set(parts.graph.outputs):
            reads[at] = end
        if set(part.inputs) & set(parts.graph.inputs):
            reads[-1] = max(reads.get(-1, 0), depth[at])
    counts = {-1: reads.get(-1, 1) + 1} | {at: max(2, reads.get(at, 0) - depth[at] + 1) for at in range(len(parts))}
    given = pipeline.source(INPUTS, None, [value.spec for value in parts.graph.inputs], count=counts[-1])
    streams: dict[tuple[int, str], Stream] = {(-1, HOST): given}  # by part and memory
    memories = {-1: HOST} | {at: memory_of(device) for at, device in enumerate(devices)}

    def stream(source: int, memory: str) -> Stream:
        """The results of a part, in some memory."""
        if (source, memory) not in streams:
            made = streams[source, memories[source]]
            name = f"{made.register}_to_{memory.replace(':', '_')}"
            streams[source, memory] = pipeline.copy(name, made, memory, count=counts[source])
        return streams[source, memory]

    makers = {value: at for at, part in enumerate(parts) for value in part.outputs}
    for at, part in enumerate(parts):
        sources = sorted({makers.get(value, -1) for value in part.inputs})
        places = _places(parts, sources)
        function = _calls(part, _compiled(part, devices[at], known), devices[at], [places[value] for value in part.inputs])
        memory = memories[at]
        streams[at, memory] = pipeline.task(part.name, function, [stream(source, memory) for source in sources],
                                            [value.spec for value in part.outputs], count=counts[at], device=memory,
                                            thread=devices[at].name)
    pipeline.sink(RESULTS, None, [stream(source, HOST) for source in _last(parts)])
    return pipeline.plan()


def memory_of(device: Device) -> str:
    """Where the arrays lie that parts on a device read and fill."""
    return device.memory if isinstance(device, Accelerator) else HOST


def _last(parts: Parts) -> list[int]:
    """The parts that results come from."""
    return sorted({at for at, part in enumerate(parts) for value in part.outputs if value in parts.graph.outputs})


def _depths(parts: Parts) -> list[int]:
    """How many parts stand before each one on the longest way to it, the inputs included."""
    depth = [1] * len(parts)
    for source, target, _ in parts.edges:
        depth[target] = max(depth[target], depth[source] + 1)
    return depth


def _places(parts: Parts, sources: Sequence[int]) -> dict[Value, int]:
    """Where values are among the arrays of several registers one after the other."""
    values = [value for source in sources for value in (parts.graph.inputs if source < 0 else parts[source].outputs)]
    return {value: at for at, value in enumerate(values)}


def _compiled(part: Part, device: Device, known: Compiled) -> Callable[..., Any]:
    """The part as a function for a device."""
    key = part, device.name
    if key not in known:
        known[key] = device.compiled(part) if isinstance(device, (Accelerator, Processor)) else compile(part.graph)
    return known[key]


def _calls(part: Part, compiled: Callable[..., Any], device: Device, places: Sequence[int]) -> Callable[..., None]:
    """The part as a function of the arrays of its registers; places: which of them its inputs are."""
    count = len(part.outputs)
    if isinstance(device, Accelerator):
        return lambda *arrays: compiled([arrays[at] for at in places], arrays[len(arrays) - count:])

    def function(*arrays: Any) -> None:
        results = compiled(*[arrays[at] for at in places])
        made = results if isinstance(results, tuple) else (results,)
        for result, out in zip(made, arrays[len(arrays) - count:]):
            out[...] = result

    return function


class Runner:
    """The compiled parts of a network, and the runtime that runs them. known: parts that are compiled, which grow by these."""

    def __init__(self, parts: Parts, devices: Sequence[Device], known: Compiled | None = None) -> None:
        others = [value for value in parts.graph.outputs if value.node is None]
        if others:
            raise ArgumentError(f"run: the network returns {others[0].name}, which no part computes",
                                hint="return what operators compute")
        if not parts.graph.inputs:
            raise ArgumentError("run: the network has no inputs", hint="call it: graph.compile(g)()")
        self.parts = parts
        held = {device.name: device.cores for device in devices if isinstance(device, Processor) and device.cores is not None}
        self.runtime = Runtime(plan_of(parts, devices, {} if known is None else known), cores=held)
        places = _places(parts, _last(parts))
        self._results = [places[value] for value in parts.graph.outputs]

    def one(self, arrays: Sequence[Any]) -> Any:
        """The result for one input."""
        self._check(arrays)
        found: list[Any] = []

        def fetch(number: int, *results: Any) -> None:
            found.extend(result.copy() for result in results)

        self.many(arrays, 1, None, fetch)
        return found[0] if len(found) == 1 else tuple(found)

    def many(self, arrays: Sequence[Any], batches: int | None, feed: Callable[..., Any] | None,
             fetch: Callable[..., Any] | None) -> Report:
        """Runs batches, each from `feed` or, without it, `arrays` again and again."""
        if feed is None:
            self._check(arrays)
            if batches is None:
                raise ArgumentError("run: how many batches? feed is not given, so that they do not end",
                                    hint="run(x, batches=10, fetch=...)")
        elif arrays:
            raise ArgumentError("run: arrays and feed are given", hint="give one of them")

        def given(number: int, *outs: Any) -> Any:
            if feed is not None:
                return feed(number, *outs)
            for out, array in zip(outs, arrays):
                out[...] = array
            return True

        def taken(number: int, *results: Any) -> None:
            if fetch is not None:
                fetch(number, *[results[at] for at in self._results])

        return self.runtime.run(batches, given, taken)

    def _check(self, arrays: Sequence[Any]) -> None:
        inputs = self.parts.graph.inputs
        if len(arrays) != len(inputs):
            raise ArgumentError(f"run: the network takes {len(inputs)} arrays ({', '.join(value.name for value in inputs)}), "
                                f"and {len(arrays)} are given")
        for value, array in zip(inputs, arrays):
            if tuple(numpy.shape(array)) != tuple(value.shape):
                raise ArgumentError(f"run: {value.name} is {value.spec}, and the array has shape {tuple(numpy.shape(array))}")


def measured_whole(profile: Profile, repeat: int = 3) -> Callable[[Assignment], float]:
    """A function that measures assignments: the least seconds of `repeat` runs of one input, after a first one."""
    known: Compiled = {}
    rng = numpy.random.default_rng(0)
    arrays = [numbers_for(rng, value.spec) for value in profile.parts.graph.inputs]

    def seconds(assignment: Assignment) -> float:
        runner = Runner(profile.parts, [profile.devices[at] for at in assignment], known)
        runner.one(arrays)
        return min(runner.many(arrays, 1, None, None).seconds for _ in range(repeat))

    return seconds
