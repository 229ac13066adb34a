"""The methods that choose a device for each part, and leave the order of parts to their distance to the end, by name.

`optimal.py` chooses the order too.
"""

from __future__ import annotations

from collections.abc import Callable

from tedsl.graph.placement.methods.critical_path import critical_path, moves
from tedsl.graph.placement.methods.heft import heft
from tedsl.graph.placement.methods.measuring import Measure
from tedsl.graph.placement.methods.simple import fastest, single
from tedsl.graph.placement.problem import Assignment, Problem

# All take the problem, a function that measures assignments (None: they are estimated), and rounds without gain to stop after.
METHODS: dict[str, Callable[[Problem, Measure | None, int], Assignment]] = {
    "single": single, "fastest": fastest, "critical_path": critical_path, "moves": moves, "heft": heft,
}
