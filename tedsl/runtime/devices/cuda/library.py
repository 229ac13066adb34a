"""The functions of libcuda that the driver calls, by their names in C; what fails is a DeviceError with CUDA's words."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Any

from tedsl.errors import AllocationError, DeviceError

NAMES = ("libcuda.so.1", "libcuda.so")
INT, UINT, SIZE, TEXT = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_char_p
HANDLE, ADDRESS, PLACE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p  # PLACE: where a result is stored
OUT_OF_MEMORY = 2
# By the number of an error: what a program can do about it.
_HINTS = {
    209: "build for the generation of this device: its number is tedsl.cuda(0).compute_version",  # NO_BINARY_FOR_GPU
    218: "the code is not valid PTX: please report it",  # INVALID_PTX
    222: "the driver is older than the PTX: build for an older generation, or update the driver",  # UNSUPPORTED_PTX_VERSION
    700: "a kernel accessed memory outside of its arrays; this process cannot use the device any more",  # ILLEGAL_ADDRESS
    701: "the kernel needs more registers or threads than the device has: bind fewer threads",  # LAUNCH_OUT_OF_RESOURCES
    716: "a kernel accessed a misaligned address; this process cannot use the device any more",  # MISALIGNED_ADDRESS
}
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (UINT,),
    "cuDeviceGetCount": (PLACE,),
    "cuDeviceGet": (PLACE, INT),
    "cuDeviceGetName": (PLACE, INT, INT),
    "cuDeviceGetAttribute": (PLACE, INT, INT),
    "cuDeviceTotalMem_v2": (PLACE, INT),
    "cuDevicePrimaryCtxRetain": (PLACE, INT),
    "cuCtxSetCurrent": (HANDLE,),
    "cuMemAlloc_v2": (PLACE, SIZE),
    "cuMemFree_v2": (ADDRESS,),
    "cuMemcpyHtoDAsync_v2": (ADDRESS, PLACE, SIZE, HANDLE),
    "cuMemcpyDtoHAsync_v2": (PLACE, ADDRESS, SIZE, HANDLE),
    "cuMemcpyDtoDAsync_v2": (ADDRESS, ADDRESS, SIZE, HANDLE),
    "cuMemcpyPeerAsync": (ADDRESS, HANDLE, ADDRESS, HANDLE, SIZE, HANDLE),
    "cuModuleLoadDataEx": (PLACE, PLACE, UINT, PLACE, PLACE),
    "cuModuleUnload": (HANDLE,),
    "cuModuleGetFunction": (PLACE, HANDLE, TEXT),
    "cuFuncSetAttribute": (HANDLE, INT, INT),
    "cuLaunchKernel": (HANDLE, UINT, UINT, UINT, UINT, UINT, UINT, UINT, HANDLE, PLACE, PLACE),
    "cuStreamCreate": (PLACE, UINT),
    "cuStreamDestroy_v2": (HANDLE,),
    "cuStreamSynchronize": (HANDLE,),
    "cuEventCreate": (PLACE, UINT),
    "cuEventRecord": (HANDLE, HANDLE),
    "cuEventSynchronize": (HANDLE,),
    "cuEventElapsedTime": (PLACE, HANDLE, HANDLE),
    "cuEventDestroy_v2": (HANDLE,),
    "cuGetErrorName": (INT, PLACE),
    "cuGetErrorString": (INT, PLACE),
}


@functools.cache
def libcuda() -> Any:
    """Returns the library of the driver, with the types of its functions declared; None where there is none."""
    for name in NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, types in FUNCTIONS.items():
            getattr(library, function).argtypes = types
            getattr(library, function).restype = INT
        return library
    return None


class Cuda:
    """The functions of `library` for one device, whose errors are raised. where: what the device is called in messages."""

    def __init__(self, library: Any, where: str) -> None:
        self.library, self.where = library, where

    def __call__(self, what: str, function: str, *arguments: Any) -> None:
        """Calls `function`, which does `what` ("copy 8 bytes to it"); raises DeviceError, AllocationError if memory ran out."""
        status = int(getattr(self.library, function)(*arguments))
        if status == OUT_OF_MEMORY:
            raise AllocationError(f"{self.where} has no memory left to {what}", hint="free arrays, or compute in parts")
        if status:
            raise DeviceError(f"{self.where} failed to {what}: {self.words_of(status)}", hint=_HINTS.get(status, ""))

    def number(self, what: str, function: str, kind: Any, *arguments: Any) -> Any:
        """Calls a function whose first argument is where its result goes, of the type `kind`, and returns that."""
        result = kind()
        self(what, function, ctypes.byref(result), *arguments)
        return result.value

    def words_of(self, status: int) -> str:
        """Returns the name and the sentence that CUDA has for an error."""
        words = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            text = TEXT()
            if getattr(self.library, function)(status, ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode())
        return ", ".join(words) or f"error {status}"
