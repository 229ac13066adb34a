"""Named arrays as bytes, in the format that TVM writes parameters of networks in: `save_param_dict`, `load_param_dict`.

All numbers are little-endian. A list: its mark, 8 bytes of zeros, the names (how many, then each with its length), how many
arrays there are, the arrays. An array: its mark, 8 bytes of zeros, its device and rank, its dtype as in DLPack, its shape, the
length of its content, its content.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.dtype import DataTypeCode, DType, dtype
from tedsl.runtime.array import NDArray, array, numpy_dtype

_LIST, _ARRAY, _CPU = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F, 1
_KINDS = {DataTypeCode.INT: "int", DataTypeCode.UINT: "uint", DataTypeCode.FLOAT: "float", DataTypeCode.BFLOAT: "bfloat"}
Bytes = bytes | bytearray


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The bytes of named arrays, which TVM reads too: NDArrays or what numpy makes arrays of."""
    if not isinstance(params, Mapping):
        raise ArgumentTypeError(f"save_param_dict takes a dict of names and arrays, not {type_in_words(params)}")
    names = [str(name).encode() for name in params]
    parts = [struct.pack("<QQQ", _LIST, 0, len(names)), *[struct.pack("<Q", len(name)) + name for name in names],
             struct.pack("<Q", len(names)), *[_written(value if isinstance(value, NDArray) else array(value))
                                              for value in params.values()]]
    return bytearray(b"".join(parts))


def load_param_dict(param_bytes: Bytes) -> dict[str, NDArray]:
    """The named arrays of `save_param_dict`, or of a file that TVM wrote. Raises ArgumentError for bytes that are none."""
    if not isinstance(param_bytes, (bytes, bytearray)):
        raise ArgumentTypeError(f"load_param_dict takes bytes, not {type_in_words(param_bytes)}",
                                hint='open("net.params", "rb").read()')
    reader = _Reader(param_bytes)
    reader.expect(_LIST, "named arrays")
    names = [reader.name() for _ in range(reader.number())]
    if reader.number() != len(names):
        raise ArgumentError("load_param_dict: there are more names than arrays, or fewer")
    return {name: reader.array() for name in names}


def _written(value: NDArray) -> bytes:
    of, content = value.dtype, numpy.ascontiguousarray(value.numpy()).tobytes()
    return struct.pack(f"<QQiiiBBH{len(value.shape)}qq", _ARRAY, 0, _CPU, 0, len(value.shape), of.type_code, of.bits, of.lanes,
                       *value.shape, len(content)) + content


class _Reader:
    """Bytes, and how many of them have been read."""

    def __init__(self, content: Bytes) -> None:
        self.content, self.at = content, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.content) - self.at:
            raise ArgumentError(f"load_param_dict: the bytes end at {len(self.content)}, and {count} more are needed there",
                                hint="the file is cut off, or is something else")
        self.at += count
        return bytes(self.content[self.at - count:self.at])

    def number(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def name(self) -> str:
        content = self.take(self.number())
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ArgumentError(f"load_param_dict: the name {content!r} is not text in UTF-8") from None

    def expect(self, mark: int, what: str) -> None:
        if self.number() != mark:
            raise ArgumentError(f"load_param_dict: these bytes are not {what}",
                                hint="they are what save_param_dict gives, or a .params file of TVM")
        self.number()

    def array(self) -> NDArray:
        self.expect(_ARRAY, "an array")
        _, _, rank, code, bits, lanes = struct.unpack("<iiiBBH", self.take(16))
        shape = [self.number() for _ in range(rank)]
        of = numpy_dtype(_dtype(code, bits, lanes))
        content = self.take(self.number())
        if len(content) != of.itemsize * int(numpy.prod(shape, dtype=object)):
            raise ArgumentError(f"load_param_dict: an array of shape {tuple(shape)} and {of} has {len(content)} bytes")
        try:
            return array(numpy.frombuffer(content, of).reshape(shape))
        except ValueError:
            raise ArgumentError(f"load_param_dict: there is no array of shape {tuple(shape)}: numpy's have fewer dimensions, "
                                "or smaller ones") from None


def _dtype(code: int, bits: int, lanes: int) -> DType:
    if code not in _KINDS or lanes != 1:
        raise ArgumentError(f"load_param_dict: no dtype has the code {code} with {bits} bits and {lanes} lanes")
    return dtype("bool" if (code, bits) == (DataTypeCode.UINT, 1) else f"{_KINDS[code]}{bits}")
