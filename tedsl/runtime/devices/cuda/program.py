"""PTX that a CUDA device has loaded, and the launch of its kernels."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tedsl.errors import DeviceError
from tedsl.ir.dtype import DType
from tedsl.runtime.devices.code import DeviceCode
from tedsl.runtime.devices.cuda.library import HANDLE, Cuda
from tedsl.runtime.devices.launch import FEWER_THREADS

_LOG, _LOG_SIZE = 5, 6  # options of the compiler in the driver: its errors go there, and how many bytes fit
_LOG_BYTES = 8192
_DYNAMIC_SHARED = 8  # the attribute of a function: how much dynamic shared memory it may get
_FLOATS = (ctypes.c_float, ctypes.c_double)
_MOST_THREADS = 1024  # of a block, on every device
_USUAL_SHARED = 48 * 1024  # what it may get without asking


class LoadedProgram:
    """The kernels of `code` on one device. opened: returns the functions of its driver, for the thread that asks."""

    def __init__(self, opened: Callable[[], Cuda], code: DeviceCode) -> None:
        self._opened, self._code = opened, code
        cuda = opened()
        if code.form != "ptx":
            raise DeviceError(f"{cuda.where} runs PTX, and the code is {code.form}")
        self._module = _loaded(cuda, code)
        self._functions: dict[str, tuple[int, list[Any]]] = {}  # what the driver calls a kernel, and its types in C
        weakref.finalize(self, _unload, opened, self._module).atexit = False

    def launch(self, function: str, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: Sequence[int | float], shared: int = 0, stream: int = 0) -> None:
        cuda = self._opened()
        if block[0] * block[1] * block[2] > _MOST_THREADS:
            raise DeviceError(f"{function}: a block of {block} threads has more than {_MOST_THREADS}, the most of any device",
                              hint=FEWER_THREADS)
        handle, types = self._function(cuda, function)
        if shared > _USUAL_SHARED:
            cuda(f"give {function} {shared} bytes of shared memory", "cuFuncSetAttribute", handle, _DYNAMIC_SHARED, shared)
        values = [kind(value if kind in _FLOATS else int(value)) for kind, value in zip(types, arguments, strict=True)]
        places = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        cuda(f"launch {function} on {grid} blocks of {block} threads", "cuLaunchKernel", handle, *grid, *block, shared, stream,
             ctypes.addressof(places), None)

    def _function(self, cuda: Cuda, name: str) -> tuple[int, list[Any]]:
        known = self._functions.get(name)
        if known is None:
            handle = cuda.number(f"find the kernel {name}", "cuModuleGetFunction", HANDLE, self._module, name.encode())
            types = [ctypes.c_uint64 if p.array else _c_type(p.dtype) for p in self._code.function(name).parameters]
            known = self._functions[name] = (handle, types)
        return known


def _loaded(cuda: Cuda, code: DeviceCode) -> int:
    """Returns the module of PTX that the driver has compiled; DeviceError with the words of its compiler if it refuses."""
    log = ctypes.create_string_buffer(_LOG_BYTES)
    options = (ctypes.c_int * 2)(_LOG, _LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
    text = ctypes.create_string_buffer(code.text.encode())
    try:
        return int(cuda.number("load the kernels", "cuModuleLoadDataEx", HANDLE, ctypes.addressof(text), 2,
                               ctypes.addressof(options), ctypes.addressof(values)))
    except DeviceError as error:
        said = log.value.decode(errors="replace").strip()
        raise DeviceError(f"{error.problem}" + (f"\n{said}" if said else "") + f"\n  built for {code.target}",
                          hint=error.hint) from None


def _unload(opened: Callable[[], Cuda], module: int) -> None:
    opened()("unload kernels", "cuModuleUnload", module)


def _c_type(of: DType) -> Any:
    """Returns the type in which a number of dtype `of` travels to a kernel."""
    if of.is_float:
        return ctypes.c_double if of.bits == 64 else ctypes.c_float
    if of.is_handle:
        return ctypes.c_uint64
    bits = max(8, of.bits)
    return getattr(ctypes, f"c_{'' if of.is_int else 'u'}int{bits}")
