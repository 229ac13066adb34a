"""`place`: the answer of a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.placement.devices import Device, checked_devices
from tedsl.graph.placement.methods import METHODS
from tedsl.graph.placement.methods.measuring import Measure
from tedsl.graph.placement.methods.optimal import optimal
from tedsl.graph.placement.placed import Placement
from tedsl.graph.placement.problem import Problem
from tedsl.graph.placement.profile import Profile, profile
from tedsl.graph.placement.run import measured_whole
from tedsl.graph.placement.split import Parts

CORRECTED = ("critical_path", "moves")  # methods that ask what the whole takes


def place(what: Parts | Profile | Problem, devices: Sequence[Device] | None = None, method: str = "critical_path", *,
          measure: Measure | Literal[False] | None = None, rounds: int = 3) -> Placement:
    """Chooses a device for each part.

    what: parts, which are profiled on `devices`; or their profile; or a problem of one's own. method: "single" (the best one
    device), "fastest" (of each part), "critical_path" (that, corrected), "moves" (corrected anywhere), "heft", "optimal".
    measure: the seconds of an assignment, in place of the estimate; where corrections are made of a profile whose devices are
    all real, the whole is run and measured unless measure=False. rounds: corrections stop after so many without gain.
    """
    if method not in (*METHODS, "optimal"):
        raise ArgumentError(f"place: there is no method {method!r}", hint=f"choose one of {', '.join((*METHODS, 'optimal'))}")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ArgumentError(f"place: rounds is an int of at least 1, not {rounds!r}")
    if measure is not None and measure is not False and not callable(measure):
        raise ArgumentTypeError(f"place: measure is a function of an assignment, not {type_in_words(measure)}",
                                hint="measure((0, 1, 1)): the seconds with part 0 on device 0 and the others on device 1")
    if isinstance(what, Parts):
        what = profile(what, checked_devices("place", () if devices is None else devices))
    if not isinstance(what, (Profile, Problem)):
        raise ArgumentTypeError(f"place: it takes parts, a profile or a problem, not {type_in_words(what)}",
                                hint="placement.split(graph) gives parts")
    if measure is None and method in CORRECTED and isinstance(what, Profile) and what.is_real and len(what.devices) > 1:
        measure = measured_whole(what)
    problem = what.problem() if isinstance(what, Profile) else what
    chosen, order = optimal(problem) if method == "optimal" else (METHODS[method](problem, measure or None, rounds), None)
    return Placement(problem, problem.check(chosen), method, what if isinstance(what, Profile) else None, order)
