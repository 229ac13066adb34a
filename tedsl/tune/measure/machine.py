"""What times depend on beside the program: the model of the machine, and the versions of what compiles."""

from __future__ import annotations

import functools
from importlib import metadata

from tedsl.processors import usable_processors
from tedsl.record import record
from tedsl.runtime.devices.table import stand_in_of
from tedsl.target.host import host
from tedsl.target.target import Target
from tedsl.tune.measure.inputs import devices_for, no_device
from tedsl.tune.measure.process import Process
from tedsl.version import VERSION

ESTIMATED = "estimated"  # the word beside times of a model, wherever they are shown
_SIMULATOR = "sim"  # the kind of devices whose times are those of a model
_PATIENCE = 60.0  # seconds in which a driver of devices starts


@record
class DeviceFacts:
    """What measuring needs to know of the device that runs the code of a target here. name: its model, or kind; "": there is
    none. simulated: whether it is one of the simulator.
    """

    name: str
    simulated: bool


def device_facts(target: Target) -> DeviceFacts | None:
    """The facts of the device for `target`; None for processors. Found out in a process of its own: a driver that this one has
    started could not be used by the processes that are forked from it.
    """
    if not target.is_device or not target.kind.device_kind:
        return None
    return _device_facts(str(target), stand_in_of(target.kind.device_kind))


@functools.lru_cache(maxsize=64)
def _device_facts(target: str, stand_in: str) -> DeviceFacts:
    def look() -> DeviceFacts:
        places = devices_for(Target(target))
        if not places:
            return DeviceFacts("", False)
        place = places[0]
        return DeviceFacts(f"{place.device_name or place.kind}", _SIMULATOR in (place.kind, stand_in))

    found = Process(look, "run", _PATIENCE).finish().value
    return found if isinstance(found, DeviceFacts) else DeviceFacts("", False)


def require_device(target: Target) -> None:
    """Raises ArgumentError for a device of which there is none here."""
    facts = device_facts(target)
    if facts is not None and not facts.name:
        raise no_device(target)


def is_estimated(target: Target) -> bool:
    """Whether times of code for `target` are those of a model here: where a simulator stands for its device."""
    facts = device_facts(target)
    return facts is not None and facts.simulated


def machine_model(target: Target) -> str:
    """The model of the machine that runs code for `target` here: "AMD EPYC 9B14 (znver4), 8 processors", or the name of a
    device. Raises ArgumentError for a device of which there is none.
    """
    require_device(target)
    facts = device_facts(target)
    if facts is not None:
        return facts.name
    count = usable_processors()
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
