"""Reads ELF objects: the symbols that they use and define, their thread-local variables, their initializers."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tedsl.errors import InternalError

_FUNCTION, _THREAD_LOCAL = 2, 6  # STT_FUNC, STT_TLS
_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_RUN_BY_LOADER = (14, 15, 16)  # SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY


class _Form(NamedTuple):
    """Where things stand in objects of one word size: the offsets of fields in the header, and the records."""

    section_table: tuple[str, int]  # e_shoff: its format and offset
    section_sizes: int  # the offset of e_shentsize, before e_shnum
    section: struct.Struct  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, ...
    symbol: struct.Struct
    fields: tuple[int, ...]  # the places in it of st_name, st_info, st_shndx, st_value, st_size
    address: tuple[str, int]  # the format of sh_addr, and its offset in a section


_FORMS = {
    b"\x7fELF\x02\x01": _Form(("<Q", 40), 58, struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), (0, 1, 3, 4, 5),
                            ("<Q", 16)),
    b"\x7fELF\x01\x01": _Form(("<I", 32), 46, struct.Struct("<IIIIIIIIII"), struct.Struct("<IIIBBH"), (0, 3, 5, 1, 2),
                            ("<I", 12)),
}


def undefined_symbols(image: bytes) -> list[str]:
    """Lists the symbols that the little-endian ELF object `image` uses and does not define."""
    undefined = dict.fromkeys(s.name for s in _symbols(image) if s.section == 0)
    undefined.pop("_GLOBAL_OFFSET_TABLE_", None)  # the linker makes it
    return list(undefined)


def function_ranges(image: bytes) -> list[tuple[str, int, int]]:
    """Lists the functions of the code section of the object: the name, the offset and the size in bytes of each."""
    code = _code_section(image)
    return [(s.name, s.value, s.size) for s in _symbols(image) if s.section == code and s.info & 15 == _FUNCTION]


def with_code_address(image: bytes, address: int) -> bytes:
    """Returns the object with the address at which its code section was loaded written into it, for debuggers."""
    form = _form(image)
    start, = struct.unpack_from(form.section_table[0], image, form.section_table[1])
    placed = bytearray(image)
    field, offset = form.address
    struct.pack_into(field, placed, start + _code_section(image) * form.section.size + offset, address)
    return bytes(placed)


def _code_section(image: bytes) -> int:
    """Returns the number of the section `.text`."""
    sections = _sections(image)
    names = sections[struct.unpack_from("<H", image, _form(image).section_sizes + 4)[0]][4]  # e_shstrndx
    return next(k for k, section in enumerate(sections) if _string(image, names + section[0]) == ".text")


class _Symbol(NamedTuple):
    """An entry of a symbol table. section: 0 if undefined; info: binding and kind."""

    name: str
    info: int
    section: int
    value: int
    size: int


def _symbols(image: bytes) -> list[_Symbol]:
    """Lists the symbol table."""
    form, sections = _form(image), _sections(image)
    symbols: list[_Symbol] = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for at in range(offset + form.symbol.size, offset + length, form.symbol.size):  # the first symbol is the null one
                record = form.symbol.unpack_from(image, at)
                name, info, section, value, size = (record[k] for k in form.fields)
                symbols.append(_Symbol(_string(image, names + name), info, section, value, size))
    return symbols


def _form(image: bytes) -> _Form:
    form = _FORMS.get(bytes(image[:6]))
    if form is None:
        raise InternalError("the object is not little-endian ELF")
    return form


def _sections(image: bytes) -> list[tuple[int, ...]]:
    form = _form(image)
    start, = struct.unpack_from(form.section_table[0], image, form.section_table[1])
    size, count = struct.unpack_from("<HH", image, form.section_sizes)
    return [form.section.unpack_from(image, start + k * size) for k in range(count)]


def thread_local_variables(image: bytes) -> list[str]:
    """Lists the thread-local variables that the object defines or uses, those of other libraries included."""
    return [s.name for s in _symbols(image) if s.info & 15 == _THREAD_LOCAL]


def has_initializers(image: bytes) -> bool:
    """Tells whether the object has constructors or destructors, which only a loader of programs would run."""
    return any(section[1] in _RUN_BY_LOADER for section in _sections(image))


def defined_functions(image: bytes) -> list[str]:
    """Lists the functions that the object exports."""
    return [s.name for s in _symbols(image) if s.section != 0 and s.info >> 4 != 0 and s.info & 15 == _FUNCTION]


def _string(image: bytes, at: int) -> str:
    return image[at:image.index(b"\0", at)].decode()
