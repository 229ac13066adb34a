"""Views objects that programs pass as arrays or numbers: as numpy arrays on the same memory, and as Python numbers.

Nothing is ever copied here: a kernel writes into the caller's memory or the call is refused.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir.dtype import DType, round_float
from tedsl.runtime.array import NDArray, numpy_dtype
from tedsl.runtime.devices.device import CPU, Device, device
from tedsl.runtime.devices.dlpack import array_of

Array = numpy.ndarray[Any, Any]
_NUMPY = tuple(int(part) for part in numpy.__version__.split(".")[:2])
_bfloat16_number: ctypes.c_int32 | None = None


def bfloat16_number_address() -> int:
    """Returns the address of numpy's type number for ml_dtypes' bfloat16; -1 until an array of that dtype has been seen."""
    return ctypes.addressof(_bfloat16_cell())


def _bfloat16_cell() -> ctypes.c_int32:
    global _bfloat16_number
    if _bfloat16_number is None:
        _bfloat16_number = ctypes.c_int32(-1)
    return _bfloat16_number


def as_array(value: Any, where: str, hint: str) -> Array:
    """Returns `value` as a numpy array on the same memory; ArgumentTypeError, which begins with `where`, if it is not an array.

    hint: what to do with values that are not an array.
    """
    if type(value) is numpy.ndarray:
        return value
    if isinstance(value, NDArray):
        return value.host_array(where)
    if isinstance(value, numpy.ma.MaskedArray):
        raise ArgumentTypeError(f"{where} is a masked array",
                                hint="pass its values: x.filled(0) for an input, x.data for an output")
    if isinstance(value, numpy.ndarray):
        return value.view(numpy.ndarray)
    if isinstance(value, (bool, int, float, complex, list, tuple, str)) or value is None:
        raise ArgumentTypeError(f"{where} is an array, {_shown(value)} was given", hint=hint)
    held = getattr(value, "_tvm_handle", None)  # of a class that ir.register_extension would take
    if isinstance(held, NDArray):
        return held.host_array(where)
    if hasattr(value, "__dlpack__") and not isinstance(value, type):
        return _from_dlpack_object(value, where)
    try:
        return numpy.asarray(memoryview(value))
    except (TypeError, ValueError, NotImplementedError) as error:
        hint = "pass a numpy array, an NDArray, or an object with DLPack or the buffer protocol"
        raise ArgumentTypeError(f"{where} is an array, {_shown(value)} was given", hint=hint) from error


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 40 else text[:37] + '...'}"


def _from_dlpack_object(value: Any, where: str) -> Array:
    try:
        kind = int(value.__dlpack_device__()[0]) if hasattr(value, "__dlpack_device__") else CPU
        if kind == CPU:
            return array_from_dlpack(value)
    except Exception as error:  # whatever its library raises, for example torch for a tensor that requires grad
        raise ArgumentTypeError(f"{where}: {type(value).__name__} does not give its memory: {error}") from error
    raise ArgumentTypeError(f"{where} lives on another device (DLPack kind {kind})",
                            hint="copy an input to the CPU first; for an output pass an array of the CPU, then copy it back")


class _CapsuleOwner:
    """An object with `__dlpack__` around a capsule, as numpy expects."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def from_dlpack(dltensor: Any) -> NDArray:
    """Returns an array that shares the memory of a DLPack capsule or of an object with `__dlpack__`.

    The memory may lie on a device that is here. Raises ArgumentTypeError for anything else, and for a capsule that was used
    before.
    """
    place = device_of_dlpack(dltensor)
    return NDArray(array_from_dlpack(dltensor) if place is None else array_of(dltensor, place, numpy_dtype))


def device_of_dlpack(source: Any) -> Device | None:
    """Returns the device on which the memory of an object with `__dlpack__` lies; None for the CPU, or if it does not say.

    Raises ArgumentTypeError for a kind of device that tedsl does not know.
    """
    if isinstance(source, type) or not hasattr(source, "__dlpack_device__"):
        return None
    kind, number = map(int, source.__dlpack_device__())
    if kind == CPU:
        return None
    try:
        return device(kind, number)
    except ArgumentError:
        raise ArgumentTypeError(f"from_dlpack: the memory lies on a device of DLPack's kind {kind}, which tedsl does not know",
                                hint="copy it to the CPU first") from None


