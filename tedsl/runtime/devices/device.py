"""Devices, where arrays are placed: `cpu()`, and those of the drivers in `devices/`. Kinds without a driver have names, so that
programs can ask whether such devices exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError
from tedsl.record import record
from tedsl.runtime.devices import table
from tedsl.runtime.devices.streams import current_stream, set_stream
from tedsl.target.target import Target

if TYPE_CHECKING:
    from tedsl.runtime.devices.api import DeviceAPI, DeviceProperties

CPU, CUDA = 1, 2  # DLPack's numbers, TVM's for what DLPack does not have, and ours
OTHERS = {"opencl": 4, "vulkan": 7, "metal": 8, "vpi": 9, "rocm": 10, "ext_dev": 12, "hexagon": 14, "webgpu": 15,
          "sim": 1001, "spirv": 1002}
_KINDS = {**dict.fromkeys(("cpu", "llvm", "c", "stackvm"), CPU), **dict.fromkeys(("cuda", "gpu", "nvptx"), CUDA), **OTHERS,
          "cl": 4, "vk": 7, "mtl": 8}
_NAMES = {CPU: "cpu", CUDA: "cuda", **{number: name for name, number in OTHERS.items()}}


@record
class Device:
    """A device: `device_type` is DLPack's number of its kind, `device_id` its number."""

    device_type: int
    device_id: int = 0

    @property
    def kind(self) -> str:
        return _NAMES.get(self.device_type) or table.kind_numbered(self.device_type)

    @property
    def driver(self) -> DeviceAPI | None:
        """The driver of its kind; None for the CPU, which needs none, and for kinds without one."""
        return None if self.device_type == CPU else table.driver_of(self.kind)

    @property
    def missing(self) -> str:
        """The reason why there is no such device here; "" if there is one."""
        if self.device_type == CPU:
            return ""  # any number: all are the processor that this program runs on
        driver = self.driver
        if driver is None:
            return f"there is no driver for devices of the kind {self.kind}"
        return driver.missing(self.device_id).removeprefix(f"there is no {self}: ")

    @property
    def exist(self) -> bool:
        """Tells whether arrays can be placed on it here."""
        return not self.missing

    def same_place(self, other: Device) -> bool:
        """Tells whether arrays on both lie in one memory: on one device, or both on the CPU."""
        return self == other or self.device_type == other.device_type == CPU

    def sync(self, stream: int | None = None) -> None:
        """Waits until all work of a stream has ended, by default of that of this thread. The CPU has none: its kernels are done
        when the call returns.

        Raises DeviceError if a kernel failed.
        """
        driver = self._working()
        if driver is not None:
            driver.synchronise(self.device_id, current_stream(self.kind, self.device_id) if stream is None else int(stream))

    # --- streams, by TVM's names ---

    def create_raw_stream(self) -> int:
        """Returns a new stream, a queue of work beside the default one; `free_raw_stream` frees it."""
        driver = self._working()
        return 0 if driver is None else driver.create_stream(self.device_id)

    def set_raw_stream(self, stream: int | None) -> None:
        """Makes copies and kernels of this thread go to `stream`; None or 0 is the default one."""
        if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
            raise ArgumentTypeError(f"set_raw_stream takes a stream of create_raw_stream, or None, not {stream!r}")
        if self._working() is not None:
            set_stream(self.kind, self.device_id, int(stream or 0))

    def free_raw_stream(self, stream: int) -> None:
        """Frees a stream, once its work has ended."""
        driver = self._working()
        if driver is not None:
            if current_stream(self.kind, self.device_id) == stream:
                set_stream(self.kind, self.device_id, 0)
            driver.free_stream(self.device_id, int(stream))

    # --- limits, by TVM's names: None where the device does not exist or does not say ---

    @property
    def device_name(self) -> str | None:
        value: str | None = self._limit("name")
        return value

    @property
    def compute_version(self) -> str | None:
        """The generation of its instructions: "8.0" for a CUDA device."""
        value: str | None = self._limit("capability")
        return value

    @property
    def max_threads_per_block(self) -> int | None:
        value: int | None = self._limit("max_threads")
        return value

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """The most threads of a block along x, y and z."""
        sizes = self._limit("max_block")
        return list(sizes) if sizes is not None and any(sizes) else None

    @property
    def warp_size(self) -> int | None:
        value: int | None = self._limit("warp_size")
        return value

    @property
    def max_shared_memory_per_block(self) -> int | None:
        value: int | None = self._limit("shared_memory")
        return value

    @property
    def multi_processor_count(self) -> int | None:
        value: int | None = self._limit("processors")
        return value

    @property
    def max_clock_rate(self) -> int | None:
        """The highest frequency, in kilohertz."""
        hertz = self._limit("clock")
        return None if hertz is None else round(hertz / 1e3)

    @property
    def total_global_memory(self) -> int | None:
        value: int | None = self._limit("memory")
        return value

    def _limit(self, name: str) -> Any:
        known = self._properties()
        return None if known is None else getattr(known, name) or None

    def _properties(self) -> DeviceProperties | None:
        driver = self.driver
        return None if driver is None or driver.missing(self.device_id) else driver.properties(self.device_id)

    def _working(self) -> DeviceAPI | None:
        """Returns the driver of a device that is there, None for the CPU; DeviceError for one that is not there."""
        missing = self.missing
        if missing:
            raise DeviceError(f"there is no device {self} here: {missing}", hint=self.instead)
        return self.driver

    @property
    def instead(self) -> str:
        """What to do where this device is not there, for the hint of an error."""
        simulator = "; tedsl.sim(0) runs the same code here, slowly, in its place with TEDSL_CUDA=sim in the environment"
        return "use cpu()" + (simulator if self.kind == "cuda" else "")

    def __str__(self) -> str:
        return f"{self.kind}({self.device_id})"

    __repr__ = __str__


def cpu(dev_id: int = 0) -> Device:
    """Returns the CPU as a device; cpu(1) and others are the same processor and memory, by the numbers of older programs.

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


def vpi(dev_id: int = 0) -> Device:
    """Returns a simulated device of a VPI."""
    return device("vpi", dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """Returns a device of an extension."""
    return device("ext_dev", dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """Returns a Hexagon device."""
    return device("hexagon", dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """Returns a WebGPU device."""
    return device("webgpu", dev_id)


def sim(dev_id: int = 0) -> Device:
    """Returns a simulated CUDA device."""
    return device("sim", dev_id)


def device(dev_type: str | int | Target = "cpu", dev_id: int = 0) -> Device:
    """Returns the device of that kind ("cpu", "cuda", or a target such as "llvm -mcpu=skylake", also as a Target) and number.

    Raises ArgumentError for an unknown kind or a negative number.
    """
    if isinstance(dev_id, bool) or not isinstance(dev_id, int) or dev_id < 0:
        raise ArgumentError(f"the number of a device is an int of at least 0, not {dev_id!r}")
    if isinstance(dev_type, int) and (dev_type in _NAMES or table.kind_numbered(dev_type)):
        return Device(dev_type, dev_id)
    if isinstance(dev_type, Target):
        dev_type = dev_type.kind.device_kind
    name = dev_type.split()[0] if isinstance(dev_type, str) and dev_type.split() else dev_type
    added = isinstance(name, str) and name.isidentifier() and name not in _KINDS and table.number_of(name)
    if added:
        return Device(added, dev_id)
    if not isinstance(name, str) or name not in _KINDS:
        raise ArgumentError(f"there is no device kind {dev_type!r}", hint=f"choose one of {', '.join(_KINDS)}")
    return Device(_KINDS[name], dev_id)
