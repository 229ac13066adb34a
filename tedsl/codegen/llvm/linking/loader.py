"""Puts the objects that tedsl compiles for x86-64 into the process: sections into pages, addresses into code.

LLVM's linker does the same for any object of any compiler, and takes longer to load than a kernel to compile. It gets what is
not understood here: other architectures, variables of threads, code for fixed addresses. An object becomes one piece of memory,

    code | stubs: jumps to functions outside      executed and read
    constants | table of addresses                read
    variables                                     read and written

all of it within reach of 32 bits; what stands elsewhere in the process is reached through the table. So all but the addresses
is known before there is memory for it: an object is laid out once (`LaidOut`), and the cache on disk keeps that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from tedsl.codegen.llvm.linking.elf import Object, Symbol
from tedsl.errors import InternalError
from tedsl.target.executable import EXECUTE, PAGE, READ, Pages

_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4  # SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR
_PLAIN = _WRITABLE | _ALLOCATED | _EXECUTABLE | 0x10 | 0x20  # SHF_MERGE and SHF_STRINGS: a linker may join equal parts
_BYTES, _RELOCATIONS, _ZEROS, _UNWINDING = 1, 4, 8, 0x70000001  # SHT_PROGBITS, SHT_RELA, SHT_NOBITS, SHT_X86_64_UNWIND
_ADDRESS, _RELATIVE, _CALL, _TABLED = 1, 2, 4, (9, 41, 42)  # R_X86_64_64, _PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_...
_RELA = struct.Struct("<QQq")  # r_offset, r_info, r_addend
_STUB = struct.Struct("<HiH")  # jmp *slot(%rip): the instruction, the distance to the slot, two bytes of padding
_JUMP = 0x25FF
_ADDRESS_FIELD, _WORD = struct.Struct("<Q"), (1 << 64) - 1


class NotUnderstood(Exception):
    """An object that is for LLVM's linker."""


class LaidOut(NamedTuple):
    """An object as it stands in memory, but for addresses.

    size: of the memory. constants, variables: the offsets where these begin. filled: bytes, with the offset of each piece; all
    others are zero. exports: the offsets of functions. inside: offsets at which the address of another offset stands.
    outside: offsets at which the address of a symbol stands that the object does not define, plus a number.
    """

    size: int
    constants: int
    variables: int
    filled: tuple[tuple[int, bytes], ...]
    exports: Mapping[str, int]
    inside: tuple[tuple[int, int], ...]
    outside: tuple[tuple[int, str, int], ...]

    @property
    def undefined(self) -> list[str]:
        """The symbols that the code uses and does not define."""
        return list(dict.fromkeys([name for _, name, _ in self.outside]))


class Loaded(NamedTuple):
    """Code in memory: where it is, and the addresses of its exported functions."""

    pages: Pages
    addresses: dict[str, int]


def load(laid: LaidOut, bound: Mapping[str, int]) -> Loaded:
    """Puts an object into memory; its undefined symbols have the addresses `bound`. NotUnderstood where memory is refused."""
    try:
        pages = Pages(laid.size)
    except OSError as error:
        raise NotUnderstood(str(error)) from error
    try:
        pages.write(0, _memory(laid, pages.address, bound))
        pages.protect(0, laid.constants, READ | EXECUTE)
        pages.protect(laid.constants, laid.variables, READ)
    except OSError as error:
        pages.release()
        raise NotUnderstood(str(error)) from error
    except BaseException:
        pages.release()
        raise
    return Loaded(pages, {name: pages.address + at for name, at in laid.exports.items()})


def _memory(laid: LaidOut, address: int, bound: Mapping[str, int]) -> bytes:
    """The object as it stands in memory from `address` on."""
    memory = bytearray(laid.size)
    for at, content in laid.filled:
        memory[at:at + len(content)] = content
    for at, target in laid.inside:
        _ADDRESS_FIELD.pack_into(memory, at, address + target & _WORD)
    for at, name, addend in laid.outside:
        _ADDRESS_FIELD.pack_into(memory, at, bound[name] + addend & _WORD)
    return bytes(memory)


def lay_out(image: bytes | Object, exports: Iterable[str]) -> LaidOut:
    """Lays out an object whose functions `exports` are asked for; NotUnderstood if LLVM's linker has to link it."""
    return _Layout(Object(image) if isinstance(image, bytes) else image).laid_out(exports)


class _Fix(NamedTuple):
    """A relocation: what is written at offset `at` of section `section`; symbol: its number."""

    section: int
    at: int
    kind: int
    symbol: int
    addend: int


