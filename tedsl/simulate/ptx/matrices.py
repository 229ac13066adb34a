"""The names of the instructions wmma, mma and ldmatrix, as data: which matrix, of which shape, elements and order."""

from __future__ import annotations

import re

from tedsl.record import record
from tedsl.simulate.ptx.syntax import Instruction

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS = {"f16": 16, "bf16": 16, "s8": 8, "u8": 8, "f32": 32, "s32": 32}
SHAPES = ((16, 16, 16), (8, 32, 16), (32, 8, 16))
_DEALT = {"f16": "m16n8k16", "bf16": "m16n8k16", "s8": "m16n8k32", "u8": "m16n8k32"}  # shapes of mma, by elements of a and b
CHUNK = 16  # bytes of a row that a thread moves at once


@record
class Matrix:
    """A matrix of a warp: its size, the type of its elements, and whether its columns lie one after the other in memory."""

    rows: int
    columns: int
    form: str
    by_columns: bool = False

    @property
    def size(self) -> int:
        """The number of its elements."""
        return self.rows * self.columns

    @property
    def bits(self) -> int:
        return _BITS[self.form]

    @property
    def line(self) -> int:
        """The bytes of a row in memory, or of a column."""
        return (self.rows if self.by_columns else self.columns) * self.bits // 8

    @property
    def chunk(self) -> int:
        """The bytes that a thread moves at once."""
        return min(CHUNK, self.line)

    @property
    def chunks(self) -> int:
        return self.size * self.bits // 8 // self.chunk


def matrix_moved(instruction: Instruction) -> Matrix | None:
    """Returns the matrix of a wmma.load or wmma.store; None for what is neither, or is not known."""
    parts = instruction.parts
    if parts[:2] not in (("wmma", "load"), ("wmma", "store")) or parts[3:5] != ("sync", "aligned") or len(parts) < 8:
        return None
    shape, form = shape_of(parts[6]), parts[-1]
    if shape is None or form not in _BITS or parts[5] not in ("row", "col") or not set(parts[7:-1]) <= {"shared", "global"}:
        return None
    return matrix(parts[2], shape, form, parts[5] == "col")


def matrix(which: str, shape: tuple[int, int, int], form: str, by_columns: bool = False) -> Matrix:
    """Returns matrix a, b, c or d of a product of this shape."""
    m, n, k = shape
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    return Matrix(rows, columns, form, by_columns)


def product_of(instruction: Instruction) -> tuple[Matrix, Matrix, Matrix, Matrix] | None:
    """Returns the matrices d, a, b and c of a wmma.mma; None for what is none, or is not known."""
    parts = instruction.parts
    if parts[:4] != ("wmma", "mma", "sync", "aligned") or len(parts) < 9 or not {parts[4], parts[5]} <= {"row", "col"}:
        return None
    shape, forms = shape_of(parts[6]), parts[7:]
    if len(forms) == 2:
        forms = (forms[0], "f16", "f16", forms[1])
    if shape is None or len(forms) != 4 or not set(forms) <= _BITS.keys():
        return None
    d, a, b, c = (matrix(which, shape, form) for which, form in zip("dabc", forms))
    return d, a, b, c


def dealt_product_of(instruction: Instruction) -> tuple[Matrix, Matrix, Matrix, Matrix] | None:
    """Returns the matrices d, a, b and c of an mma; None for what is none, or is not known."""
    parts = instruction.parts
    if parts[:3] != ("mma", "sync", "aligned") or len(parts) != 10 or parts[4:6] != ("row", "col"):
        return None
    d, a, b, c = parts[6:]
    sums = ("s32",) if a in ("s8", "u8") else ("f32", "f16") if a == "f16" else ("f32",)
    if parts[3] != _DEALT.get(a) or a != b or c != d or d not in sums:
        return None
    shape = (16, 8, 32 * 8 // _BITS[a])
    return matrix("d", shape, d), matrix("a", shape, a), matrix("b", shape, b), matrix("c", shape, c)


def matrices_loaded(instruction: Instruction) -> tuple[int, bool]:
    """Returns how many matrices an ldmatrix loads, and whether it turns them; 0 if it is not known."""
    parts = instruction.parts
    known = parts[:4] == ("ldmatrix", "sync", "aligned", "m8n8") and parts[4] in ("x1", "x2", "x4") and parts[-1] == "b16" \
        and set(parts[5:-1]) <= {"trans", "shared", "shared__cta"}
    return (int(parts[4][1:]) if known else 0), "trans" in parts


def shape_of(text: str) -> tuple[int, int, int] | None:
    """Returns m, n and k of a shape that is known."""
    found = _SHAPE.fullmatch(text)
    shape = (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else (0, 0, 0)
    return shape if shape in SHAPES else None
