"""DLPack for arrays on devices: capsules that share their memory with other libraries, both ways."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy

from tedsl.errors import ArgumentTypeError
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.runtime.devices.device import CUDA, Device
from tedsl.runtime.devices.memory import DeviceArray, driver_for
from tedsl.runtime.devices.streams import current_stream
from tedsl.runtime.devices.table import stand_in_of

NumpyDType = Callable[[str], numpy.dtype[Any]]  # the dtype of numpy that stands for one of tedsl
_PRIVATE = ("opencl", "sim")  # kinds of devices whose addresses only their drivers can read
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_NAMES = {code: name for name, code in _CODES.items()}
_CAPSULE, _VERSIONED = b"dltensor", b"dltensor_versioned"
_LEGACY_STREAM, _ORDERED_ELSEWHERE = 1, -1  # of DLPack: the default stream of CUDA; the reader needs nothing to be waited for


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64))


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Tensor))


_handed_out: dict[int, tuple[Any, ...]] = {}  # by address of the managed tensor: what it points to


def _delete(managed: int) -> None:
    _handed_out.pop(managed, None)


def _destroy(capsule: int) -> None:
    """Ends a capsule that nobody read."""
    if _is_valid(ctypes.c_void_p(capsule), _CAPSULE):
        _handed_out.pop(_pointer(ctypes.c_void_p(capsule), _CAPSULE), None)


_called_to_delete, _called_to_destroy = _DELETER(_delete), _DELETER(_destroy)


def capsule_of(array: DeviceArray, stream: int | None) -> Any:
    """Returns a capsule that shares the memory of `array`, whose content is there for work that the reader starts on `stream`.

    Raises ArgumentTypeError for devices that other libraries do not have.
    """
    place = array.device
    if place.kind in _PRIVATE:
        raise ArgumentTypeError(f"the array lies on {place}, whose memory other libraries cannot reach",
                                hint="copy it: x.numpy()")
    if stand_in_of(place.kind):
        raise ArgumentTypeError(f"the array lies on a stand-in for {place}, of which other libraries do not know",
                                hint="copy it: x.numpy()")
    if stream != _ORDERED_ELSEWHERE:
        driver_for(place).synchronise(place.device_id, current_stream(place.kind, place.device_id))
    tensor, shape, strides = tensor_of(array, array.address, place)
    managed = _Managed(tensor, None, _called_to_delete)
    address = ctypes.addressof(managed)
    _handed_out[address] = (managed, shape, strides, array)
    make: Any = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, _CAPSULE, ctypes.cast(_called_to_destroy, ctypes.c_void_p))


def tensor_of(array: Any, address: int, place: Device) -> tuple[Tensor, Any, Any]:
    """Returns a DLTensor of an array of numpy or on a device, and the shape and the strides, which it points to."""
    of, rank = as_dtype(array.dtype), array.ndim
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*[step // array.dtype.itemsize for step in array.strides])
    tensor = Tensor(address if array.size else None, place.device_type, place.device_id, rank, _CODES[of.code],
                    8 if of.is_bool else of.bits, 1, shape, strides, 0)
    return tensor, shape, strides


def array_of(source: Any, place: Device, numpy_dtype: NumpyDType) -> DeviceArray:
    """Returns an array on the memory of `source`, an object with `__dlpack__` whose memory lies on the device `place`."""
    if stand_in_of(place.kind):
        raise ArgumentTypeError(f"the array lies on {place}, and a stand-in is used here", hint="copy it to the CPU first")
    driver_for(place)
    stream = current_stream(place.kind, place.device_id)
    capsule = source.__dlpack__(stream=(stream or _LEGACY_STREAM) if place.device_type == CUDA else None)
    return array_in(capsule, place, numpy_dtype)


def array_in(capsule: Any, place: Device, numpy_dtype: NumpyDType) -> DeviceArray:
    """Returns an array on the memory of a capsule that nobody has read, which counts as read from now on."""
    held = ctypes.py_object(capsule)
    versioned = _is_valid(held, _VERSIONED)
    name = _VERSIONED if versioned else _CAPSULE
    if not _is_valid(held, name):
        raise ArgumentTypeError(f"from_dlpack: {capsule!r} is not a DLPack capsule that is still unread")
    address = _pointer(held, name)
    managed: Any = (_ManagedVersioned if versioned else _Managed).from_address(address)
    tensor = managed.tensor
    if (tensor.device_type, tensor.device_id) != (place.device_type, place.device_id):
        raise ArgumentTypeError(f"from_dlpack: the capsule holds memory of the device {tensor.device_type, tensor.device_id}, "
                                f"not of {place}")
    if tensor.lanes != 1 or tensor.code not in _NAMES:
        raise ArgumentTypeError("from_dlpack: the elements are of a dtype that tedsl does not have")
    of = numpy_dtype("bool" if _NAMES[tensor.code] == "bool" else f"{_NAMES[tensor.code]}{tensor.bits}")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    steps = tuple(tensor.strides[k] * of.itemsize for k in range(tensor.ndim)) if tensor.strides else ()
    rename: Any = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    rename(held, b"used_dltensor_versioned" if versioned else b"used_dltensor")
    owner = _Owner()
    weakref.finalize(owner, managed.deleter, address).atexit = False
    return DeviceArray(place, owner, (tensor.data or 0) + tensor.byte_offset, shape, of, steps)


class _Owner:
    """Keeps the memory of another library; it is given back when nobody holds this object."""

    __slots__ = ("__weakref__",)


def _is_valid(capsule: Any, name: bytes) -> bool:
    ask = ctypes.PYFUNCTYPE(ctypes.c_int, type(capsule), ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
    return bool(ask(capsule, name))


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, type(capsule), ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return int(get(capsule, name) or 0)