class _Layout:
    """Where everything of an object stands: the offsets of its sections, stubs and table in one memory of `size` bytes."""

    def __init__(self, image: Object) -> None:
        if not image.is_x86_64:
            raise NotUnderstood("code for another architecture")
        self.sections, self.symbols, self.bytes_of = image.sections, image.symbols, image.bytes_of
        groups: dict[int, list[int]] = {_EXECUTABLE: [], 0: [], _WRITABLE: []}
        for number, section in enumerate(self.sections):
            if section.flags & _ALLOCATED and section.kind != _UNWINDING and section.name != ".eh_frame":
                group = groups.get(section.flags & (_EXECUTABLE | _WRITABLE))
                if group is None or section.flags & ~_PLAIN or section.kind not in (_BYTES, _ZEROS) or section.alignment > PAGE:
                    raise NotUnderstood(f"the section {section.name}")
                group.append(number)
        self.fixes = self._relocations({number for group in groups.values() for number in group})
        outside = dict.fromkeys([fix.symbol for fix in self.fixes if self._is_call_outside(fix)])
        tabled = dict.fromkeys([fix.symbol for fix in self.fixes if fix.kind in _TABLED])
        self.places: dict[int, int] = {}  # of sections, by their number
        stubs = _aligned(self._placed(groups[_EXECUTABLE], 0), _STUB.size)
        self.stubs = {symbol: stubs + _STUB.size * k for k, symbol in enumerate(outside)}
        self.constants = _aligned(stubs + _STUB.size * len(self.stubs), PAGE)
        table = _aligned(self._placed(groups[0], self.constants), 8)
        self.slots = {symbol: table + 8 * k for k, symbol in enumerate({**outside, **tabled})}
        self.variables = _aligned(table + 8 * len(self.slots), PAGE)
        self.size = max(_aligned(self._placed(groups[_WRITABLE], self.variables), PAGE), PAGE)

    def _relocations(self, sections: set[int]) -> list[_Fix]:
        return [_Fix(table.info, at, info & 0xFFFFFFFF, info >> 32, addend)
                for table in self.sections if table.kind == _RELOCATIONS and table.info in sections
                for at, info, addend in _RELA.iter_unpack(self.bytes_of(table))]

    def _is_call_outside(self, fix: _Fix) -> bool:
        return fix.kind == _CALL and self._is_outside(fix.symbol)

    def _placed(self, numbers: list[int], at: int) -> int:
        """Places sections from offset `at` on; returns where they end."""
        for number in numbers:
            section = self.sections[number]
            at = self.places[number] = _aligned(at, max(section.alignment, 1))
            at += section.size
        return at

    def exported(self, name: str) -> int:
        """The offset of a function of the object."""
        found = [symbol for symbol in self.symbols if symbol.name == name and symbol.section != 0]
        if not found:
            raise InternalError(f"the machine code does not have the function {name}")
        return self._offset(found[0])

    def _offset(self, symbol: Symbol) -> int:
        if symbol.section not in self.places:  # a number that stands for no section: an absolute address, ...
            raise NotUnderstood(f"the symbol {symbol.name}")
        return self.places[symbol.section] + symbol.value

    # --- what is written --------------------------------------------------------------------------------------------------

    def laid_out(self, exports: Iterable[str]) -> LaidOut:
        """The object in one memory."""
        memory = bytearray(self.size)
        for number, at in self.places.items():
            if self.sections[number].kind == _BYTES:
                memory[at:at + self.sections[number].size] = self.bytes_of(self.sections[number])
        for symbol, stub in self.stubs.items():
            _STUB.pack_into(memory, stub, _JUMP, self.slots[symbol] - (stub + 6), 0)
        addresses = [(slot, symbol, 0) for symbol, slot in self.slots.items()]
        for fix in self.fixes:
            at = self.places[fix.section] + fix.at
            if fix.kind == _ADDRESS:
                addresses.append((at, fix.symbol, fix.addend))
            else:
                struct.pack_into("<i", memory, at, self._target(fix) + fix.addend - at)
        known = [(at, self.symbols[number], addend) for at, number, addend in addresses]
        return LaidOut(self.size, self.constants, self.variables, self._filled(memory),
                       {name: self.exported(name) for name in exports},
                       tuple([(at, self._offset(to) + addend) for at, to, addend in known if to.section]),
                       tuple([(at, to.name, addend) for at, to, addend in known if not to.section]))

    def _filled(self, memory: bytearray) -> tuple[tuple[int, bytes], ...]:
        """The bytes of each of the three parts without the zeros at its end."""
        ends = (0, self.constants, self.variables, self.size)
        parts = [(begin, bytes(memory[begin:end]).rstrip(b"\0")) for begin, end in pairwise(ends)]
        return tuple([(begin, content) for begin, content in parts if content])

    def _is_outside(self, number: int) -> bool:
        return self.symbols[number].section == 0

    def _target(self, fix: _Fix) -> int:
        """The offset to which a relative relocation leads."""
        symbol = self.symbols[fix.symbol]
        if fix.kind in _TABLED:
            return self.slots[fix.symbol]
        if self._is_call_outside(fix):
            return self.stubs[fix.symbol]
        if fix.kind in (_CALL, _RELATIVE) and symbol.section != 0:
            return self._offset(symbol)
        raise NotUnderstood(f"the relocation {fix.kind} of {symbol.name}")


def _aligned(number: int, to: int) -> int:
    return -(-number // to) * to
