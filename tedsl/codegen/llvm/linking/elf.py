"""Reads ELF objects: their sections and symbols, thread-local variables, initializers."""

from __future__ import annotations

import struct
from functools import cached_property, lru_cache
from typing import NamedTuple

from tedsl.errors import InternalError

_FUNCTION, _THREAD_LOCAL = 2, 6  # STT_FUNC, STT_TLS
_SYMBOL_TABLE = 2  # sh_type SHT_SYMTAB
_RUN_BY_LOADER = (14, 15, 16)  # SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY
_X86_64 = 62  # EM_X86_64


class _Form(NamedTuple):
    """Where things stand in objects of one word size: the offsets of fields in the header, and the records."""

    section_table: tuple[str, int]  # e_shoff: its format and offset
    section_sizes: int  # the offset of e_shentsize, before e_shnum and e_shstrndx
    section: struct.Struct  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, ...
    symbol: struct.Struct
    fields: tuple[int, ...]  # the places in it of st_name, st_info, st_shndx, st_value, st_size
    address: tuple[str, int]  # the format of sh_addr, and its offset in a section


_WIDE = b"\x7fELF\x02\x01"
_FORMS = {
    _WIDE: _Form(("<Q", 40), 58, struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), (0, 1, 3, 4, 5), ("<Q", 16)),
    b"\x7fELF\x01\x01": _Form(("<I", 32), 46, struct.Struct("<IIIIIIIIII"), struct.Struct("<IIIBBH"), (0, 3, 5, 1, 2),
                            ("<I", 12)),
}


class Section(NamedTuple):
    """A section. link, info: numbers of other sections; alignment: of its address in memory, 0 for any."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class Symbol(NamedTuple):
    """An entry of a symbol table. section: 0 if undefined; info: binding and kind."""

    name: str
    info: int
    section: int
    value: int
    size: int


class Object:
    """The little-endian ELF object `image`."""

    def __init__(self, image: bytes) -> None:
        form = _FORMS.get(bytes(image[:6]))
        if form is None:
            raise InternalError("the object is not little-endian ELF")
        self.image, self.form = image, form
        self.start, = struct.unpack_from(form.section_table[0], image, form.section_table[1])

    @property
    def is_x86_64(self) -> bool:
        return self.image[:6] == _WIDE and struct.unpack_from("<H", self.image, 18)[0] == _X86_64

    @cached_property
    def sections(self) -> list[Section]:
        """The sections; other parts of the object say their numbers."""
        size, count, names = struct.unpack_from("<HHH", self.image, self.form.section_sizes)
        records = [self.form.section.unpack_from(self.image, self.start + k * size) for k in range(count)]
        at = records[names][4] if count else 0
        return [Section(self._string(at + name), kind, flags, offset, length, link, info, alignment)
                for name, kind, flags, _, offset, length, link, info, alignment, _ in records]

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The symbol table; the first entry is the null symbol."""
        form, symbols = self.form, []
        for table in self.sections:
            if table.kind == _SYMBOL_TABLE:
                names = self.sections[table.link].offset
                for record in form.symbol.iter_unpack(self.bytes_of(table)):
                    name, info, section, value, size = [record[k] for k in form.fields]
                    symbols.append(Symbol(self._string(names + name) if name else "", info, section, value, size))
        return symbols

    @property
    def undefined(self) -> list[str]:
        """The symbols that the object uses and does not define."""
        names = dict.fromkeys(s.name for s in self.symbols if s.section == 0 and s.name)
        names.pop("_GLOBAL_OFFSET_TABLE_", None)  # the linker makes it
        return list(names)

    @property
    def code(self) -> int:
        """The number of the section `.text`."""
        return next(number for number, section in enumerate(self.sections) if section.name == ".text")

    def bytes_of(self, section: Section) -> bytes:
        return self.image[section.offset:section.offset + section.size]

    def _string(self, at: int) -> str:
        return self.image[at:self.image.index(b"\0", at)].decode()


@lru_cache(maxsize=1)
def read(image: bytes) -> Object:
    """Returns the object `image`: the one that was read last is read once, for what is compiled is checked, then linked."""
    return Object(image)


def undefined_symbols(image: bytes) -> list[str]:
    """Lists the symbols that the object `image` uses and does not define."""
    return read(image).undefined


def function_ranges(image: bytes) -> list[tuple[str, int, int]]:
    """Lists the functions of the code section of the object: the name, the offset and the size in bytes of each."""
    of = Object(image)
    return [(s.name, s.value, s.size) for s in of.symbols if s.section == of.code and s.info & 15 == _FUNCTION]


def with_code_address(image: bytes, address: int) -> bytes:
    """Returns the object with the address at which its code section was loaded written into it, for debuggers."""
    of, placed = Object(image), bytearray(image)
    field, offset = of.form.address
    struct.pack_into(field, placed, of.start + of.code * of.form.section.size + offset, address)
    return bytes(placed)


def thread_local_variables(image: bytes) -> list[str]:
    """Lists the thread-local variables that the object defines or uses, those of other libraries included."""
    return [s.name for s in Object(image).symbols if s.info & 15 == _THREAD_LOCAL]


def has_initializers(image: bytes) -> bool:
    """Tells whether the object has constructors or destructors, which only a loader of programs would run."""
    return any(section.kind in _RUN_BY_LOADER for section in Object(image).sections)


def exported_symbols(image: bytes) -> list[str]:
    """Lists the symbols that the object defines for others."""
    return [s.name for s in Object(image).symbols if s.section != 0 and s.info >> 4 != 0]


def defined_functions(image: bytes) -> list[str]:
    """Lists the functions that the object exports."""
    return [s.name for s in Object(image).symbols if s.section != 0 and s.info >> 4 != 0 and s.info & 15 == _FUNCTION]
