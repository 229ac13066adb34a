"""Files of named pieces of bytes that detect damage: `.tedsl`, a zip archive.

It ends with a CRC-32 of everything else in the file, which is compared before anything else is read, so that a truncated or
changed file is refused as such. Nothing in a file is executed or unpickled.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping

from tedsl.errors import ModuleError

_SEAL = b"tedsl crc32:"  # in the comment of the archive, before eight hexadecimal digits
_SEALED = len(_SEAL) + 8
_DATE = (1980, 1, 1, 0, 0, 0)  # the same pieces make the same file
MOST_BYTES = 1 << 31  # of all pieces together


def pack(pieces: Mapping[str, bytes], stored: str = "\0") -> bytes:
    """Returns a zip archive of `pieces`, sealed by its CRC. Those whose names begin with `stored` are not compressed."""
    import zipfile  # with what compresses otherwise it takes milliseconds, and few programs write or read files

    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.comment = _SEAL + b"00000000"
        for name, content in pieces.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content,
                             zipfile.ZIP_STORED if name.startswith(stored) else zipfile.ZIP_DEFLATED)
    body = memory.getvalue()[:-8]
    return body + b"%08x" % zlib.crc32(body)


def unpack(data: bytes, where: str) -> dict[str, bytes]:
    """Returns the pieces that `pack` put into `data`. ModuleError, which names the file `where`, says what is wrong with it."""
    again = "copy the file again, or export the module again"
    if data[:4] != b"PK\x03\x04":
        begins = f"not a .tedsl file: it begins with {data[:4]!r}" if data else "empty"
        raise ModuleError(f"{where} is {begins}", hint=again)
    if data[-_SEALED:-8] != _SEAL:
        raise ModuleError(f"{where} is cut off, or an archive that tedsl did not write: its seal is not there", hint=again)
    if data[-8:] != b"%08x" % zlib.crc32(memoryview(data)[:-8]):
        raise ModuleError(f"{where} is damaged: its content and its CRC differ", hint=again)
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
                raise ModuleError(f"{where} holds more than {MOST_BYTES} bytes", hint=again)
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, OSError, EOFError, RuntimeError) as error:
        raise ModuleError(f"{where} cannot be unpacked: {error}", hint=again) from error
