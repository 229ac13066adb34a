"""Reads ELF objects: the symbols that they use and define, their thread-local variables, their initializers."""

from __future__ import annotations

import struct

from tedsl.errors import InternalError

_FUNCTION, _THREAD_LOCAL = 2, 6  # STT_FUNC, STT_TLS
_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_RUN_BY_LOADER = (14, 15, 16)  # SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY
_SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size
_SECTION = struct.Struct("<IIQQQQIIQQ")  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, ...


def undefined_symbols(image: bytes) -> list[str]:
    """Lists the symbols that the 64-bit little-endian ELF object `image` uses and does not define."""
    undefined = dict.fromkeys(name for name, section, _ in _symbols(image) if section == 0)
    undefined.pop("_GLOBAL_OFFSET_TABLE_", None)  # the linker makes it
    return list(undefined)


def _symbols(image: bytes) -> list[tuple[str, int, int]]:
    """Lists the symbol table: the name, the section (0: undefined) and the kind of each symbol."""
    sections = _sections(image)
    symbols: list[tuple[str, int, int]] = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for at in range(offset + _SYMBOL.size, offset + length, _SYMBOL.size):  # the first symbol is the null one
                name, info, _, section, _, _ = _SYMBOL.unpack_from(image, at)
                symbols.append((_string(image, names + name), section, info))
    return symbols


def _sections(image: bytes) -> list[tuple[int, ...]]:
    if image[:6] != b"\x7fELF\x02\x01":
        raise InternalError("the object is not 64-bit little-endian ELF")
    start, = struct.unpack_from("<Q", image, 40)  # e_shoff
    size, count = struct.unpack_from("<HH", image, 58)  # e_shentsize, e_shnum
    return [_SECTION.unpack_from(image, start + k * size) for k in range(count)]


def thread_local_variables(image: bytes) -> list[str]:
    """Lists the thread-local variables that the object defines or uses, those of other libraries included."""
    return [name for name, _, info in _symbols(image) if info & 15 == _THREAD_LOCAL]


def has_initializers(image: bytes) -> bool:
    """Tells whether the object has constructors or destructors, which only a loader of programs would run."""
    return any(section[1] in _RUN_BY_LOADER for section in _sections(image))


def defined_functions(image: bytes) -> list[str]:
    """Lists the functions that the object exports."""
    return [name for name, section, info in _symbols(image) if section != 0 and info >> 4 != 0 and info & 15 == _FUNCTION]


def _string(image: bytes, at: int) -> str:
    return image[at:image.index(b"\0", at)].decode()
