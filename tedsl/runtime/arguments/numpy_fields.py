"""The offsets of the fields of CPython's and numpy's structures that entry points read, verified against arrays made here.

The offsets of numpy's C structures are the same from 1.26 to 2.x on 64-bit machines. This file imports nothing of tedsl: wheels
of kernels bring a copy of it.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes of the fields that entry points read: an object's type, those of an array, those of its dtype, and the
    array in an NDArray.
    """

    type: int = 8
    data: int = 16
    ndim: int = 24
    shape: int = 32
    strides: int = 40
    descr: int = 56
    flags: int = 64
    byteorder: int = 26
    number: int = 28
    wrapped: int = 16

    @property
    def offsets(self) -> tuple[int, ...]:
        """All of them, in this order."""
        return tuple(vars(self).values())


# Bits of the flags.
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

# numpy's numbers of dtypes. 64-bit integers have two: C's long and long long (also called so where they are equal).
NUMBERS = {"bool": (0,), "int8": (1,), "uint8": (2,), "int16": (3,), "uint16": (4,), "int32": (5,), "uint32": (6,),
           "int64": (7, 9), "uint64": (8, 10), "float32": (11,), "float64": (12,), "float16": (23,), "bfloat16": (4,)}


def verified_layout() -> Layout | None:
    """Returns the layout if every offset in it was verified, else None."""
    if sys.implementation.name != "cpython" or _is_free_threaded() or sys.maxsize < 2**32 or sys.byteorder != "little":
        return None
    layout = Layout()
    base = numpy.zeros((3, 4, 5), numpy.float32)
    samples: list[numpy.ndarray[Any, Any]] = [  # each flag without the others; both byte orders; three dimensions, none
        base[::2, 1:, ::-1], numpy.frombuffer(bytes(9), numpy.int64, 1, 1), numpy.zeros(3, ">i4"),
        numpy.frombuffer(bytes(1), numpy.bool_).reshape(())]
    return layout if all(fields_agree(a, layout) for a in samples) and _numbers_agree() else None


def _is_free_threaded() -> bool:
    """Tells whether this interpreter was built without a GIL. Those before 3.13 are not asked, which takes milliseconds."""
    if sys.version_info < (3, 13):
        return False
    from sysconfig import get_config_var

    return bool(get_config_var("Py_GIL_DISABLED"))


def read(kind: Any, address: int) -> int:
    return int(kind.from_address(address).value or 0)


def fields_agree(a: numpy.ndarray[Any, Any], at: Layout) -> bool:
    if object.__basicsize__ != 16 or type(a).__basicsize__ < at.flags + 4:
        return False
    fields = ctypes.string_at(id(a), type(a).__basicsize__)

    def pointer(offset: int) -> int:
        return int.from_bytes(fields[offset:offset + 8], "little")

    def number(offset: int) -> int:
        return int.from_bytes(fields[offset:offset + 4], "little")

    dtype, flags, dims = a.dtype, a.flags, a.ndim
    expected = flags.c_contiguous * C_CONTIGUOUS | flags.aligned * ALIGNED | flags.writeable * WRITEABLE
    if (pointer(at.type), number(at.ndim), pointer(at.data), pointer(at.descr)) \
            != (id(numpy.ndarray), dims, a.__array_interface__["data"][0], id(dtype)) \
            or number(at.flags) & (C_CONTIGUOUS | ALIGNED | WRITEABLE) != expected:
        return False
    if dims and (struct.unpack(f"<{dims}q", ctypes.string_at(pointer(at.shape), 8 * dims)) != a.shape
                 or struct.unpack(f"<{dims}q", ctypes.string_at(pointer(at.strides), 8 * dims)) != a.strides):
        return False
    described = ctypes.string_at(id(dtype), max(at.byteorder + 1, at.number + 4))
    swapped = described[at.byteorder] == ord(">")
    return bool(swapped != dtype.isnative
                and int.from_bytes(described[at.number:at.number + 4], "little") == dtype.num)


def _numbers_agree() -> bool:
    return all(numpy.dtype(name).num in numbers for name, numbers in NUMBERS.items() if name != "bfloat16") \
        and numpy.dtype(numpy.longlong).num in NUMBERS["int64"] and numpy.dtype(numpy.longlong).itemsize == 8 \
        and numpy.dtype("long").itemsize == 8
