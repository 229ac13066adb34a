"""Random recurrences: one or two states of a te.scan, operations between them, and a reader of all rows.

Their launches bind what the steps compute to threads, with the rows of the scan inside of the launch.
"""

from __future__ import annotations

from typing import Any

from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.reference import Reference
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.state import StageState

ROWS, WIDTHS = (1, 2, 3, 5, 7), (1, 2, 3, 4, 5, 8, 9)


class Recurrence:
    """Draws the lines of a case: placeholders X and W, states s0 and s1 of as many rows as X, C from the results."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.case = draw, Case([], ["C"], ["X", "W", "C"])
        self.rows, self.width = draw.choice(ROWS), draw.choice(WIDTHS)
        symbolic = draw.chance(40)
        self.m, self.n = ("n0", "n1") if symbolic else (str(self.rows), str(self.width))
        self.case.counts["symbolic"] = int(symbolic)
        self.first = draw.choice((1, 1, 2)) if self.rows > 1 else 1  # rows that are given
        self.between: list[str] = []
        if symbolic:
            self.case.sizes.update(n0=self.rows, n1=self.width)
            self.case.lines += [f"{name} = te.var('{name}')" for name in ("n0", "n1")]

    def placeholder(self, name: str, rows: str) -> None:
        self.case.lines.append(f"{name} = te.placeholder(({rows}, {self.n}), 'int32', name='{name}')")

    def compute(self, name: str, body: str, rows: str | None = None, prefix: tuple[str, ...] = ()) -> None:
        self.case.lines += [*prefix, f"{name} = te.compute(({rows or self.m}, {self.n}), lambda t, i: {body}, name='{name}')"]

    def declare(self) -> Case:
        """The case, without a schedule."""
        draw, states = self.draw, ["s0", "s1"][:self.draw.between(1, 2)]
        self.case.data["X"] = Data("int32", (self.rows, self.width), draw.which(1000))
        self.case.data["W"] = Data("int32", (self.width, self.width), draw.which(1000))
        self.placeholder("X", self.m)
        self.placeholder("W", self.n)
        self.compute("ready", "X[t, i] * 2 + 1")
        self.compute("weight", "W[i, t] + 1", rows=self.n)
        for state in states:
            self.placeholder(state, self.m)
        for q in range(len(states)):
            self.compute(f"init{q}", f"t + i * {q + 1}", rows=str(self.first))
        for number in range(draw.between(0, 3)):
            self.operation(f"p{number}", states)
        updates = [f"update{q}" for q in range(len(states))]
        for q in range(len(states)):
            self.update(updates[q], states, updates[:q])
        self.scan(states, updates)
        return self.case

    def operation(self, name: str, states: list[str]) -> None:
        """An operation that each step computes, from an earlier row of a state or from another such operation."""
        draw = self.draw
        row = f"{draw.choice(states)}[t - {draw.between(1, self.first)}, "
        kind = draw.choice(("plain", "stencil", "product", "chain"))
        if kind == "chain" and self.between:
            self.compute(name, f"{draw.choice(self.between)}[t, {self.n} - 1 - i] + ready[t, i]")
        elif kind == "stencil":
            self.compute(name, f"te.if_then_else(i > 0, {row}i - 1], X[t, i])")
        elif kind == "product":
            k = f"k{name}"
            axis = f"{k} = te.reduce_axis((0, {self.n}), name='{k}')"
            self.compute(name, f"te.sum({row}{k}] * weight[{k}, i], axis={k})", prefix=(axis,))
        else:
            self.compute(name, f"{row}i] + X[t, i]")
        self.between.append(name)

    def update(self, name: str, states: list[str], before: list[str]) -> None:
        """The next row of a state, from operations of the same step and maybe from updates `before` it."""
        draw = self.draw
        terms = [f"{draw.choice(states)}[t - {draw.between(1, self.first)}, i]", "ready[t, i]"]
        terms += [f"{p}[t, i]" for p in draw.sample(self.between, min(len(self.between), draw.between(0, 2)))]
        terms += [f"{u}[t, {self.n} - 1 - i]" for u in before if draw.chance(50)]
        self.compute(name, f"({' + '.join(terms)}) % 13")

    def scan(self, states: list[str], updates: list[str]) -> None:
        results = [f"scan{q}" for q in range(len(states))]
        inits = [f"init{q}" for q in range(len(states))]
        three = [", ".join(some) if len(some) == 1 else f"[{', '.join(some)}]" for some in (inits, updates, states)]
        inputs = self.draw.choice(("", "inputs=[X], "))
        self.case.lines.append(f"{', '.join(results)} = te.scan({', '.join(three)}, {inputs}name='scan')")
        self.compute("C", " + ".join([f"scan0[{self.m} - 1 - t, i]", *(f"{result}[t, i]" for result in results)]))


def draw_recurrence(draw: Draw) -> tuple[Case, dict[str, Any]]:
    """A case without a schedule, and its outputs by the reference."""
    case = Recurrence(draw).declare()
    names: dict[str, Any] = {"te": Reference(case.sizes, {name: data.values() for name, data in case.data.items()})}
    for text in case.lines:
        exec(text, names)
    return case, {name: names[name] for name in case.outputs}


def launch(scheduler: Scheduler) -> None:
    """Puts the rows of the scan inside a launch, and most stages on its threads."""
    draw = scheduler.draw
    count = draw.choice((1, 2, 3, 4))
    scheduler.attempt("launch", f"thread = te.thread_axis((0, {count}), 'threadIdx.x')")
    for name in list(scheduler.tensors):
        stage = scheduler.state(name)
        elements = _elements(stage)
        if not isinstance(stage.op, ComputeOp) or not elements or draw.chance(10):
            continue
        at, how = stage.leaf_iter_vars.index(elements[-1]), draw.choice(("nparts", "factor"))
        scheduler.attempt("launch", f"s[{name}].split(loop({name}, {at}), {how}={count})")
        scheduler.attempt("launch", f"s[{name}].bind(loop({name}, {at + (how == 'factor')}), thread)")
        if name[0] in "pu" and draw.chance(40):  # what is computed inside of the scan
            scheduler.attempt("launch", f"s[{name}].set_scope('shared')")
    scheduler.attempt("launch", "s[scan0].env_threads([thread])")


def _elements(stage: StageState) -> list[IterVar]:
    return [loop for loop in stage.leaf_iter_vars if not loop.is_reduction]
