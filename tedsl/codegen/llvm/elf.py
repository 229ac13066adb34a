"""The symbols that an ELF object leaves undefined: what the linker will have to find."""

from __future__ import annotations

import struct

from tedsl.errors import InternalError

_FUNCTION = 2  # STT_FUNC
_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size
_SECTION = struct.Struct("<IIQQQQIIQQ")  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, ...


def undefined_symbols(image: bytes) -> list[str]:
    """Names of the symbols that the 64-bit little-endian ELF object `image` uses and does not define."""
    found = dict.fromkeys(name for name, section, _ in _symbols(image) if section == 0)
    found.pop("_GLOBAL_OFFSET_TABLE_", None)  # the linker makes it
    return list(found)


def _symbols(image: bytes) -> list[tuple[str, int, int]]:
    """Name, section (0: undefined) and kind of each symbol."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise InternalError("the object is not 64-bit little-endian ELF")
    start, = struct.unpack_from("<Q", image, 40)  # e_shoff
    size, count = struct.unpack_from("<HH", image, 58)  # e_shentsize, e_shnum
    sections = [_SECTION.unpack_from(image, start + k * size) for k in range(count)]
    found: list[tuple[str, int, int]] = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for at in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):  # the first symbol is the null one
                name, info, _, section, _, _ = _SYMBOL.unpack_from(image, at)
                found.append((_string(image, names + name), section, info))
    return found


def defined_functions(image: bytes) -> list[str]:
    """Names of the functions that the object gives to others."""
    return [name for name, section, info in _symbols(image) if section != 0 and info >> 4 != 0 and info & 15 == _FUNCTION]


def _string(image: bytes, at: int) -> str:
    return image[at:image.index(b"\0", at)].decode()
