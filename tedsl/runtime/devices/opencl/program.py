"""Programs in OpenCL C that a device has compiled."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.errors import DeviceError
from tedsl.record import record
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction
from tedsl.runtime.devices.launch import FEWER_THREADS
from tedsl.runtime.devices.opencl.opened import Opened

_DIFFERENCES = re.compile(r"tedsl_sub_| \^ |\b1ul?\b")  # of numbers: a - b, ~b, a - b - 1u


@record(eq=False)
class _Kernel:
    """A kernel that was loaded: what pyopencl has of it, and how it is launched."""

    kernel: Any
    function: DeviceFunction
    numbers: tuple[Any, ...]  # for each parameter the numpy type of its number; None for an array


class LoadedProgram:
    """OpenCL C that one device has compiled."""

    def __init__(self, opened: Opened, code: DeviceCode) -> None:
        if code.form != "cl":
            raise DeviceError(f"opencl({opened.number}) takes OpenCL C, not code of the form {code.form!r}")
        self._opened = opened
        program = _built(opened, code.text)
        self._kernels = {}
        for function in code.functions:
            numbers = tuple(None if p.array else numpy.dtype(str(p.dtype)).type for p in function.parameters)
            with opened.asked(f"find the kernel {function.name}"):
                self._kernels[function.name] = _Kernel(opened.cl.Kernel(program, function.name), function, numbers)

    def launch(self, function: str, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: Sequence[int | float], shared: int = 0, stream: int = 0) -> None:
        loaded, opened = self._kernels[function], self._opened
        if not all(grid):
            return  # a grid of no blocks: OpenCL 1.2 does not know it
        most, threads = opened.device.max_work_group_size, math.prod(block)
        if threads > most:
            raise DeviceError(f"{function}: opencl({opened.number}) has at most {most} threads in a block, not {threads}",
                              hint=FEWER_THREADS)
        own = loaded.kernel.get_work_group_info(opened.cl.kernel_work_group_info.LOCAL_MEM_SIZE, opened.device)
        local = own + shared
        if local > opened.device.local_mem_size:
            raise DeviceError(f"{function}: opencl({opened.number}) has {opened.device.local_mem_size} bytes of shared memory "
                              f"for a block, not {local}", hint="keep smaller parts in shared memory")
        values: list[Any] = [opened.argument(int(value)) if number is None else number(value)
                  for value, number in zip(arguments, loaded.numbers, strict=True)]
        if loaded.function.dynamic_shared:
            values.append(opened.cl.LocalMemory(max(1, shared)))
        with opened.lock, opened.asked(f"launch {function} on {grid} blocks of {block} threads"):
            loaded.kernel.set_args(*values)  # belong to the kernel, which all threads of this process share
            every = tuple(g * b for g, b in zip(grid, block))
            opened.cl.enqueue_nd_range_kernel(opened.stream(stream), loaded.kernel, every, block)


def _loses_threads_at_barriers(platform: Any) -> bool:
    """Tells whether the optimiser of the platform moves conditions of single threads across barriers: PoCL with LLVM 14 then
    leaves results of some threads out (tests/devices/test_opencl_barriers.py has a kernel for which it does).
    """
    return platform.name == "Portable Computing Language" and "LLVM 14" in platform.version


def _folds_choices_wrongly(platform: Any, text: str) -> bool:
    """Tells whether the program may choose the smaller or larger of two integers one of which is a + ~b, that is a - (b + 1):
    the optimiser of Intel's runtime for processors (2026.2) then gives another number (tests/devices/test_opencl_choices.py).
    """
    if platform.name != "Intel(R) OpenCL" or "?" not in text:
        return False
    found = _DIFFERENCES.search(text)  # differences of indices alone are in most kernels, with choices between other things
    return found is not None or (" - " in text and ("tedsl_imin_" in text or "tedsl_imax_" in text))


def _built(opened: Opened, text: str) -> Any:
    """Returns the program of `text`; DeviceError with the compiler's report."""
    cl, options = opened.cl, []
    if opened.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    platform = opened.device.platform
    if ("barrier(" in text and _loses_threads_at_barriers(platform)) or _folds_choices_wrongly(platform, text):
        options.append("-cl-opt-disable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        try:
            return cl.Program(opened.context, text).build(options)
        except cl.Error as error:
            lacks = "double" in text and not opened.device.double_fp_config
            raise DeviceError(f"opencl({opened.number}), {opened.device.name}, does not compile the kernels"
                              f"{', for it has no floats of 64 bits' if lacks else ''}: {error}") from error
