"""The methods by name: functions of a problem that return an assignment, a device for each part."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.graph.placement.methods.critical_path import critical_path, moves
from tedsl.graph.placement.methods.heft import heft
from tedsl.graph.placement.methods.measuring import Measure
from tedsl.graph.placement.methods.optimal import optimal
from tedsl.graph.placement.methods.simple import fastest, single
from tedsl.graph.placement.problem import Assignment, Problem

# All take the problem, a function that measures assignments (None: they are estimated), and rounds without gain to stop after.
METHODS: dict[str, Callable[[Problem, Measure | None, int], Assignment]] = {
    "single": single, "fastest": fastest, "critical_path": critical_path, "moves": moves, "heft": heft, "optimal": optimal,
}
