"""The symbols that an ELF object leaves undefined: what the linker will have to find."""

from __future__ import annotations

import struct

from tedsl.errors import InternalError

_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size
_SECTION = struct.Struct("<IIQQQQIIQQ")  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, ...


def undefined_symbols(image: bytes) -> list[str]:
    """Names of the symbols that the 64-bit little-endian ELF object `image` uses and does not define."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise InternalError("the object is not 64-bit little-endian ELF")
    start, = struct.unpack_from("<Q", image, 40)  # e_shoff
    size, count = struct.unpack_from("<HH", image, 58)  # e_shentsize, e_shnum
    sections = [_SECTION.unpack_from(image, start + k * size) for k in range(count)]
    found: dict[str, None] = {}
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for at in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):  # the first symbol is the null one
                name, _, _, section, _, _ = _SYMBOL.unpack_from(image, at)
                if section == 0:
                    found.setdefault(_string(image, names + name))
    found.pop("_GLOBAL_OFFSET_TABLE_", None)  # the linker makes it
    return list(found)


def _string(image: bytes, at: int) -> str:
    return image[at:image.index(b"\0", at)].decode()
