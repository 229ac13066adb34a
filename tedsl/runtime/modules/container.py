"""Files of named pieces of bytes that detect damage: `.tedsl`, a zip archive.

It ends with a CRC-32 of everything else in the file, which is compared before anything else is read, so that a truncated or
changed file is refused as such. Nothing in a file is executed or unpickled.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from tedsl.errors import ModuleError

Buffer: TypeAlias = "bytes | memoryview"

SEAL = b"tedsl crc32:"  # in the comment of the archive, before eight hexadecimal digits
_SEALED = len(SEAL) + 8
_DATE = (1980, 1, 1, 0, 0, 0)  # the same pieces make the same file
_HEADER = 30  # bytes of an entry before its name, the lengths of the name and of what follows it at 26
_LINE = 64  # bytes of a cache line, at which pieces that are not compressed begin
_PADDING = 0xD935  # the kind of an extra field that holds nothing, as zipalign writes it
MOST_BYTES = 1 << 31  # of all pieces together


def pack(pieces: Mapping[str, bytes], stored: str | tuple[str, ...] = ()) -> bytes:
    """Returns a zip archive of `pieces`, sealed by its CRC. Those whose names begin with `stored` are not compressed, and begin
    at multiples of a cache line.
    """
    import zipfile  # with what compresses otherwise it takes milliseconds, and few programs write or read files

    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.comment = SEAL + b"00000000"
        for name, content in pieces.items():
            info = zipfile.ZipInfo(name, _DATE)
            if name.startswith(stored):
                info.extra = _padding(memory.tell() + _HEADER + len(name.encode()))
            archive.writestr(info, content, zipfile.ZIP_STORED if name.startswith(stored) else zipfile.ZIP_DEFLATED)
    body = memory.getvalue()[:-8]
    return body + b"%08x" % zlib.crc32(body)


def _padding(offset: int) -> bytes:
    """An extra field after which an entry that would begin at `offset` begins at a multiple of a cache line."""
    size = -(offset + 4) % _LINE
    return struct.pack("<HH", _PADDING, size) + bytes(size)


def unpack(data: Buffer, where: str) -> dict[str, bytes]:
    """Returns the pieces that `pack` put into `data`. ModuleError, which names the file `where`, says what is wrong with it."""
    return {name: bytes(piece) for name, piece in unpack_in_place(data, where).items()}


def unpack_in_place(data: Buffer, where: str) -> dict[str, Buffer]:
    """The same, where pieces that are not compressed are parts of `data` itself, not copies."""
    again = "copy the file again, or export the module again"
    if data[:4] != b"PK\x03\x04":
        begins = f"not a .tedsl file: it begins with {bytes(data[:4])!r}" if data else "empty"
        raise ModuleError(f"{where} is {begins}", hint=again)
    if data[-_SEALED:-8] != SEAL:
        raise ModuleError(f"{where} is cut off, or an archive that tedsl did not write: its seal is not there", hint=again)
    if data[-8:] != b"%08x" % zlib.crc32(memoryview(data)[:-8]):
        raise ModuleError(f"{where} is damaged: its content and its CRC differ", hint=again)
    import zipfile

    try:
        with zipfile.ZipFile(_File(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
                raise ModuleError(f"{where} holds more than {MOST_BYTES} bytes", hint=again)
            return {info.filename: _stored(data, info.header_offset, info.file_size)
                    if info.compress_type == zipfile.ZIP_STORED else archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, OSError, EOFError, RuntimeError) as error:
        raise ModuleError(f"{where} cannot be unpacked: {error}", hint=again) from error


def _stored(data: Buffer, header: int, size: int) -> memoryview:
    """The content of an entry that is not compressed. ValueError if the archive ends before it does."""
    name, extra = struct.unpack_from("<HH", data, header + 26)
    begin = header + _HEADER + int(name) + int(extra)
    if begin + size > len(data):
        raise ValueError("an entry is longer than the archive")
    return memoryview(data)[begin:begin + size]


class _File(io.RawIOBase):
    """A file whose content is `data`, which is not copied."""

    def __init__(self, data: Buffer) -> None:
        self._data, self._at = memoryview(data), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        return self._at

    def readinto(self, into: Any) -> int:
        part = self._data[self._at:self._at + len(into)]
        into[:len(part)] = part
        self._at += len(part)
        return len(part)
