"""The drivers by the name of their kind of device. They are imported when a program first asks for such a device.

Those of others come from `register_device`, or from packages that declare an entry point in the group `tedsl.devices`. Where
the environment says TEDSL_CUDA=sim, the simulator's devices stand for those of CUDA.
"""

from __future__ import annotations

import os
from importlib import import_module

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.plugins import DEVICES, load_plugin
from tedsl.runtime.devices.api import DeviceAPI

# kind -> "module:class", which takes no arguments
OURS: dict[str, str] = {
    "cuda": "tedsl.runtime.devices.cuda.driver:CudaDriver",
    "opencl": "tedsl.runtime.devices.opencl.driver:OpenCLDriver",
    "sim": "tedsl.simulate.driver:SimDriver",
}
STAND_INS = {"cuda": "TEDSL_CUDA"}  # kind -> the variable of the environment that names another kind, which stands for it
_SIMULATORS = {"cuda": "sim"}  # kind -> another, whose devices run its code too
_FIRST_NUMBER = 2000  # of the kinds that are added: DLPack and TVM have none so high
_ADDED: dict[str, DeviceAPI] = {}  # by register_device and by packages
_LOADED: dict[str, DeviceAPI] = {}


def driver_of(kind: str) -> DeviceAPI | None:
    """Returns the driver of devices of `kind`, one for the process; None if tedsl knows of none.

    Raises ArgumentError for a stand-in that is not known.
    """
    stand_in = stand_in_of(kind)
    if stand_in:
        return driver_of(stand_in)
    found = _LOADED.get(kind) or _ADDED.get(kind)
    if found is None and kind in OURS:
        module, _, name = OURS[kind].partition(":")
        found = _LOADED[kind] = getattr(import_module(module), name)()
    if found is None:
        found = load_plugin(DEVICES, kind)
        if found is not None:
            register_device(kind, found)
    return found


def stand_in_of(kind: str) -> str:
    """Returns the kind whose devices stand for those of `kind`, by the environment; "" if none do."""
    variable = STAND_INS.get(kind, "")
    said = os.environ.get(variable, "") if variable else ""
    if said not in ("", "sim"):
        raise ArgumentError(f"the environment variable {variable} is {said!r}", hint=f"set {variable}=sim, or unset it")
    return said


def runs_code_of(place: str, kind: str) -> bool:
    """Whether devices of the kind `place` run code that was made for devices of `kind`."""
    return place in kinds_for_code_of(kind)


def kinds_for_code_of(kind: str) -> list[str]:
    """Returns the kinds of devices that run code made for devices of `kind`: that kind first."""
    return [kind, *([_SIMULATORS[kind]] if kind in _SIMULATORS else [])]


def register_device(kind: str, driver: DeviceAPI) -> None:
    """Registers `driver` for devices of `kind`; `tedsl.device(kind, number)` names them from now on.

    Raises ArgumentError if the kind has a driver, ArgumentTypeError for what lacks methods of a DeviceAPI.
    """
    if not isinstance(kind, str) or not kind.isidentifier():
        raise ArgumentTypeError(f"register_device: the kind of a device is an identifier, not {kind!r}")
    if not isinstance(driver, DeviceAPI):
        methods = [name for name in vars(DeviceAPI) if not name.startswith("_") and not hasattr(driver, name)]
        raise ArgumentTypeError(f"register_device: {driver!r} is not a driver: it lacks {', '.join(methods)}")
    if kind in OURS or _ADDED.get(kind, driver) is not driver:
        raise ArgumentError(f"register_device: devices of kind {kind!r} have a driver already", hint="choose another name")
    _ADDED[kind] = driver


def number_of(kind: str) -> int:
    """Returns the number that stands for the kind of an added driver, as DLPack's do for others; 0 if there is none."""
    if kind not in _ADDED:
        driver_of(kind)
    return _FIRST_NUMBER + list(_ADDED).index(kind) if kind in _ADDED else 0


def kind_numbered(number: int) -> str:
    """Returns the kind for which `number_of` gives `number`; "" if there is none."""
    kinds = list(_ADDED)
    return kinds[number - _FIRST_NUMBER] if 0 <= number - _FIRST_NUMBER < len(kinds) else ""
