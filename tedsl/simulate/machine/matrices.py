"""Steps of tensor cores: matrices that a warp loads, multiplies and stores together.

Which elements a thread has, PTX leaves to the device. Here the registers of the warp, thread after thread, hold the elements
row by row; again from the first element where there are more registers than elements. A load or store moves 16 bytes of a row
for each thread, in turns. A sum of products is taken in the order of k: in float32, or in int32, which wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tedsl.simulate.instructions.convert import doubles, rounded
from tedsl.simulate.instructions.operation import Array, unknown
from tedsl.simulate.machine.accesses import address_reader, class_of
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.operands import Names, Reader
from tedsl.simulate.machine.warps import require_whole_warps
from tedsl.simulate.memory.traffic import WARP
from tedsl.simulate.ptx.matrices import Matrix, matrix_moved, product_of
from tedsl.simulate.ptx.syntax import Group, Instruction, Number, Operand
from tedsl.simulate.reports.findings import DISAGREEING, thread_name

if TYPE_CHECKING:
    from tedsl.simulate.machine.sites import Site, Sites

Made = tuple[Callable[[Frame], None], str]
TENSOR = "tensor"
ELEMENTS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(np.uint16), "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32), "s32": np.dtype(np.int32)}


def wmma(instruction: Instruction, names: Names, sites: Sites) -> Made:
    """The step of wmma.load, wmma.store and wmma.mma."""
    if matrix_moved(instruction) is not None:
        return _moving(instruction, names, sites)
    return _multiplying(instruction, names)


# --- moves ----------------------------------------------------------------------------------------------------------------

def _moving(instruction: Instruction, names: Names, sites: Sites) -> Made:
    matrix, site = matrix_moved(instruction), sites.of(instruction)
    assert matrix is not None
    loads = instruction.parts[1] == "load"
    registers, memory = instruction.operands[:2] if loads else instruction.operands[1::-1]
    line = matrix.rows if matrix.by_columns else matrix.columns
    stride = instruction.operands[2] if len(instruction.operands) > 2 else Number(line)
    address, step = address_reader(memory, names, instruction), names.reader(stride, "u32", instruction)
    known = matrix

    def run(frame: Frame) -> None:
        require_whole_warps(frame, instruction)
        first = np.broadcast_to(address(frame.registers), frame.count)
        apart = np.broadcast_to(step(frame.registers).astype(np.int64), frame.count) * (known.bits // 8)
        _require_agreement(frame, instruction, first, apart)
        turns = [_chunk_addresses(frame, known, first, apart, turn) for turn in range(-(-known.chunks // WARP))]
        if loads:
            words = np.stack([rows_of_warps(frame, value) for at in turns for value in frame.run.memory.load(frame, site, at)])
            write(frame, _matrix_of(words.reshape(len(turns), site.count, -1, WARP), known))
        else:
            _store(frame, site, known, turns, read(frame))

    if loads:
        write = _writer(registers, known, names, instruction)
    else:
        read = _reader(registers, known, names, instruction)
    return run, class_of(site)


def _chunk_addresses(frame: Frame, matrix: Matrix, first: Array, apart: Array, turn: int) -> Array:
    """Where each thread moves its part of the matrix, the number of its lane and the `turn` of 32 parts; the parts that are not
    there are the first ones again.
    """
    number = (frame.of_these(frame.batch.lane).astype(np.int64) + turn * WARP) % matrix.chunks
    per_line = matrix.line // matrix.chunk
    return cast(Array, first + number // per_line * apart + number % per_line * matrix.chunk)


def rows_of_warps(frame: Frame, value: Array) -> Array:
    """Returns values of these threads in rows of warps; zeros for threads that are not here."""
    everywhere = np.zeros(frame.batch.warps * WARP, value.dtype)
    everywhere[frame.of_these(frame.batch.position)] = value
    return everywhere.reshape(-1, WARP)


def _matrix_of(words: Array, matrix: Matrix) -> Array:
    """The matrices of all warps, [warp, row, column], from the words [turn, word, warp, lane] that their threads loaded."""
    chunks = np.ascontiguousarray(words.transpose(2, 0, 3, 1)).reshape(words.shape[2], -1)  # warp; turn, lane, word
    lines = matrix.columns if matrix.by_columns else matrix.rows
    elements = chunks[:, :matrix.size * matrix.bits // 32].view(ELEMENTS[matrix.form]).reshape(len(chunks), lines, -1)
    return cast(Array, elements.transpose(0, 2, 1) if matrix.by_columns else elements)


def _store(frame: Frame, site: Site, matrix: Matrix, turns: Sequence[Array], values: Array) -> None:
    """Writes the matrices `values` of all warps: each thread its parts."""
    lines = values.transpose(0, 2, 1) if matrix.by_columns else values
    words = np.ascontiguousarray(lines).reshape(len(values), -1).view(np.uint32).reshape(len(values), matrix.chunks, -1)
    position = frame.of_these(frame.batch.position)
    for turn, addresses in enumerate(turns):
        chunk = (position % WARP + turn * WARP) % matrix.chunks
        mine = words[position // WARP, chunk]
        frame.run.memory.store(frame, site, addresses, [mine[:, word] for word in range(site.count)])


def _require_agreement(frame: Frame, instruction: Instruction, *values: Array) -> None:
    """Reports warps whose threads give different addresses or strides."""
    for value in values:
        rows = frame.in_rows(value)
        if (rows != rows[:, :1]).any():
            wrong = int(np.count_nonzero((rows != rows[:, :1]).any(axis=1)))
            frame.run.findings.add(DISAGREEING, instruction, wrong * WARP,
                                   f"the threads of the warp of {thread_name(frame, 0)} have different addresses or strides")


# --- registers --------------------------------------------------------------------------------------------------------

def items(operand: Operand) -> tuple[Operand, ...]:
    """Returns the members of a group of registers."""
    return operand.items if isinstance(operand, Group) else (operand,)


def _per_register(matrix: Matrix) -> int:
    return 1 if matrix.bits == 32 else 32 // matrix.bits


def _reader(operand: Operand, matrix: Matrix, names: Names, instruction: Instruction) -> Callable[[Frame], Array]:
    """Returns the function that gives the matrices of all warps from the registers of their threads."""
    readers: list[Reader] = [names.reader(one, "b32", instruction) for one in items(operand)]
    _require_room(len(readers), matrix, instruction)

    def read(frame: Frame) -> Array:
        words = np.stack([rows_of_warps(frame, np.broadcast_to(reader(frame.registers), frame.count))
                          for reader in readers], axis=2)
        flat = np.ascontiguousarray(words).view(ELEMENTS[matrix.form]).reshape(len(words), -1)
        return cast(Array, flat[:, :matrix.size].reshape(len(words), matrix.rows, matrix.columns))

    return read


def _writer(operand: Operand, matrix: Matrix, names: Names, instruction: Instruction) -> Callable[[Frame, Array], None]:
    """Returns the function that puts matrices of all warps into the registers of their threads."""
    writers = [names.writer(one, instruction) for one in items(operand)]
    _require_room(len(writers), matrix, instruction)

    def write(frame: Frame, values: Array) -> None:
        flat = np.ascontiguousarray(values).reshape(len(values), -1)
        room = WARP * len(writers) * _per_register(matrix)
        words = np.ascontiguousarray(np.tile(flat, (1, room // matrix.size))).view(np.uint32)
        mine = words.reshape(len(values) * WARP, len(writers))[frame.of_these(frame.batch.position)]
        for number, put in enumerate(writers):
            put(frame.registers, np.ascontiguousarray(mine[:, number]))

    return write


def _require_room(registers: int, matrix: Matrix, instruction: Instruction) -> None:
    if registers * WARP * _per_register(matrix) % matrix.size or not registers:
        raise unknown(instruction, f"{registers} registers of each thread do not hold {matrix.size} elements of {matrix.form}")


# --- products ---------------------------------------------------------------------------------------------------------

def _multiplying(instruction: Instruction, names: Names) -> Made:
    matrices = product_of(instruction)
    if matrices is None or len(instruction.operands) != 4:
        raise unknown(instruction)
    d, *given = matrices
    write = _writer(instruction.operands[0], d, names, instruction)
    readers = [_reader(one, matrix, names, instruction) for one, matrix in zip(instruction.operands[1:], given)]

    def run(frame: Frame) -> None:
        require_whole_warps(frame, instruction)
        a, b, c = (numbers(read(frame), matrix.form) for read, matrix in zip(readers, given))
        write(frame, as_elements(product(a, b, c), d.form))

    return run, TENSOR


def product(a: Array, b: Array, c: Array) -> Array:
    """Returns a @ b + c for each warp, summed in the order of k."""
    total: Any = c
    for k in range(a.shape[2]):
        total = total + a[:, :, k, None] * b[:, None, k, :]
    return cast(Array, total)


def numbers(values: Array, form: str) -> Array:
    """Returns the elements as numbers of 32 bits."""
    if form in ("s8", "u8", "s32"):
        return values.astype(np.int32)
    return values if form == "f32" else doubles(values, form).astype(np.float32)


def as_elements(values: Array, form: str) -> Array:
    """Returns numbers of 32 bits as elements."""
    return values if form in ("f32", "s32") else rounded(values.astype(np.float64), form)


