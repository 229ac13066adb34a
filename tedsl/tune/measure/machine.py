"""What times depend on beside the program: the model of the machine, and the versions of what compiles."""

from __future__ import annotations

import functools
from importlib import metadata

from tedsl.cache.workers import cores
from tedsl.runtime.devices.table import stand_in_of
from tedsl.target.host import host
from tedsl.target.target import Target
from tedsl.tune.measure.inputs import device_of, devices_for
from tedsl.version import VERSION

ESTIMATED = "estimated"  # the word beside times of a model, wherever they are shown
_SIMULATOR = "sim"  # the kind of devices whose times are those of a model


def is_estimated(target: Target) -> bool:
    """Whether times of code for `target` are those of a model here: where a simulator stands for its device."""
    places = devices_for(target)
    return bool(places) and _SIMULATOR in (places[0].kind, stand_in_of(places[0].kind))


def machine_model(target: Target) -> str:
    """The model of the machine that runs code for `target` here: "AMD EPYC 9B14 (znver4), 8 processors", or the name of a
    device.
    """
    place = device_of(target)
    if place is not None:
        return f"{place.device_name or place.kind}"
    count = cores()
    return f"{_processor_name()}, {count} processor{'s' * (count != 1)}"


@functools.lru_cache(maxsize=1)
def _processor_name() -> str:
    """What the system calls the processor, and what LLVM does: virtual machines may hide the first."""
    known = host().cpu
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            said = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        said = ""
    return f"{said} ({known})" if said else known


@functools.lru_cache(maxsize=1)
def tool_versions() -> str:
    """The versions of tedsl and of the compiler behind it: "tedsl 0.1.0, llvmlite 0.45.0"."""
    try:
        compiler = metadata.version("llvmlite")
    except metadata.PackageNotFoundError:
        compiler = "unknown"
    return f"tedsl {VERSION}, llvmlite {compiler}"
