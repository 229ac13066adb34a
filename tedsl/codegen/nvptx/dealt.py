"""Moves of the matrices of mma, whose elements are dealt out to the threads of a warp in a known way.

With g = thread // 4 and t = thread % 4, and c elements in the 32 bits of a register (one of 32 bits), a thread has

    a  16 x k   rows g and g + 8 of the columns c*t..., then of c*(t + 4)...              4 registers
    b  k x 8    column g of the rows c*t..., then of c*(t + 4)...                         2 registers
    c  16 x 8   columns 2*t and 2*t + 1 of row g, then of row g + 8                       4 registers, or 2 of float16

From shared memory whose rows lie at multiples of 16 bytes, `ldmatrix` brings matrices of 8 x 16 bytes; it turns those of 16-bit
elements. Elsewhere each thread loads its own elements.
"""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.types import memory_type, vector_of
from tedsl.ir.calls.fragments import ACCUMULATOR, A, Fragment
from tedsl.record import record

FIRST = 80  # devices that multiply such matrices
_SHARED = 3
_BEST = 16  # bytes that divide an address: what ldmatrix needs


@record
class Place:
    """A matrix in memory: its pointer, the pointer into its space of memory, that space, the elements from line to line, as a
    register, and their order.

    aligned, apart: bytes up to 16 that divide its address, and the distance of its lines.
    """

    pointer: str
    within: str
    space: int
    stride: str
    order: str
    aligned: int
    apart: int


def registers(fact: Fragment) -> tuple[int, str]:
    """Returns how many registers of each thread hold a fragment, and their type."""
    count = fact.size * fact.dtype.bytes // 128
    return count, "<2 x half>" if fact.dtype == "float16" else "float" if fact.dtype == "float32" else "i32"


def load(out: Emitter, fact: Fragment, place: Place) -> list[str]:
    """Emits the load of a matrix and returns the registers of a thread."""
    turned = _runs_across(fact, place)
    if fact.scope != ACCUMULATOR and place.space == _SHARED and place.aligned == place.apart == _BEST \
            and (not turned or fact.dtype.bytes == 2):
        return _load_matrices(out, fact, place, turned)
    values = [(_gathered if turned else _side_by_side)(out, fact, place, *group) for group in _groups(out, fact)]
    return [part for value in values for part in _as_registers(out, fact, value)]


