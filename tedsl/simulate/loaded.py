"""Code that a simulated device has loaded."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence

import numpy as np

from tedsl.errors import DeviceError
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction
from tedsl.runtime.devices.launch import FEWER_THREADS
from tedsl.simulate.device import ONE_AT_A_TIME, SimulatedDevice
from tedsl.simulate.machine.program import Program
from tedsl.simulate.machine.run import Run
from tedsl.simulate.memory.region import Region
from tedsl.simulate.options import CHECKED, FAST, SAMPLED, current_mode
from tedsl.simulate.ptx.parse import parse
from tedsl.simulate.reports.log import keep
from tedsl.simulate.reports.report import report_of


class SimulatedCode:
    """The kernels of a PTX text, ready to run on a device. They are compiled to steps when they are first launched."""

    def __init__(self, device: SimulatedDevice, code: DeviceCode) -> None:
        if code.form != "ptx":
            raise DeviceError(f"sim({device.number}) runs PTX, not code of form {code.form!r}")
        self._device, self._code, self._text = device, code, parse(code.text)
        self._programs: dict[str, Program] = {}
        kept = [device.allocate(v.size, v.name) for v in self._text.variables if v.space != "shared"]
        for region, variable in zip(kept, [v for v in self._text.variables if v.space != "shared"]):
            region.fill(0, variable.initial.ljust(variable.size, b"\0"))
        self._addresses = {region.name: region.base for region in kept}
        weakref.finalize(self, _give_back, device, [region.base for region in kept])

    def launch(self, function: str, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: Sequence[int | float], shared: int = 0, stream: int = 0) -> None:
        """Runs a kernel to its end; another thread waits for it."""
        with ONE_AT_A_TIME:
            self._launch(function, grid, block, arguments, shared, stream)

    def _launch(self, function: str, grid: tuple[int, int, int], block: tuple[int, int, int],
                arguments: Sequence[int | float], shared: int, stream: int) -> None:
        program, declared = self._program(function), self._declared(function)
        self._require_limits(program, grid, block, shared, declared)
        mode, device = current_mode(), self._device
        regions = self._regions(program, arguments)
        run = Run(program, grid, block, packed(program, arguments, declared), shared, device.memory, watched=mode != FAST,
                  checked=mode == CHECKED, contested=contested(program, regions), sampled=mode == SAMPLED)
        for region in tuple(device.memory.regions):
            region.forget()
        begin = time.perf_counter()
        try:
            run.run()
        finally:
            report = report_of(run, device.number, device.model, mode, time.perf_counter() - begin, self._code.lines)
            keep(report)
        device.spend(stream, report.duration.seconds)

    def _program(self, function: str) -> Program:
        if function not in self._programs:
            if function not in self._text.kernels:
                raise DeviceError(f"the code has no kernel {function!r}; it has {', '.join(self._text.kernels) or 'none'}")
            dynamic = tuple(v for v in self._text.variables if v.space == "shared")
            self._programs[function] = Program(self._text.kernels[function], self._addresses, dynamic)
        return self._programs[function]

    def _declared(self, function: str) -> DeviceFunction | None:
        return next((one for one in self._code.functions if one.name == function), None)

    def _regions(self, program: Program, arguments: Sequence[int | float]) -> dict[str, Region]:
        """The memory of the parameters that are addresses of it, by name; it takes their names."""
        found = {}
        for parameter, value in zip(program.parameters, arguments):
            region = self._device.memory.before(value) if isinstance(value, int) and parameter.size == 8 else None
            if region is not None and isinstance(value, int) and value <= region.base + region.size:
                found[parameter.name] = region
        declared = self._declared(program.name)
        for number, parameter in enumerate(program.parameters):
            if parameter.name in found and declared is not None and number < len(declared.parameters):
                found[parameter.name].name = declared.parameters[number].name
        return found

    def _require_limits(self, program: Program, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
                        declared: DeviceFunction | None) -> None:
        """Refuses launches that the device does not take."""
        limits, where = self._device.model.properties, f"kernel {program.name} on sim({self._device.number})"
        threads = block[0] * block[1] * block[2]
        if min(*grid, *block) < 1 or threads > limits.max_threads or any(n > most for n, most in zip(block, limits.max_block)) \
                or any(n > most for n, most in zip(grid, limits.max_grid)):
            raise DeviceError(f"{where}: a grid of {grid} blocks of {block} threads is outside of its limits: grid "
                              f"{limits.max_grid}, block {limits.max_block}, {limits.max_threads} threads together",
                              hint=FEWER_THREADS if threads > limits.max_threads else "")
        if declared is not None and any(made not in (0, n) for made, n in zip(declared.fixed_block, block)):
            raise DeviceError(f"{where}: it was made for blocks of {declared.fixed_block} threads, not {block}")
        used = shared + sum(v.size for v in program.shared.values())
        if used > limits.shared_memory:
            raise DeviceError(f"{where}: a block needs {used} bytes of shared memory, and has {limits.shared_memory}")


def _give_back(device: SimulatedDevice, addresses: Sequence[int]) -> None:
    for address in addresses:
        device.free(address)


def contested(program: Program, regions: dict[str, Region]) -> set[Region] | None:
    """Returns the memory that a kernel may write, by what its text says of the addresses of stores; None if that may be any."""
    stores = [site for site in program.sites.all if site.kind != "load" and site.space in ("global", "generic")]
    if any(not site.sources or not site.sources <= regions.keys() for site in stores):
        return None
    return {regions[name] for site in stores for name in site.sources}


def packed(program: Program, arguments: Sequence[int | float], declared: DeviceFunction | None) -> bytes:
    """Returns the arguments as the bytes of the parameters."""
    if len(arguments) != len(program.parameters):
        raise DeviceError(f"kernel {program.name} takes {len(program.parameters)} arguments, and got {len(arguments)}")
    made = b""
    for number, (parameter, value) in enumerate(zip(program.parameters, arguments)):
        kind = declared.parameters[number] if declared is not None and number < len(declared.parameters) else None
        made = made.ljust(parameter.offset, b"\0") + _bytes(parameter.type, parameter.size, value,
                                                           None if kind is None or kind.array else str(kind.dtype))
    return made


def _bytes(form: str, size: int, value: int | float, dtype: str | None) -> bytes:
    if dtype == "bfloat16":
        return (int(np.float32(value).view(np.uint32)) >> 16).to_bytes(2, "little")
    if dtype is not None and dtype.startswith("float"):
        return np.array([value], dtype).tobytes().ljust(size, b"\0")
    if isinstance(value, float):
        return np.array([value], f"f{size}").tobytes()
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