def array_from_dlpack(source: Any) -> Array:
    """Returns a numpy array on the memory of a DLPack capsule or object, writable unless the source is read-only."""
    is_capsule = any(ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(source), name)
                     for name in (b"dltensor", b"dltensor_versioned"))
    if not is_capsule and not (hasattr(source, "__dlpack__") and not isinstance(source, type)):
        raise ArgumentTypeError(f"from_dlpack: {_shown(source)} is neither a DLPack capsule that is still unread nor an object "
                                "with __dlpack__", hint="arrays of numpy, torch, jax have it; for a list use nd.array")
    capsule = source if is_capsule else _capsule(source)
    if _had_bfloat16(capsule):
        return array_from_dlpack(capsule).view(numpy_dtype("bfloat16"))
    says_writable = ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), b"dltensor_versioned") == 1
    array = numpy.from_dlpack(_CapsuleOwner(capsule))
    if array.flags.writeable or says_writable or array.size == 0 or min(array.strides, default=0) < 0:
        return array
    # Capsules of DLPack before 1.0 cannot say it, and numpy takes them for read-only.
    size = array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    block: Any = (ctypes.c_char * size).from_address(array.ctypes.data)
    block.keep = array
    return numpy.ndarray(array.shape, array.dtype, block, 0, array.strides)


class _Tensor(ctypes.Structure):
    """The fields of DLPack's DLTensor that are read here."""

    _fields_ = (("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


def _had_bfloat16(capsule: Any) -> bool:
    """Tells whether the capsule holds bfloat16, which numpy refuses, and if so relabels it as uint16."""
    for name, before in ((b"dltensor", 0), (b"dltensor_versioned", 32)):  # before the tensor: version, context, deleter, flags
        if ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), name) == 1:
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            tensor = _Tensor.from_address((get(capsule, name) or 0) + before)
            if (tensor.code, tensor.bits, tensor.lanes) == (4, 16, 1):
                tensor.code = 1
                return True
    return False


def _capsule(source: Any) -> Any:
    """Returns the DLPack capsule of `source`, in the newest version that both `source` and numpy support."""
    if _NUMPY >= (2, 1):
        try:
            return source.__dlpack__(max_version=(1, 0))
        except TypeError:
            pass
    return source.__dlpack__()


def has_dtype(array: Array, wanted: DType) -> bool:
    """Tells whether the elements have the dtype `wanted` in meaning: long long is int64, bfloat16 may be uint16."""
    have = array.dtype
    if wanted.code == "bfloat":
        if have.name == "bfloat16":
            _bfloat16_cell().value = have.num
            return True
        return bool(have.isnative and have.kind == "u" and have.itemsize == 2)
    kind = {"int": "i", "uint": "u", "float": "f", "bool": "b"}.get(wanted.code)
    return bool(have.isnative and have.kind == kind and have.itemsize == wanted.bytes)


def as_number(value: Any, of: DType, where: str) -> int | float:
    """Returns `value` as a number of dtype `of`; raises, beginning with `where`, if it is not a number or does not fit."""
    if of.is_float:
        return _as_float(value, of, where)
    try:
        number = int(value) if isinstance(value, numpy.bool_) else operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{where} is a number of dtype {of}, {_shown(value)} was given") from None
    low, high = of.min_value, of.max_value
    if low is not None and high is not None and not low <= number <= high:
        hint = "declare the variable with a wider dtype: te.var(name, 'int64')" if -(2**63) <= number < 2**63 else ""
        raise ArgumentError(f"{where} is {number}, which does not fit {of} ({low} to {high})", hint=hint)
    return number


def _as_float(value: Any, of: DType, where: str) -> float:
    if not (isinstance(value, (int, float)) or hasattr(value, "__float__")) or getattr(value, "ndim", 0) != 0:
        raise ArgumentTypeError(f"{where} is a number of dtype {of}, {_shown(value)} was given")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{where} is a number of dtype {of}, {_shown(value)} was given") from error
    rounded = round_float(number, of)
    if rounded in (float("inf"), float("-inf")) and number != rounded:
        raise ArgumentError(f"{where} is {number}, which does not fit {of}")
    return rounded


def slot_bits(number: float, of: DType) -> int:
    """Returns a scalar as the 64 bits that a kernel's call takes: integers as they are, floats as their float or double."""
    if not of.is_float:
        low = int(number) & (2**64 - 1)
        return low - 2**64 if low >> 63 else low
    if of.bits == 64:
        return int(struct.unpack("<q", struct.pack("<d", number))[0])
    return int(struct.unpack("<i", struct.pack("<f", number))[0])
