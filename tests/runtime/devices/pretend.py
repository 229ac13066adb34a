"""A device that is not there: its code is the kernels as data, and its driver runs them in the reference interpreter.

Its addresses belong to no memory of the process, so that code which takes memory of the device for its own ends the process.
"""

import json

import numpy as np

from tedsl.errors import AllocationError, DeviceError
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.stmt import Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.serial import from_data, to_data
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.devices.api import DeviceProperties
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction, DeviceParameter
from tedsl.runtime.devices.table import register_device
from tedsl.target.kinds import TargetKind, register_kind

OPTIONS = ("max_num_threads", "thread_warp_size", "max_shared_memory_per_block", "libs")


class Backend:
    """Writes kernels as data."""

    def compile_kernels(self, kernels, target, config):
        bare = tuple(kernel.replace(attrs=FrozenDict({k: v for k, v in kernel.attrs.items() if k != "target"}))
                     for kernel in kernels)
        return DeviceCode("loops", json.dumps(to_data(bare)), tuple(map(described, kernels)), str(target))


def described(kernel):
    written = {node.buffer_var for node in post_order(kernel.body) if isinstance(node, Store)}
    parameters = tuple(DeviceParameter(p.name, element_of(p), p.dtype.is_handle, p in written) for p in kernel.params)
    dynamic = any("shared.dyn" in str(getattr(getattr(n, "buffer_var", None), "type_annotation", ""))
                  for n in post_order(kernel.body))
    return DeviceFunction(kernel.name, parameters, kernel.attrs["tir.device_thread_axis"], dynamic)


def element_of(param):
    return param.type_annotation.element_type.dtype if isinstance(param.type_annotation, PointerType) else param.dtype


class Loaded:
    def __init__(self, driver, number, code):
        self.driver, self.number = driver, number
        self.kernels = {kernel.name: kernel for kernel in from_data(json.loads(code.text))}
        self.code = code

    def launch(self, function, grid, block, arguments, shared=0, stream=0):
        driver, kernel = self.driver, self.kernels[function]
        driver.launches.append((function, self.number, grid, block, shared, stream))
        if driver.failure:
            raise DeviceError(driver.failure)
        assert len(arguments) == len(kernel.params)
        buffers, values = {}, []
        for param, value in zip(kernel.params, arguments):
            if param.dtype.is_handle:
                of = element_of(param)
                memory = driver.view(self.number, value).view(np.dtype(str(of)))
                buffers[Var(param.name, "handle")] = decl_buffer((len(memory),), of, param.name, data=param)
                values.append(memory)
            else:
                values.append(value)
        params = (*buffers, *(p for p in kernel.params if not p.dtype.is_handle))
        run(PrimFunc(params, kernel.body, buffer_map=FrozenDict(buffers), attrs=kernel.attrs), values)


class Driver:
    """Two devices. launches: what was started; failure: what the next launch says."""

    def __init__(self):
        self.memory = {}
        self.launches, self.events, self.streams, self.loads, self.waits = [], {}, [], 0, []
        self.failure = ""
        self.next = 1 << 44

    def missing(self, number):
        return "" if number < 2 else f"there are 2 pretended devices, 0 and 1, and no {number}"

    def properties(self, number):
        return DeviceProperties("pretended", "1.5", 1, 256, (256, 256, 64), (2**31 - 1, 65535, 65535), 1 << 15, 1 << 16, 4,
                                1.5e9, 1 << 30)

    def allocate(self, number, size):
        if size > 1 << 30:
            raise AllocationError(f"device {number} has not {size} bytes")
        address, self.next = self.next, self.next + size + 256 - size % 256
        self.memory[number, address] = np.full(-(-size // 16) * 16, 0xAB, np.uint8)[:size]
        return address

    def free(self, number, memory):
        del self.memory[number, memory]

    def view(self, number, address):
        for (of, start), memory in self.memory.items():
            if of == number and start <= address < start + max(len(memory), 1):
                return memory[address - start:]
        raise DeviceError(f"device {number} has no memory at {address:#x}")

    def copy_in(self, number, memory, source, size, stream=0):
        self.view(number, memory)[:size] = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * size).from_address(source))

    def copy_out(self, number, target, memory, size, stream=0):
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * size).from_address(target))[:] = self.view(number, memory)[:size]

    def copy(self, number, target, source_number, source, size, stream=0):
        self.view(number, target)[:size] = self.view(source_number, source)[:size]

    def load(self, number, code):
        self.loads += 1
        return Loaded(self, number, code)

    def create_stream(self, number):
        self.streams.append(7000 + len(self.streams))
        return self.streams[-1]

    def free_stream(self, number, stream):
        self.streams.remove(stream)

    def synchronise(self, number, stream=0):
        self.waits.append((number, stream))

    def record_event(self, number, stream=0):
        self.events[len(self.events)] = len(self.launches)
        return len(self.events) - 1

    def elapsed(self, number, start, end):
        return (self.events[end] - self.events[start]) * 1e-3  # a millisecond for each launch


DRIVER = Driver()
register_device("pretend", DRIVER)
register_kind(TargetKind("pretend", ("pretend", "gpu"), OPTIONS, 256, 1, device_backend=f"{__name__}:Backend"))


def loads(kernel):
    """The pointers that a kernel loads from."""
    return {node.buffer_var for node in post_order(kernel.body) if isinstance(node, Load)}
