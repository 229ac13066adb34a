"""Random programs of growing size under random schedules, as `python -m tedsl fuzz` draws them, and what a build costs."""

from __future__ import annotations

import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tedsl
from tedsl.cache.place import FOLDER, OFF
from tedsl.errors import TedslError
from tedsl.fuzz.applied import scheduled
from tedsl.fuzz.case import Case
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import SIZES, Size, draw_program
from tedsl.fuzz.schedules import draw_schedule
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp

MOST_STAGES = 24


@dataclass(frozen=True)
class Cost:
    """A built program: the nodes of its formulas and its directives, seconds of the processor, calls of functions."""

    number: int
    size: int
    seconds: float
    calls: int


def calls_made_by(function: Callable[[], object]) -> int:
    """Counts the calls of Python and C functions while `function` runs: work as no busy machine changes it."""
    count = 0

    def see(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        if event == "call" or event == "c_call":
            count += 1

    gc.disable()  # finalizers are calls, too
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Returns the k of the n^k that fits the costs of programs of these sizes best."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return statistics.linear_regression(x, y).slope


def drawn_costs(count: int, most: int = MOST_STAGES) -> Iterator[Cost]:
    """Builds `count` programs of 1 to `most` stages, the larger ones later; those that lowering refuses are left out."""
    for number in range(count):
        stages = round(most ** (number / max(count - 1, 1)))
        draw = Draw(f"build time {number}")
        case, _ = draw_program(draw, Size(1500, SIZES, {stages: 1}))
        draw_schedule(case, draw)
        try:
            _build(case)()
            build = _build(case)
            begin = time.process_time()
            build()
            seconds = time.process_time() - begin
            yield Cost(number, _size(case), seconds, calls_made_by(_build(case)))
        except TedslError:
            continue


def _build(case: Case) -> Callable[[], object]:
    names = scheduled(case)
    return lambda: tedsl.build(names["s"], [names[name] for name in case.args])


def _size(case: Case) -> int:
    operations = [stage.op for stage in scheduled(case)["s"].stages]
    bodies = [body for op in operations if isinstance(op, ComputeOp) for body in op.body]
    return sum(1 for body in bodies for _ in post_order(body)) + len(case.schedule)


def report(count: int) -> str:
    """Returns how the cost of building `count` drawn programs grows with their size, and the slowest of them."""
    os.environ[FOLDER] = OFF  # nothing is recalled
    costs = list(drawn_costs(count))
    sizes = [cost.size for cost in costs]
    slowest = max(costs, key=lambda cost: cost.seconds)
    return (f"{len(costs)} programs of {min(sizes)} to {max(sizes)} nodes and directives, {count - len(costs)} refused\n"
            f"seconds grow as n^{exponent(sizes, [cost.seconds for cost in costs]):.2f}, "
            f"calls as n^{exponent(sizes, [cost.calls for cost in costs]):.2f}\n"
            f"slowest: number {slowest.number}, of size {slowest.size}, {slowest.seconds:.2f} s")
