"""Random programs whose derivatives are compared with differences of their values, in float64.

A program of the fuzzer, its floats made float64, is differentiated by its inputs; along one random direction the derivative
must be the central difference of the values. Programs without a float output that is computed from floats are drawn again.
Where differences of two sizes disagree, or are lost in large values, a kink or a jump is near, and nothing is compared.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tedsl import te
from tedsl.autodiff.gradient import gradient
from tedsl.autodiff.jvp import jvp
from tedsl.autodiff.walk import depending
from tedsl.driver import build
from tedsl.errors import TedslError
from tedsl.fuzz.case import Case
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.programs import SMALL, draw_program
from tedsl.fuzz.recurrences import draw_recurrence
from tedsl.fuzz.report import Finding, Report
from tedsl.fuzz.values import Array
from tedsl.ir.evaluate import evaluate
from tedsl.lang.declare import placeholder
from tedsl.lang.graph import producers_first
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import create_schedule

RECURRENCES = 10  # percent of the programs
STEPS = (1e-5, 2e-6)
TOLERANCE = 1e-4
_ATTEMPTS = 50  # draws of a program; one in four is of integers alone


def case_of(seed: int) -> Case:
    """The program number `seed`, with floats of 64 bits, some of which are computed from others."""
    for attempt in range(_ATTEMPTS):
        case = _drawn(f"derivatives {seed}" + f", {attempt}" * bool(attempt))
        if _of_interest(case, names_of(case)):
            break
    return case


def _drawn(seed: str) -> Case:
    draw = Draw(seed)
    if draw.chance(RECURRENCES):
        case, _ = draw_recurrence(draw)
        case.lines = [_of_floats(line) for line in case.lines]
    else:
        case, _ = draw_program(draw, SMALL)
        case.lines = [re.sub(r"'(float32|float16|bfloat16)'", "'float64'", line) for line in case.lines]
    return case


def _of_floats(line: str) -> str:
    """A line of a recurrence, which is one of integers, as one of floats."""
    if line.startswith("init"):
        line = line.replace("lambda t, i: ", "lambda t, i: X[0, i] * ")
    return line.replace("'int32'", "'float64'").replace("% 13", "* 0.25")


def names_of(case: Case) -> dict[str, Any]:
    """The tensors and variables of a program, by name."""
    names: dict[str, Any] = {"te": te}
    for line in case.lines:
        exec(line, names)
    return names


def _of_interest(case: Case, names: Mapping[str, Any]) -> list[Tensor]:
    """The float outputs that are computed from float inputs."""
    outputs: list[Tensor] = [names[name] for name in case.outputs if names[name].dtype == "float64"]
    inputs = [names[name] for name in case.args if name not in case.outputs and isinstance(names[name], Tensor)]
    order = producers_first([output.op for output in outputs])
    reached = depending(order, [tensor for tensor in inputs if tensor.dtype == "float64"])
    return [output for output in outputs if output in reached]


class Differentiated:
    """A float output of a case by its float inputs: kernels of the value and of the derivatives, and random arrays."""

    def __init__(self, case: Case, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        names = names_of(case)
        outputs = _of_interest(case, names)
        self.args = [names[name] for name in case.args if name not in case.outputs]
        self.inputs = [arg for arg in self.args if isinstance(arg, Tensor) and arg.dtype == "float64"]
        self.values = [self.drawn(case, arg) for arg in self.args]
        self.output = outputs[int(self.rng.integers(len(outputs)))] if outputs else None
        if self.output is not None:
            self.forward = build(create_schedule(self.output.op), [*self.args, self.output])
            sizes = {names[name]: value for name, value in case.sizes.items()}
            self.shape = [int(evaluate(extent, sizes)) for extent in self.output.shape]

    def drawn(self, case: Case, arg: Any) -> Any:
        """A random argument: an array, or the value of a scalar."""
        if not isinstance(arg, Tensor):
            return case.sizes[arg.name]
        data = case.data[arg.op.name]
        return np.array(self.rng.uniform(-2, 2, data.shape) if arg.dtype == "float64" else data.values())

    def value(self, arrays: Sequence[Any]) -> Array:
        result = np.full(self.shape, np.nan)
        self.forward(*arrays, result)
        return result

    def derivatives(self, weights: Array) -> list[Array]:
        assert self.output is not None
        head = placeholder(self.output.shape, "float64", name="head")
        found = gradient(self.output, self.inputs, head)
        kernel = build(create_schedule([tensor.op for tensor in found]), [*self.args, head, *found])
        results = [np.full(np.shape(value), np.nan) for arg, value in zip(self.args, self.values) if arg in self.inputs]
        kernel(*self.values, weights, *results)
        return results

    def change(self, directions: Sequence[Any]) -> Array:
        """The change of the output along directions of the inputs, by forward differentiation."""
        assert self.output is not None
        tangents = [placeholder(tensor.shape, "float64", name=f"d{n}") for n, tensor in enumerate(self.inputs)]
        found = jvp(self.output, self.inputs, tangents)
        kernel = build(create_schedule(found.op), [*self.args, *tangents, found])
        result = np.full(self.shape, np.nan)
        kernel(*self.values, *map(np.array, directions), result)
        return result

    def problem(self) -> str | None:
        """How the derivative along a direction and the differences disagree; None where they agree. "" if there is a kink."""
        weights = self.rng.uniform(-1, 1, self.shape)
        found = self.derivatives(weights)
        directions = [self.rng.uniform(-1, 1, derivative.shape) for derivative in found]
        along = float(sum((a * b).sum() for a, b in zip(found, directions)))
        scale = float(sum(np.abs(a * b).sum() for a, b in zip(found, directions)))
        first, second = (self.difference(weights, directions, step) for step in STEPS)
        size = max(abs(first), abs(second), scale, 1e-3)
        noise = np.finfo("float64").eps * float(np.abs(self.value(self.values) * weights).sum()) / min(STEPS)
        if not np.isfinite(first) or abs(first - second) + noise > TOLERANCE * size:
            return ""
        forward = float((self.change(directions) * weights).sum())
        if max(abs(along - second), abs(forward - second)) <= 10 * TOLERANCE * size:
            return None
        return (f"along a direction the derivative is {along:.9g} in reverse mode and {forward:.9g} forwards, and the "
                f"differences are {first:.9g} and {second:.9g}")

    def difference(self, weights: Array, directions: Sequence[Any], step: float) -> float:
        ends = [self.value(self.moved(directions, by)) for by in (step, -step)]
        with np.errstate(invalid="ignore"):  # of infinities, which are not compared
            return float(((ends[0] - ends[1]) * weights).sum() / (2 * step))

    def moved(self, directions: Sequence[Any], by: float) -> list[Any]:
        moves = iter(directions)
        return [np.array(value + by * next(moves)) if arg in self.inputs else value
                for arg, value in zip(self.args, self.values)]


def run_case(seed: int, report: Report, _: Any = None) -> None:
    """Draw program number `seed`, compare its derivatives, and count what happens."""
    report.counts["sequences"] += 1
    case = case_of(seed)
    script = "\n".join([*case.lines, f"# outputs {case.outputs}, sizes {case.sizes}, inputs {case.data}"])
    try:
        made = Differentiated(case, seed)
        problem = "" if made.output is None else made.problem()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = "refused" if isinstance(error, TedslError) else type(error).__name__
        report.findings.append(Finding(seed, f"{kind} in {place.filename.rpartition('/')[2]}:{place.name}", str(error), script))
        return
    report.counts["agree" if problem is None else "not compared" if not problem else "differ"] += 1
    if problem:
        report.findings.append(Finding(seed, "differ", problem, script))


def summary(report: Report) -> str:
    """The counts of a report, as one line of text."""
    counts = report.counts
    return (f"{counts['sequences']} programs, {len(report.findings)} findings: the derivatives of {counts['agree']} agree with "
            f"differences, {counts['not compared']} were not compared (kinks near by)")
