"""How kernels are simulated: with reports, checked, fast, or a sample of their blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tedsl.errors import ArgumentError
from tedsl.simulate.models import MODELS, Model

REPORT, CHECKED, FAST, SAMPLED = "report", "checked", "fast", "sampled"
MODES = (REPORT, CHECKED, FAST, SAMPLED)
MODE, CAPABILITY = "TEDSL_SIM", "TEDSL_SIM_CAPABILITY"  # variables of the environment
_given: list[str] = []  # by `mode`, the innermost last


def current_mode() -> str:
    """Returns the mode in which kernels are launched now."""
    if _given:
        return _given[-1]
    return _known(os.environ.get(MODE, REPORT), f"the variable {MODE} of the environment")


def _known(name: str, where: str) -> str:
    if name not in MODES:
        raise ArgumentError(f"{where}: there is no mode {name!r} of the simulator", hint=f"the modes are {', '.join(MODES)}")
    return name


@contextmanager
def mode(name: str) -> Iterator[None]:
    """Within a `with` block kernels are simulated so: "report" counts and notes, "checked" raises a DeviceError at the first
    thing that it finds, "fast" does neither. "sampled" runs some blocks of each launch and counts for all: only those blocks
    have results.
    """
    _given.append(_known(name, "simulate.mode"))
    try:
        yield
    finally:
        _given.pop()


def current_model() -> Model:
    """Returns the model of the simulated devices."""
    capability = os.environ.get(CAPABILITY, "8.0")
    if capability not in MODELS:
        raise ArgumentError(f"the variable {CAPABILITY} of the environment: there is no model of capability {capability!r}",
                            hint=f"the models are {', '.join(MODELS)}")
    return MODELS[capability]