def store(out: Emitter, fact: Fragment, place: Place, parts: list[str]) -> None:
    """Emits the store of a result."""
    t, (_, register) = memory_type(fact.dtype), registers(fact)
    for number, (row, column, count) in enumerate(_groups(out, fact)):
        mine = parts[number * len(parts) // 2:(number + 1) * len(parts) // 2]
        wide = vector_of(t, count)
        value = out.assign(f"bitcast {register} {mine[0]} to {wide}") if len(mine) == 1 else _joined(out, t, mine)
        if not _runs_across(fact, place):
            out.line(f"store {wide} {value}, ptr {_element(out, fact, place, row, column)}, align {_known(fact, place, count)}")
            continue
        for k in range(count):
            one = out.assign(f"extractelement {wide} {value}, i32 {k}")
            out.line(f"store {t} {one}, ptr {_element(out, fact, place, row, _plus(out, column, k))}, align {fact.dtype.bytes}")


def _runs_across(fact: Fragment, place: Place) -> bool:
    """Whether the elements that a thread has side by side lie in different lines of memory."""
    return place.order == ("row_major" if fact.scope not in (A, ACCUMULATOR) else "col_major")


def _known(fact: Fragment, place: Place, count: int) -> int:
    """Bytes that divide the address of `count` elements of a thread."""
    return min(place.aligned, place.apart, count * fact.dtype.bytes)


def _groups(out: Emitter, fact: Fragment) -> list[tuple[str, str, int]]:
    """The row and the column of the first of each group of elements that a thread has side by side, and how many they are."""
    lane = _lane(out)
    group, turn = out.pure(f"lshr i32 {lane}, 2", 0), out.pure(f"and i32 {lane}, 3", 0)
    if fact.scope == ACCUMULATOR:
        column = out.pure(f"shl i32 {turn}, 1", 0)
        return [(_plus(out, group, 8 * k), column, 2) for k in (0, 1)]
    count = 4 // fact.dtype.bytes
    first = out.pure(f"mul nuw nsw i32 {turn}, {count}", 0)
    if fact.scope == A:
        return [(_plus(out, group, 8 * (k % 2)), _plus(out, first, 4 * count * (k // 2)), count) for k in range(4)]
    return [(_plus(out, first, 4 * count * k), group, count) for k in range(2)]


def _lane(out: Emitter) -> str:
    """The number of this thread in its warp: a row of 32 threads."""
    name = "llvm.nvvm.read.ptx.sreg.tid.x"
    return out.pure(f"call range(i32 0, 32) i32 {out.module.declare(name, f'declare i32 @{name}()')}()", 0)


def _plus(out: Emitter, value: str, number: int) -> str:
    return out.pure(f"add nuw nsw i32 {value}, {number}", 0) if number else value


def _element(out: Emitter, fact: Fragment, place: Place, row: str, column: str) -> str:
    """The address of an element of a matrix in memory."""
    line, at = (row, column) if place.order == "row_major" else (column, row)
    index = out.assign(f"add i32 {out.assign(f'mul i32 {line}, {place.stride}')}, {at}")
    return out.assign(f"getelementptr {memory_type(fact.dtype)}, ptr {place.pointer}, i32 {index}")


def _side_by_side(out: Emitter, fact: Fragment, place: Place, row: str, column: str, count: int) -> str:
    """The elements of a group, loaded together."""
    wide, pointer = vector_of(memory_type(fact.dtype), count), _element(out, fact, place, row, column)
    return out.assign(f"load {wide}, ptr {pointer}, align {_known(fact, place, count)}")


def _gathered(out: Emitter, fact: Fragment, place: Place, row: str, column: str, count: int) -> str:
    """The elements of a group, loaded one by one."""
    t, loaded = memory_type(fact.dtype), []
    for k in range(count):
        at = (_plus(out, row, k), column) if fact.scope not in (A, ACCUMULATOR) else (row, _plus(out, column, k))
        loaded.append(out.assign(f"load {t}, ptr {_element(out, fact, place, *at)}, align {fact.dtype.bytes}"))
    return _joined(out, t, loaded)


def _joined(out: Emitter, t: str, values: list[str]) -> str:
    wide, joined = vector_of(t, len(values)), "poison"
    for k, value in enumerate(values):
        joined = out.assign(f"insertelement {wide} {joined}, {t} {value}, i32 {k}")
    return joined


def _as_registers(out: Emitter, fact: Fragment, value: str) -> list[str]:
    """The registers that a group of elements fills."""
    (_, register), t = registers(fact), memory_type(fact.dtype)
    if fact.dtype.bytes == 4:
        return [out.assign(f"extractelement <2 x {t}> {value}, i32 {k}") for k in (0, 1)]
    return [out.assign(f"bitcast {vector_of(t, 4 // fact.dtype.bytes)} {value} to {register}")]


def _load_matrices(out: Emitter, fact: Fragment, place: Place, turned: bool) -> list[str]:
    """Emits ldmatrix: each eight threads give the addresses of the eight lines of a matrix of 8 x 16 bytes."""
    lane, wide = _lane(out), 16 // fact.dtype.bytes
    eight, low = out.pure(f"lshr i32 {lane}, 3", 0), out.pure(f"and i32 {lane}, 7", 0)
    second, third = out.pure(f"and i32 {eight}, 1", 0), out.pure(f"lshr i32 {eight}, 1", 0)
    if fact.scope != A:  # the two matrices of b lie along k; the other threads repeat the addresses
        along, across = second, "0"
    else:  # those of a: rows 0 and 8, then the same further along k
        along, across = third, second
    down, right = (across, along) if not turned else (along, across)
    line = out.pure(f"add i32 {low}, {out.pure(f'shl i32 {down}, 3', 0)}", 0)
    at = out.pure(f"mul i32 {right}, {wide}", 0)
    index = out.assign(f"add i32 {out.assign(f'mul i32 {line}, {place.stride}')}, {at}")
    pointer = out.assign(f"getelementptr {memory_type(fact.dtype)}, ptr addrspace({_SHARED}) {place.within}, i32 {index}")
    count, register = registers(fact)
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * turned}.b16.p{_SHARED}"
    result = f"{{ {', '.join(['i32'] * count)} }}"
    symbol = out.module.declare(name, f"declare {result} @{name}(ptr addrspace({_SHARED}))")
    value = out.assign(f"call {result} {symbol}(ptr addrspace({_SHARED}) {pointer})")
    parts = [out.assign(f"extractvalue {result} {value}, {k}") for k in range(count)]
    return parts if register == "i32" else [out.assign(f"bitcast i32 {part} to {register}") for part in parts]
