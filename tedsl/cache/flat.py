"""Named pieces of bytes behind an index and a CRC-32 of all of it, which is compared before anything else is read."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping

from tedsl.errors import ModuleError

_FLAT = b"tedslfl1"
_HEAD = struct.Struct("<8sIIQ")  # magic, CRC of what follows this field, bytes of the index, bytes of all pieces


def pack_flat(pieces: Mapping[str, bytes]) -> bytes:
    """Returns `pieces` behind an index and a CRC, uncompressed: read back in microseconds."""
    index = json.dumps([[name, len(content)] for name, content in pieces.items()]).encode()
    content = index + b"".join(pieces.values())
    sizes = struct.pack("<IQ", len(index), len(content) - len(index))
    return _FLAT + struct.pack("<I", zlib.crc32(content, zlib.crc32(sizes))) + sizes + content


def unpack_flat(data: bytes, where: str) -> dict[str, bytes]:
    """Returns the pieces that `pack_flat` put into `data`; ModuleError if it is damaged or was not written by it."""
    if len(data) < _HEAD.size:
        raise ModuleError(f"{where} is cut off")
    magic, crc, index_bytes, content_bytes = _HEAD.unpack_from(data)
    if magic != _FLAT or len(data) != _HEAD.size + index_bytes + content_bytes or crc != zlib.crc32(memoryview(data)[12:]):
        raise ModuleError(f"{where} is damaged")
    at = _HEAD.size + index_bytes
    pieces = {}
    for name, size in json.loads(data[_HEAD.size:at]):
        pieces[name] = data[at:at + size]
        at += size
    return pieces
