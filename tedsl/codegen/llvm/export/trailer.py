"""What stands behind the content of a shared library: the image of its module without the code, and a CRC of the whole file.

    ELF | archive | magic, 8 bytes | bytes of the archive, 8 | CRC-32 of everything before, 4

Loaders of programs do not look there. It is compared before a library is loaded: to load a damaged one can end the process.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import replace

from tedsl.errors import ModuleError
from tedsl.record import record
from tedsl.runtime.modules.container import SEAL, pack, unpack
from tedsl.runtime.modules.image import Image, image_of

_MAGIC = b"tedslso1"
_END = struct.Struct("<8sQ")
_CRC = struct.Struct("<I")
_BLOCK = struct.Struct("<8sI500x")  # the last of a tar file or an object: magic, and the CRC-32 of everything before
_MAGIC_OF = {"tar": b"tedslta1", "o": b"tedslob1"}
_HEADER_SIZE = 64  # bytes of the header of an ELF file of 64 bits
_LIBRARY = "library.json"
MOST_BESIDE = 1 << 20  # bytes of objects that a library says of itself


@record
class Described:
    """What a shared library says about itself. symbols: by which a loader calls the versions of each kernel.
    build: what stands at `build_symbol` in its memory.
    """

    image: Image
    symbols: dict[str, list[str]]
    needed: tuple[str, ...]
    build: str
    build_symbol: str


def description(about: Described) -> bytes:
    """Returns `about` as an archive, without the code of its image.

    Large objects beside the code, such as the weights of a network, are not there a second time: a module that is loaded from
    the library runs, but cannot be written to a file again.
    """
    image = replace(about.image, code=b"")
    if sum(map(len, image.beside)) > MOST_BESIDE:
        image = replace(image, source="", beside=())
    symbols = {"symbols": about.symbols, "needed": list(about.needed), "build": about.build, "build_symbol": about.build_symbol}
    return pack({**image.parts(), _LIBRARY: json.dumps(symbols).encode()})


def sealed(content: bytes, about: Described) -> bytes:
    """Returns the shared library `content` with its trailer."""
    archive = description(about)
    whole = content + archive + _END.pack(_MAGIC, len(archive))
    return whole + _CRC.pack(zlib.crc32(whole))


def described(data: bytes, where: str) -> Described:
    """Returns what the shared library `data` says about itself. ModuleError, which names the file `where`, says why it is none
    of tedsl's, or that it is damaged.
    """
    again = "copy the file again, or export the module again"
    if data[:4] != b"\x7fELF":
        raise ModuleError(f"{where} is {f'not a shared library: it begins with {data[:4]!r}' if data else 'empty'}", hint=again)
    end = len(data) - _END.size - _CRC.size
    magic, length = _END.unpack_from(data, end) if end > 0 else (b"", 0)
    if magic != _MAGIC or length > end:
        raise ModuleError(f"{where} has no trailer of tedsl: it is cut off, stripped, or the library of somebody else",
                          hint="call functions of other libraries with tir.call_extern or ctypes; strip a library before "
                               "export_library writes it, by fcompile")
    if _CRC.unpack_from(data, len(data) - _CRC.size)[0] != zlib.crc32(memoryview(data)[:-_CRC.size]):
        raise ModuleError(f"{where} is damaged: its content and its CRC differ", hint=again)
    return read_description(data[end - length:end], where)


def sealed_file(content: bytes, form: str) -> bytes:
    """Returns a file of the format "tar" or "o" with a block behind its end that tells whether it was damaged; programs that
    unpack or link it stop before.
    """
    return content + _BLOCK.pack(_MAGIC_OF[form], zlib.crc32(content))


def checked_file(data: bytes, form: str, where: str) -> bytes:
    """Returns the content that `sealed_file` got; ModuleError, which names the file `where`, if it is damaged."""
    content, block = data[:-_BLOCK.size], data[-_BLOCK.size:]
    if block != _BLOCK.pack(_MAGIC_OF[form], zlib.crc32(content)):
        raise ModuleError(f"{where} is damaged, or no .{form} file of export_library", hint="export it anew")
    return content


def linked_prefixes(data: bytes) -> list[str]:
    """Returns the prefixes of the objects of tedsl of which another linker made the shared library `data`; none for all else.

    Such a file ends where its section headers end, and names the descriptions of the objects among its symbols.
    """
    if data[:5] != b"\x7fELF\x02" or len(data) < _HEADER_SIZE:
        return []
    begin, size, number = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
    if begin + size * number != len(data) or SEAL not in data:
        return []
    return _described_prefixes(data)


def described_prefix(data: bytes) -> str | None:
    """Returns the prefix of the description of tedsl among the symbols of the ELF file `data`; None without one."""
    names = _described_prefixes(data) if SEAL in data else []
    return names[0] if len(names) == 1 else None


def _described_prefixes(data: bytes) -> list[str]:
    return list(dict.fromkeys([name.decode() for name in re.findall(rb"\0(\w+)_module(?=\0)", data)]))


def read_description(archive: bytes, where: str) -> Described:
    """Returns what `description` wrote; ModuleError, which names the file `where`, says what is wrong with it."""
    pieces = unpack(archive, where)
    image = image_of(pieces, where)
    try:
        about = json.loads(pieces[_LIBRARY])
        symbols = {str(name): [str(symbol) for symbol in given] for name, given in about["symbols"].items()}
        return Described(image, symbols, tuple(map(str, about["needed"])), str(about["build"]),
                         str(about["build_symbol"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModuleError(f"{where} is not a module that tedsl wrote: {error}", hint="export the module again") from error
