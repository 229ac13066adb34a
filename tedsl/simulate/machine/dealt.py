"""Steps of ldmatrix and mma, whose elements are dealt out to the threads of a warp in a known way.

With g = thread // 4, t = thread % 4 and c elements in 32 bits, a thread has rows g and g + 8 of a at the columns c*t..., then
at c*(t + 4)...; column g of b at the rows c*t..., then c*(t + 4)...; columns 2*t and 2*t + 1 of rows g and g + 8 of the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from tedsl.simulate.instructions.operation import Array, unknown
from tedsl.simulate.machine.accesses import address_reader, class_of
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.matrices import ELEMENTS, as_elements, items, numbers, product, rows_of_warps
from tedsl.simulate.machine.operands import Names
from tedsl.simulate.machine.warps import require_whole_warps
from tedsl.simulate.memory.traffic import WARP
from tedsl.simulate.ptx.matrices import Matrix, dealt_product_of, matrices_loaded
from tedsl.simulate.ptx.syntax import Instruction, Operand

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Sites

Made = tuple[Callable[[Frame], None], str]
DEALT_TENSOR = "tensor 16x8"  # the class of a product in reports
_LINES = 8  # of a matrix of ldmatrix, of 16 bytes each


def load_matrices(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of ldmatrix: eight threads give the lines of a matrix of 8 x 16 bytes, of which each thread gets 4 bytes."""
    count, turned = matrices_loaded(instruction)
    site = sites.of(instruction)
    registers, memory = instruction.operands
    writers = [names.writer(one, instruction) for one in items(registers)]
    if len(writers) != count:
        raise unknown(instruction)
    address = address_reader(memory, names, instruction)

    def run(frame: Frame) -> None:
        require_whole_warps(frame, instruction)
        giving = np.flatnonzero(frame.of_these(frame.batch.lane) < _LINES * count)
        some = Frame(frame.run, frame.batch, frame.registers, giving if frame.lanes is None else frame.lanes[giving])
        places = np.broadcast_to(address(frame.registers), frame.count)[giving]
        words = np.stack([rows_of_warps(some, value) for value in frame.run.memory.load(some, site, places)], axis=2)
        lines = words[:, :_LINES * count].reshape(len(words), count, _LINES, 4)  # warp, matrix, line, word
        if turned:
            elements = np.ascontiguousarray(lines).view(np.uint16).transpose(0, 1, 3, 2)
            lines = np.ascontiguousarray(elements).view(np.uint32)
        mine = lines.reshape(len(words), count, WARP).transpose(0, 2, 1).reshape(-1, count)
        mine = mine[frame.of_these(frame.batch.position)]
        for number, put in enumerate(writers):
            put(frame.registers, np.ascontiguousarray(mine[:, number]))

    return run, class_of(site)


def multiply(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of mma.sync."""
    matrices = dealt_product_of(instruction)
    if matrices is None or len(instruction.operands) != 4:
        raise unknown(instruction)
    d, *given = matrices
    write = _writer(instruction.operands[0], d, names, instruction)
    readers = [_reader(one, matrix, which, names, instruction)
               for one, matrix, which in zip(instruction.operands[1:], given, "abc", strict=True)]

    def run(frame: Frame) -> None:
        require_whole_warps(frame, instruction)
        a, b, c = (numbers(read(frame), matrix.form) for read, matrix in zip(readers, given))
        write(frame, as_elements(product(a, b, c), d.form))

    return run, DEALT_TENSOR


def places(matrix: Matrix, which: str) -> tuple[Array, Array]:
    """Returns the rows and the columns of the elements [thread, number] that the threads of a warp have."""
    group, turn = np.arange(WARP)[:, None] // 4, np.arange(WARP)[:, None] % 4
    number = np.arange(matrix.size // WARP)[None, :]
    if which == "c":
        return group + number // 2 * 8, turn * 2 + number % 2
    side = 32 // matrix.bits
    register, part = number // side, number % side
    if which == "a":
        return group + register % 2 * 8, side * (turn + register // 2 * 4) + part
    return side * (turn + register * 4) + part, group + 0 * number


def _reader(operand: Operand, matrix: Matrix, which: str, names: Names, instruction: Instruction) -> Callable[[Frame], Array]:
    readers = [names.reader(one, "b32", instruction) for one in items(operand)]
    _require_room(len(readers), matrix, instruction)
    rows, columns = places(matrix, which)

    def read(frame: Frame) -> Array:
        words = np.stack([rows_of_warps(frame, np.broadcast_to(reader(frame.registers), frame.count).view(np.uint32))
                          for reader in readers], axis=2)
        values = np.zeros((len(words), matrix.rows, matrix.columns), ELEMENTS[matrix.form])
        values[:, rows, columns] = np.ascontiguousarray(words).view(ELEMENTS[matrix.form]).reshape(len(words), WARP, -1)
        return values

    return read


def _writer(operand: Operand, matrix: Matrix, names: Names, instruction: Instruction) -> Callable[[Frame, Array], None]:
    writers = [names.writer(one, instruction) for one in items(operand)]
    _require_room(len(writers), matrix, instruction)
    rows, columns = places(matrix, "c")

    def write(frame: Frame, values: Array) -> None:
        words = np.ascontiguousarray(values[:, rows, columns]).view(np.uint32)
        mine = cast(Array, words.reshape(len(values) * WARP, len(writers)))[frame.of_these(frame.batch.position)]
        for number, put in enumerate(writers):
            put(frame.registers, np.ascontiguousarray(mine[:, number]))

    return write


def _require_room(registers: int, matrix: Matrix, instruction: Instruction) -> None:
    if registers * WARP * 32 != matrix.size * matrix.bits:
        raise unknown(instruction, f"{registers} registers of each thread do not hold {matrix.size} elements of {matrix.form}")
