"""Devices, where arrays are placed.
Only `cpu()` exists; the other kinds have names, so that programs can ask whether they exist.
"""

from __future__ import annotations

from tedsl.errors import ArgumentError
from tedsl.record import record

CPU, CUDA = 1, 2  # DLPack's numbers, and TVM's for what DLPack does not have
OTHERS = {"opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "hexagon": 14}
_KINDS = {"cpu": CPU, "llvm": CPU, "c": CPU, "cuda": CUDA, "gpu": CUDA, "nvptx": CUDA, **OTHERS, "cl": 4, "vk": 7, "mtl": 8}
_NAMES = {CPU: "cpu", CUDA: "cuda", **{number: name for name, number in OTHERS.items()}}


@record
class Device:
    """A device: `device_type` is DLPack's number of its kind, `device_id` its number."""

    device_type: int
    device_id: int = 0

    @property
    def kind(self) -> str:
        return _NAMES[self.device_type]

    @property
    def exist(self) -> bool:
        """Tells whether arrays can be placed on it here."""
        return self.device_type == CPU and self.device_id == 0

    def sync(self, stream: object = None) -> None:
        """Waits until the device is idle: a CPU kernel is done when its call returns."""

    def __str__(self) -> str:
        return f"{self.kind}({self.device_id})"

    __repr__ = __str__


def cpu(dev_id: int = 0) -> Device:
    """Returns the CPU as a device.

    Raises ArgumentError for a number below 0.
    """
    return device("cpu", dev_id)


def cuda(dev_id: int = 0) -> Device:
    """Returns a CUDA device."""
    return device("cuda", dev_id)


def rocm(dev_id: int = 0) -> Device:
    """Returns a ROCm device."""
    return device("rocm", dev_id)


def opencl(dev_id: int = 0) -> Device:
    """Returns an OpenCL device."""
    return device("opencl", dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """Returns a Vulkan device."""
    return device("vulkan", dev_id)


def metal(dev_id: int = 0) -> Device:
    """Returns a Metal device."""
    return device("metal", dev_id)


def device(dev_type: str | int = "cpu", dev_id: int = 0) -> Device:
    """Returns the device of that kind ("cpu", "cuda", or a target such as "llvm -mcpu=skylake") and number.

    Raises ArgumentError for an unknown kind or a negative number.
    """
    if isinstance(dev_id, bool) or not isinstance(dev_id, int) or dev_id < 0:
        raise ArgumentError(f"the number of a device is an int of at least 0, not {dev_id!r}")
    if isinstance(dev_type, int) and dev_type in _NAMES:
        return Device(dev_type, dev_id)
    name = dev_type.split()[0] if isinstance(dev_type, str) and dev_type.split() else dev_type
    if not isinstance(name, str) or name not in _KINDS:
        raise ArgumentError(f"there is no device kind {dev_type!r}", hint=f"choose one of {', '.join(_KINDS)}")
    return Device(_KINDS[name], dev_id)
