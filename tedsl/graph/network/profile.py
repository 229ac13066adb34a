"""How long each step of a network takes, beside what its machine could do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy

from tedsl.errors import ArgumentError
from tedsl.graph.graph import Graph
from tedsl.graph.network.arrays import dtype_of, shape_of
from tedsl.graph.network.costs import moved, operations
from tedsl.graph.network.kernels import KernelUse
from tedsl.graph.network.limits import Limits, current_limits
from tedsl.graph.network.reasons import LOW, reason
from tedsl.record import record
from tedsl.runtime.timing import TimingResult
from tedsl.target.target import Target

if TYPE_CHECKING:
    from tedsl.graph.network.network import Network


LONGEST = 34  # characters of the name of a kernel in a table


@record
class StepProfile:
    """A step: what it computes, its time in seconds, its operations, the bytes that it moves at least, and the time that no
    kernel of so much work falls below here. reason: why it reaches less than half of that limit; "" if it reaches more.
    calls: the calls of a layer that runs for one group of images after the other, all of which the numbers are of.
    """

    kernel: str
    result: str
    seconds: float
    operations: int
    moved: int
    least: float
    reason: str = ""
    calls: int = 1

    @property
    def results(self) -> str:
        """The result of a call, and how often it is computed if that is not once."""
        return self.result if self.calls == 1 else f"{self.calls} x {self.result}"

    @property
    def share(self) -> float:
        """The part of the machine's limit that is reached."""
        return self.least / self.seconds if self.seconds else 1.0


@record
class Profile:
    """The steps of a network in their order. whole: seconds of a call with them."""

    name: str
    steps: tuple[StepProfile, ...]
    whole: float

    @property
    def seconds(self) -> float:
        """Of all steps together."""
        return sum(step.seconds for step in self.steps)

    def _rows(self) -> list[tuple[str, ...]]:
        head = ("step", "kernel", "result", "µs", "% time", "MFLOP", "MB", "GFLOP/s", "% limit")
        rows = [(str(at), _cut(step.kernel), step.results, f"{step.seconds * 1e6:.1f}",
                 f"{100 * step.seconds / self.seconds if self.seconds else 0:.1f}", f"{step.operations / 1e6:.2f}",
                 f"{step.moved / 1e6:.2f}", f"{step.operations / step.seconds / 1e9 if step.seconds else 0:.1f}",
                 f"{100 * step.share:.0f}") for at, step in enumerate(self.steps)]
        return [head, *rows]

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join([cell.ljust(width) if 1 <= at <= 2 else cell.rjust(width)
                            for at, (cell, width) in enumerate(zip(row, widths))]).rstrip() for row in rows]
        for at, step in enumerate(self.steps):
            if step.reason:
                lines += wrap(f"step {at}: {100 * step.share:.0f} %: {step.reason}", 108, subsequent_indent="  ")
        total = sum(step.operations for step in self.steps)
        share = sum(step.least for step in self.steps) / self.whole if self.whole else 1.0
        return "\n".join([*lines, f"{self.name}: {self.whole * 1e3:.3f} ms a call, {self.seconds * 1e3:.3f} in its steps; "
                                  f"{total / 1e9:.2f} GFLOP; {100 * share:.0f} % of the limit"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tedsl.display.markup import element, joined
        from tedsl.display.page import fragment

        head, *rows = self._rows()
        table = element("table", element("tr", *[element("th", cell) for cell in head]),
                        *[element("tr", *[element("td", cell) for cell in row]) for row in rows])
        return fragment(f"Profile of {self.name}: {self.whole * 1e3:.3f} ms", joined(table))


def profile(network: Network, arrays: Sequence[Any], repeat: int) -> Profile:
    """The profile of a network for arrays of its inputs."""
    instance = network.instance_for(arrays)
    outputs = instance.fresh()
    best, whole = [float("inf")] * len(instance.calls), float("inf")
    limits = current_limits(network.target)
    instance.run(arrays, outputs)
    with instance.exclusive():
        calls = instance.step_arrays(arrays, outputs)
        for _ in range(_count(repeat)):
            begin = now = time.perf_counter()
            for at, (function, given) in enumerate(calls):
                function(*given)
                before, now = now, time.perf_counter()
                best[at] = min(best[at], now - before)
            whole = min(whole, now - begin)
    known = {source: operations(source) for source in dict.fromkeys(use.source for use in instance.uses)}
    between = sum({id(value): value.spec.bytes for use in instance.uses for value in (*use.reads, *use.writes)}.values())
    steps = [_step(instance.uses[calls[0]], [best[at] for at in calls], known[instance.uses[calls[0]].source], between, limits,
                   network.target) for calls in _layers(instance.uses)]
    return Profile(network.name, tuple(steps), whole if steps else 0.0)


def _layers(uses: Sequence[KernelUse]) -> list[list[int]]:
    """The numbers of the calls of each layer: those of one kernel with the same constants, or of nodes of one name."""
    found: dict[Any, list[int]] = {}
    for at, use in enumerate(uses):
        constants = tuple([value for value in use.reads if value.is_constant])
        found.setdefault((use.source, constants, use.node.name) if constants or use.node.name else at, []).append(at)
    return list(found.values())


def _step(use: KernelUse, times: Sequence[float], count: int, between: int, limits: Limits, target: Target) -> StepProfile:
    """The profile of a layer: seconds of each of its calls, of which `use` is one and does `count` operations."""
    size, calls, seconds = moved(use), len(times), sum(times)
    least = calls * limits.seconds(count, size)
    why = reason(use, seconds / calls, between, limits, target) if least < LOW * seconds else ""
    return StepProfile(use.source.name, ", ".join(str(value.spec) for value in use.writes), seconds, calls * count,
                       calls * size, least, why, calls)


def benchmark(network: Network, arrays: Sequence[Any], repeat: int) -> TimingResult:
    """The times of calls of a network, after one that does not count."""
    instance = network.instance_for(arrays)
    outputs = instance.fresh()
    instance.run(arrays, outputs)
    results = []
    for _ in range(_count(repeat)):
        begin = time.perf_counter()
        instance.run(arrays, outputs)
        results.append(time.perf_counter() - begin)
    return TimingResult(tuple(results))


def _count(repeat: Any) -> int:
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError(f"repeat is at least 1, not {repeat!r}")
    return repeat


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST - 3]}..."


def random_arrays(graph: Graph) -> list[Any]:
    """Arrays for the inputs of a graph of known extents, from a seed: normal floats, zeros of other dtypes."""
    rng = numpy.random.default_rng(0)
    return [rng.standard_normal(shape_of(value)).astype(dtype_of(value)) if value.dtype.is_float
            else numpy.zeros(shape_of(value), dtype_of(value)) for value in graph.inputs]
